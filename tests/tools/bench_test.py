#!/usr/bin/env python3
"""Every benchmark can be found, is built, and has what it needs installed."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

NAMES = sorted(path.stem.replace("_", "-") for path in (script.SOURCE / "bench").glob("*.c") if path.stem != "support")


def text_of(name):
    return (script.SOURCE / name).read_text(encoding="utf-8")


def test_every_benchmark_is_listed_where_one_looks_for_it():
    result = subprocess.run([script.SOURCE / "bench" / "run"], capture_output=True, text=True, check=False)
    assert result.returncode == 2, result
    assert sorted(re.findall(r"^  ([\w-]+)$", result.stderr, re.M)) == NAMES, result.stderr
    row = next(line for line in text_of("README.md").splitlines() if "`make bench" in line)
    named = set(re.findall(r"`([\w-]+)`", row))
    assert named == set(NAMES), f"README.md names {sorted(named)}"


def test_every_benchmark_is_built():
    targets = re.search(r"foreach\(name ([\w ]+)\)\n  file\(GLOB parts", text_of("bench/CMakeLists.txt"))
    assert sorted(name.replace("_", "-") for name in targets[1].split()) == NAMES, targets[0]


def test_what_the_benchmarks_call_is_installed_with_them():
    packages = subprocess.run([script.SOURCE / "tools" / "setup", "--list", "bench"], capture_output=True, text=True,
                              check=True).stdout.split()
    assert {"wrk", "pandoc", "postgresql"} <= set(packages), packages


if __name__ == "__main__":
    script.main(globals())
