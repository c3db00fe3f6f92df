#!/usr/bin/env python3
"""The layer rules hold, and the checker finds what breaks them."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402


def findings(path=None, line="", rule=""):
    """What the checker says about a copy of the tree with one line added to a file, and one to the rules."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("src", "include"):
            shutil.copytree(script.SOURCE / name, root / name)
        (root / "tools").mkdir()
        rules = (script.SOURCE / "tools" / "layers.txt").read_text()
        (root / "tools" / "layers.txt").write_text(rules + rule)
        if path:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with open(root / path, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        result = subprocess.run([script.SOURCE / "tools" / "layers", root], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout


def found(path, line, message, rule=""):
    status, text = findings(path, line, rule)
    assert status == 1 and message in text, text


def test_the_source_keeps_to_the_layers():
    status, text = findings()
    assert status == 0, text


def test_a_call_upwards_is_found():
    found("src/base/new.c", '#include "db/db.h"', "src/base/new.c:1: base may include only base, not db (db/db.h)")


def test_a_front_end_that_reaches_past_the_public_header_is_found():
    found("src/cli/new.c", '#include "db/db.h"', "cli may include only cli, quire, base, http, mcp, not db")


def test_the_public_header_inside_the_library_is_found():
    found("src/db/new.c", "#include <quire/quire.h>", "db may include only db, base, not quire")


def test_a_private_header_used_elsewhere_is_found():
    found("src/store/new.c", '#include "db/driver.h"', "db/driver.h is private to db")


def test_a_foreign_header_outside_its_layer_is_found():
    found("src/store/new.c", "#include <sqlite3.h>", "only db may include <sqlite3.h>")


def test_a_header_without_its_layer_is_found():
    found("src/db/new.c", '#include "driver.h"', '"driver.h" does not say its layer')


def test_a_folder_without_a_rule_is_found():
    found("src/misc/new.c", '#include "base/str.h"', "the folder misc is not a layer")


def test_a_rule_that_would_allow_a_cycle_is_refused():
    found(None, "", "one may include two, which is not on a line above", rule="one: two\ntwo: one\n")


if __name__ == "__main__":
    script.main(globals())
