#!/usr/bin/env python3
"""The failure switch is in the code where it is built in, and nowhere else."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402


def users():
    """The files with a failpoint in them."""
    return [path for path in sorted((script.SOURCE / "src").rglob("*.c"))
            if "QR_FAILPOINT" in path.read_text() and path.name != "failpoint.c"]


def symbols(path, *flags):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "a.o")
        includes = subprocess.run(["pkg-config", "--cflags", "sqlite3", "libpq", "jansson", "libxxhash"],
                                  capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", '-DQUIRE_VERSION="0"', *flags, *includes,
                        f"-I{script.SOURCE}/src", f"-I{script.SOURCE}/include", "-c", path, "-o", result], check=True)
        names = subprocess.run(["nm", result], capture_output=True, text=True, check=True).stdout
        text = subprocess.run(["strings", "-a", result], capture_output=True, text=True, check=True).stdout
        return names + text


def test_without_the_switch_nothing_of_it_is_in_the_code():  # FP-1
    assert users()
    for path in users():
        assert "failpoint" not in symbols(path), path


def test_with_the_switch_it_is_there():
    for path in users():
        assert "qr_failpoint_hit" in symbols(path, "-DQUIRE_FAILPOINTS"), path


if __name__ == "__main__":
    script.main(globals())
