"""Programs of others from npm, for tests that speak to Quire as they do."""
import fcntl
import json
import pathlib
import shutil
import subprocess

import script

PACKAGES = ["@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0", "openai@6.49.0"]


def install(place):
    (place / "package.json").write_text('{"private": true, "type": "module"}')
    got = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1",
                          "--fetch-timeout=60000", *PACKAGES], cwd=place, capture_output=True, text=True)
    if got.returncode != 0:
        raise script.Skip("the packages cannot be had from npm here")


def folder():
    """Where the packages are, kept in the build folder; Skip where they cannot be had."""
    place = script.BUILD / "npm"
    done = place / "done"
    if not shutil.which("node") or not shutil.which("npm"):
        raise script.Skip("node and npm are not installed")
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other
        if not done.exists() or done.read_text() != "\n".join(PACKAGES):
            install(place)
            done.write_text("\n".join(PACKAGES))
    return place


def run(program, *words, env=None):
    """What a program beside the tests prints as JSON; it is run where the packages are."""
    place = folder()
    source = pathlib.Path(__file__).resolve().parents[1] / "compat" / program
    copy = place / program
    shutil.copyfile(source, copy)
    done = subprocess.run(["node", str(copy), *words], cwd=place, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{program} {' '.join(words)}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout)
