#!/usr/bin/env python3
"""The examples of docs/API-BY-EXAMPLE.md run as they stand there, and answer what stands there."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402
import server  # noqa: E402

PAGE = script.SOURCE / "docs" / "API-BY-EXAMPLE.md"
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
END = "--- the end of a block ---"


def examples():
    """[(commands, the answer that is shown or None)]"""
    found = []
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "sh":
            found.append([text, None])
        else:
            found[-1][1] = json.loads(text)
    return found


def differs(shown, answer, where="answer"):
    """What the page shows that the answer has not; an ellipsis stands for anything, and more may be in the answer."""
    if isinstance(shown, dict):
        return next(filter(None, (differs(value, answer.get(name, "nothing"), f"{where}.{name}")
                                  for name, value in shown.items())), None)
    if isinstance(shown, list):
        if not shown or len(answer) < len(shown):
            return None if answer == shown else f"{where} is {answer}"
        return next(filter(None, (differs(value, answer[i], f"{where}[{i}]") for i, value in enumerate(shown))), None)
    return None if shown in ("…", answer) else f"{where} is {answer}, not {shown}"


def last_answer(output):
    """The last JSON value: curl ends none of them with a line."""
    decoder, at, last = json.JSONDecoder(), 0, None
    while (at := output.find("{", at)) >= 0:
        last, at = decoder.raw_decode(output, at)
    return last


def run(url, folder, commands):
    """What each block prints."""
    text = "set -euo pipefail\n" + "".join(f"{block}\necho\necho '{END}'\n" for block in commands)
    text = text.replace("http://127.0.0.1:7700", url)
    done = subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr)
    return done.stdout.split(END)


def test_the_examples_of_the_api_run_as_they_stand():
    if not shutil.which("curl") or not shutil.which("jq"):
        raise script.Skip("curl or jq is not installed")
    blocks = examples()
    assert len(blocks) > 10
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder, server.Server(data=data) as running:
        outputs = run(running.url, folder, [commands for commands, _ in blocks])
    for (commands, shown), output in zip(blocks, outputs):
        wrong = differs(shown, last_answer(output)) if shown else None
        assert not wrong, (commands, wrong)


if __name__ == "__main__":
    script.main(globals())
