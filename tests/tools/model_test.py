#!/usr/bin/env python3
"""The model of how a job changes hands (tests/model/jobs.pml): what it promises holds in every order of events, and a model
in which a rule is broken is found out."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

MODEL = script.SOURCE / "tests" / "model" / "jobs.pml"
SAFETY = (("-DSAFETY", "-DNOCLAIM"), ())  # assertions in every state
LIVENESS = (("-DNFAIR=3",), ("-a", "-f"))  # acceptance cycles with weak fairness
DEPTH_MAX = 100000


def run(command, folder):
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def search(kind, *broken):
    """Searches the whole model; what the search printed."""
    if not shutil.which("spin"):
        raise script.Skip("spin is not installed")
    flags, options = kind
    with tempfile.TemporaryDirectory() as folder:
        for command in (["spin", *(f"-D{name}" for name in broken), "-a", str(MODEL)],
                        ["gcc", "-w", "-O1", *flags, "-o", "pan", "pan.c"]):
            status, text = run(command, folder)
            assert status == 0, text
        status, text = run(["./pan", f"-m{DEPTH_MAX}", *options], folder)
        assert status == 0, text
        assert "error: max search depth too small" not in text, text
        return text


def errors_in(text):
    found = re.search(r"errors: (\d+)", text)
    assert found, text
    return int(found.group(1))


def check_found(kind, broken, what):
    text = search(kind, broken)
    assert errors_in(text) > 0 and what in text, text


def check_all_was_reached(text):
    """A line that no run comes to would promise nothing."""
    for name in ("worker", "time", "rescuer", "canceller", "judge"):
        lines = re.search(rf"unreached in proctype {name}\n((?:\t.*\n)*)", text).group(1)
        assert not re.findall(r"jobs.pml:\d+, state \d+, \"(?!-end-)", lines), f"{name}: {lines}"


def test_at_most_one_holder_and_one_effect():
    text = search(SAFETY)
    assert errors_in(text) == 0, text
    check_all_was_reached(text)


def test_every_job_ends():
    text = search(LIVENESS)
    assert errors_in(text) == 0, text


def test_a_completion_without_fence_is_found():
    check_found(SAFETY, "NO_FENCE_ON_COMPLETE", "assertion violated")


def test_a_rescue_by_id_alone_is_found():
    check_found(SAFETY, "RESCUE_BY_ID", "assertion violated")


def test_a_rescue_that_does_not_look_at_the_lease_is_found():
    check_found(SAFETY, "LEASE_NOT_CHECKED", "assertion violated")


def test_jobs_that_nobody_rescues_are_found():
    check_found(LIVENESS, "NO_RESCUE", "acceptance cycle")


if __name__ == "__main__":
    script.main(globals())
