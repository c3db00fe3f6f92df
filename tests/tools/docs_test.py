#!/usr/bin/env python3
"""What the documents point to is there."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

PAGES = [script.SOURCE / "README.md", script.SOURCE / "CONTRIBUTING.md", *sorted((script.SOURCE / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:src|include|tests|tools|docs|bench)/[\w./-]*\w/?)`")


def test_links_lead_somewhere():
    broken = [f"{page.name}: {link}" for page in PAGES for link in LINK.findall(page.read_text())
              if not (page.parent / link).exists()]
    assert not broken, broken


def test_files_and_folders_that_are_named_exist():
    missing = [f"{page.name}: {path}" for page in PAGES for path in PATH.findall(page.read_text())
               if not (script.SOURCE / path).exists() and "NAME" not in path]
    assert not missing, missing


def test_make_targets_that_are_named_exist():
    made = subprocess.run(["make", "-s", "help"], cwd=script.SOURCE, capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"make ([a-z-]+)", made))
    commands = re.compile(r"(?:`|^)make ([a-z-]+)", re.MULTILINE)
    missing = [f"{page.name}: make {target}" for page in PAGES for target in commands.findall(page.read_text())
               if target not in known]
    assert known and not missing, missing


def test_the_readme_begins_with_the_two_commands():
    lines = (script.SOURCE / "README.md").read_text().splitlines()
    commands = [line.split("#")[0].strip() for line in lines[:8] if line.startswith("make ")]
    assert commands == ["make run", "make test"], commands


if __name__ == "__main__":
    script.main(globals())
