#!/usr/bin/env python3
"""What is secret is nowhere to be seen: in no answer, no log line, no error, no file and no command line."""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import postgres  # noqa: E402
import script  # noqa: E402
from server import Server  # noqa: E402

PASSWORD = "pw7HarbourOfNobody"
V1 = "/api/v1"


def command_lines(pid):
    """Of the process and of those that it has started."""
    task = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    own = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    return own + "".join(command_lines(child) for child in task.read_text().split())


def everything_said(server, **headers):
    """The answers of all routes without parameters, those of some with, and refusals."""
    paths = server.ask(200, "GET", "/openapi.json")["paths"]
    asked = [("GET", path, None) for path in paths if "{" not in path and "get" in paths[path]]
    asked += [("GET", f"{V1}/bases/b", None), ("GET", f"{V1}/bases/b/items", None), ("POST", f"{V1}/check", {}),
              ("POST", f"{V1}/keys/none/rotate", {}), ("GET", f"{V1}/bases/none", None)]
    asked = [one for one in asked if one[1] != f"{V1}/events"]  # it does not end
    return "".join(str(server.call(*one, **headers)[1:]) for one in asked)


def test_password_of_the_database_is_nowhere():  # KEY-9, I10
    with postgres.Server() as database, tempfile.TemporaryDirectory() as data:
        url = database.url.replace("quire@", f"quire:{PASSWORD}@")
        with Server("--set", f"database.url={url}", "--set", "log.level=debug", data=data) as server:
            server.ask(201, "POST", f"{V1}/bases", {"name": "b"})
            server.ask(202, "POST", f"{V1}/bases/b/items", {"items": [{"type": "note", "name": "n", "content": "x"}]})
            server.wait_until_done("b")
            assert "database.url=*" in command_lines(server.process.pid)  # of what is long gone nothing can be said
            assert PASSWORD not in command_lines(server.process.pid)
            assert PASSWORD not in everything_said(server)
            assert PASSWORD not in server.lines() and server.lines()
        shown = [subprocess.run([str(script.BUILD / "quire"), "--data", data, "--set", f"database.url={url}", *words],
                                capture_output=True, text=True, timeout=60, env={"HOME": "/nonexistent"})
                 for words in (["config"], ["config", "database.url"], ["--json", "config"], ["check"], ["base", "ls"])]
        shown += [subprocess.run([str(script.BUILD / "quire"), "--data", data, "--set", f"database.url={wrong}", "ls"],
                                 capture_output=True, text=True, timeout=60, env={"HOME": "/nonexistent"})
                  for wrong in (url + "%", f"postgresql://quire:{PASSWORD}", url.replace("postgres?", "none?"))]
        assert PASSWORD not in str([(done.stdout, done.stderr) for done in shown]), shown
    assert not [path for path in pathlib.Path(data).rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]


def test_secret_of_a_key_is_in_the_answer_that_made_it_only():  # KEY-1, KEY-9
    with tempfile.TemporaryDirectory() as data:
        made = subprocess.run([str(script.BUILD / "quire"), "--data", data, "key", "create", "admin", "--admin"],
                              capture_output=True, text=True, timeout=60, env={"HOME": "/nonexistent"})
        secret = made.stdout.strip()
        assert secret.startswith("qk_") and secret not in made.stderr, made
        headers = {"Authorization": f"Bearer {secret}"}
        with Server("--set", "log.level=debug", data=data) as server:
            server.ask(201, "POST", f"{V1}/bases", {"name": "b"}, **headers)
            rotated = server.ask(200, "POST", f"{V1}/keys/admin/rotate", {"grace_s": 600}, **headers)["secret"]
            other = server.ask(201, "POST", f"{V1}/keys", {"name": "other"}, **headers)["secret"]
            # sent where it does not belong
            for status, method, path, body in ((404, "GET", f"{V1}/bases/{other}", None),
                                               (404, "DELETE", f"{V1}/keys/{other}", None),
                                               (400, "POST", f"{V1}/bases", {other: 1}),
                                               (400, "GET", f"{V1}/bases?{other}=1", None),
                                               (404, "GET", f"/{other}", None),
                                               (405, "PUT", f"{V1}/bases/{other}", None)):
                answer = server.ask(status, method, path, body, **headers)
                assert other not in json.dumps(answer), (path, answer)
            said = everything_said(server, **headers) + server.lines() + command_lines(server.process.pid)
        for one in (secret, rotated, other):
            assert one not in said and one[11:] not in said, said
            for path in pathlib.Path(data).rglob("*"):
                assert not path.is_file() or one.encode() not in path.read_bytes(), path


def test_address_with_a_password_is_refused_and_not_repeated():  # KEY-9
    with Server() as server:
        server.ask(201, "POST", f"{V1}/bases", {"name": "b"})
        for url in (f"https://me:{PASSWORD}@example.org/a", f"http://{PASSWORD}@example.org", f"http://me:{PASSWORD}@[::1]?q"):
            answer = server.ask(422, "POST", f"{V1}/bases/b/items", {"items": [{"type": "url", "url": url}]})
            assert PASSWORD not in json.dumps(answer) and "items[0].url" in answer["error"]["message"], answer
            settings = {"settings": {"embedding": {"provider": "openai", "model": "m", "url": url}}}
            answer = server.ask(422, "PATCH", f"{V1}/bases/b", settings)
            assert PASSWORD not in json.dumps(answer), answer
        server.ask(202, "POST", f"{V1}/bases/b/items", {"items": [{"type": "url", "url": "https://example.org/a?mail=b@c"}]})
        assert PASSWORD not in server.lines()
        done = subprocess.run([str(script.BUILD / "quire"), "--server", f"http://me:{PASSWORD}@127.0.0.1:{server.port}", "ls"],
                              capture_output=True, text=True, timeout=60, env={"HOME": "/nonexistent"})
        assert done.returncode == 2 and PASSWORD not in done.stdout + done.stderr, done


if __name__ == "__main__":
    script.main(globals())
