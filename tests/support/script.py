"""What tests/support/test.c is to tests in C: runs the functions test_* of a script, in order, and prints the same lines.

    if __name__ == "__main__":
        script.main(globals())
"""
import os
import pathlib
import sys
import time
import traceback

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", SOURCE / "build-asan"))


class Skip(Exception):
    """Raised by a test that cannot run here; the reason must stand in tests/allowed-skips.txt."""


def run_one(name, fn):
    """The counter that this test goes to: 0 passed, 1 failed, 2 skipped."""
    began = time.monotonic()
    try:
        fn()
    except Skip as skip:
        print(f"skip {name}: {skip}")
        return 2
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc(file=sys.stdout)
        print(f"FAIL {name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        return 1
    print(f"ok   {name} ({(time.monotonic() - began) * 1000:.0f} ms)")
    return 0


def main(names):
    path = pathlib.Path(sys.argv[0]).resolve()
    suite = f"{path.parent.name}_{path.stem}"
    tests = {name[len("test_"):]: fn for name, fn in names.items() if name.startswith("test_")}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f"{suite}.{name}" for name in tests))
        return
    counts = [0, 0, 0]
    for name, fn in tests.items():
        if sys.argv[1:] and sys.argv[1] not in name:
            continue
        counts[run_one(f"{suite}.{name}", fn)] += 1
        sys.stdout.flush()
    print("{} passed, {} failed, {} skipped".format(*counts))
    sys.exit(1 if counts[1] else 0)
