#!/usr/bin/env python3
"""The commands of docs/TOUR.md run as they stand there, and print what stands there."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

PAGE = script.SOURCE / "docs" / "TOUR.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(text):
    """What is shown, as a pattern: an ellipsis stands for anything, and so does what is between two lines."""
    return re.compile(".*".join(".*".join(map(re.escape, re.split(r" ?… ?", line))) for line in text.splitlines()), re.DOTALL)


def test_the_commands_of_the_tour_run_as_they_stand():
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 6
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(script.SOURCE / "sample", f"{folder}/sample")
        env = dict(os.environ, PATH=f"{script.BUILD}:{os.environ['PATH']}", QUIRE_DATA=f"{folder}/data")
        for commands, text in blocks:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=env, capture_output=True,
                                  text=True, timeout=120, check=False)
            assert done.returncode == 0, (commands, done.stdout, done.stderr)
            assert shown(text).search(done.stdout), (commands, text, done.stdout)


if __name__ == "__main__":
    script.main(globals())
