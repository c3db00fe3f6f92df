#!/usr/bin/env python3
"""The test runner itself: what must not pass does not."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402


def outcome(program, allowed="", timeout_s=60):
    """Runs a copy of the runner over one test program given as shell text; its last line and exit status."""
    with tempfile.TemporaryDirectory() as folder:
        tests = pathlib.Path(folder, "tests")
        build = pathlib.Path(folder, "build", "tests")
        tests.mkdir()
        build.mkdir(parents=True)
        shutil.copy(script.SOURCE / "tests" / "run", tests)
        (tests / "allowed-skips.txt").write_text(f"# comment\n{allowed}\n")
        (build.parent / "CMakeCache.txt").write_text("QUIRE_SANITIZE:STRING=\n")
        (build / "tests.txt").write_text("unit_x_test\n")
        if program is not None:
            (build / "unit_x_test").write_text(f"#!/bin/sh\n{program}\n")
            (build / "unit_x_test").chmod(0o755)
        result = subprocess.run([tests / "run", build.parent, "--timeout", str(timeout_s)], capture_output=True,
                                text=True, check=False)
        return result.stdout.splitlines()[-1], result.returncode, result.stdout


def test_passing_tests_pass():
    last, status, _ = outcome("echo 'ok   unit_x_test.a (1 ms)'; echo '1 passed, 0 failed, 0 skipped'")
    assert (last, status) == ("1 passed, 0 failed", 0), last


def test_a_failed_test_fails_the_run_and_is_named_at_the_end():
    last, status, out = outcome("echo 'FAIL unit_x_test.a: x is 1'; echo '0 passed, 1 failed, 0 skipped'; exit 1")
    assert (last, status) == ("0 passed, 1 failed", 1), last
    assert "\n  unit_x_test.a: x is 1\n" in out, out


def test_a_program_that_dies_before_its_last_test_fails():
    last, status, _ = outcome("echo 'ok   unit_x_test.a (1 ms)'; kill -SEGV $$")
    assert (last, status) == ("1 passed, 1 failed", 1), last


def test_a_program_that_was_not_built_fails():
    last, status, _ = outcome(None)
    assert (last, status) == ("0 passed, 1 failed", 1), last


def test_an_exit_status_without_a_failed_test_fails():
    last, status, _ = outcome("echo 'ok   unit_x_test.a (1 ms)'; echo '1 passed, 0 failed, 0 skipped'; exit 23")
    assert (last, status) == ("1 passed, 1 failed", 1), last


def test_a_closing_line_that_disagrees_with_the_lines_fails():
    last, status, _ = outcome("echo 'ok   unit_x_test.a (1 ms)'; echo '2 passed, 0 failed, 0 skipped'")
    assert (last, status) == ("1 passed, 1 failed", 1), last


def test_a_skip_passes_only_for_an_allowed_reason():
    program = "echo 'ok   unit_x_test.b (1 ms)'; echo 'skip unit_x_test.a: no loop device'; " \
              "echo '1 passed, 0 failed, 1 skipped'"
    last, status, _ = outcome(program)
    assert (last, status) == ("1 passed, 1 failed", 1), last
    last, status, _ = outcome(program, allowed="unit_x_test.*: no loop device")
    assert (last, status) == ("1 passed, 0 failed, 1 skipped", 0), last
    last, status, _ = outcome(program, allowed="unit_x_test.*: no root")
    assert (last, status) == ("1 passed, 1 failed", 1), last


def test_a_process_left_behind_fails_and_is_ended():
    last, status, out = outcome("setsid sleep 987 & echo 'ok   unit_x_test.a (1 ms)'; "
                                "echo '1 passed, 0 failed, 0 skipped'")
    assert (last, status) == ("1 passed, 1 failed", 1), out
    assert "left a process behind: sleep 987" in out, out


def test_a_program_that_hangs_is_ended():
    last, status, out = outcome("sleep 986", timeout_s=1)
    assert (last, status) == ("0 passed, 1 failed", 1), out
    assert "still running after 1 s" in out, out


def test_nothing_to_run_is_not_success():
    _, status, _ = outcome("echo '0 passed, 0 failed, 0 skipped'")
    assert status == 1


if __name__ == "__main__":
    script.main(globals())
