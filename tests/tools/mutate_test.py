#!/usr/bin/env python3
"""The known faults still fit the source, and the tool that tries them can be believed."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES C)
add_executable(quire src/main.c)
add_executable(unit_tiny_test src/main.c)
set_target_properties(unit_tiny_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
file(WRITE ${CMAKE_BINARY_DIR}/tests/tests.txt "unit_tiny_test")
"""
PRESETS = '{"version": 6, "configurePresets": [{"name": "asan", "generator": "Ninja", "binaryDir": "build-asan"}]}'
PROGRAM = """#include <stdio.h>
static int one = 1;
static int unused_by_the_test = 2;
int main(void)
{
    const int failed = one != 1;
    printf(failed ? "FAIL unit_tiny_test.a: one is not 1\\n" : "ok   unit_tiny_test.a (0 ms)\\n");
    printf("%d passed, %d failed, 0 skipped\\n", !failed, failed);
    return unused_by_the_test == 3 ? 0 : failed;
}
"""
FAULT = "file: src/main.c\ntests: unit_tiny_test\nwhy: because\n--- old\n{}\n+++ new\n{}\n"


def outcome(old, new, *options):
    """Tries one fault in a project of one file; the exit status and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("src", "tests/mutants", "tools"):
            (root / name).mkdir(parents=True)
        shutil.copy(script.SOURCE / "tools" / "mutate", root / "tools")
        shutil.copy(script.SOURCE / "tests" / "run", root / "tests")
        (root / "tests" / "allowed-skips.txt").write_text("")
        (root / "CMakeLists.txt").write_text(CMAKE)
        (root / "CMakePresets.json").write_text(PRESETS)
        (root / "src" / "main.c").write_text(PROGRAM)
        (root / "tests" / "mutants" / "fault.mutant").write_text(FAULT.format(old, new))
        result = subprocess.run([root / "tools" / "mutate", *options], capture_output=True, text=True, check=False)
        assert (root / "src" / "main.c").read_text() == PROGRAM, "the source itself was changed"
        return result.returncode, result.stdout + result.stderr


def test_every_fault_still_applies():
    result = subprocess.run([script.SOURCE / "tools" / "mutate", "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_a_fault_that_a_test_notices_is_caught():
    status, text = outcome("one = 1;", "one = 2;")
    assert status == 0 and text.endswith("1 caught, 0 survived\n"), text


def test_a_fault_that_no_test_notices_survives():
    status, text = outcome("test = 2;", "test = 4;")
    assert status == 1 and text.endswith("0 caught, 1 survived\n"), text


def test_a_fault_that_does_not_compile_is_an_error():
    status, text = outcome("one = 1;", "one = ;")
    assert status == 1 and text.endswith("0 caught, 0 survived, 1 errors\n"), text


def test_a_fault_whose_text_is_not_there_exactly_once_is_an_error():
    for old, count in (("two = 1;", 0), ("static int", 2)):
        status, text = outcome(old, "x", "--check")
        assert status == 1 and f"its text occurs {count} times" in text, text


if __name__ == "__main__":
    script.main(globals())
