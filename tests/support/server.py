"""`quire serve` for as long as a block lasts, and what is sent to it."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

import script

BOUNDARY = "-=-part-=-"
LARGE = b"a harbour and a lighthouse\n" * 40000


def environment(data, **more):
    """Of a program under test: nothing of whoever runs the tests, but for the sanitizers' options."""
    passed = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
    return {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "QUIRE_DATA": data, **passed, **more}


class Server:
    """A server with a data folder of its own, for as long as the block lasts; ends with 0 when it is told to."""

    def __init__(self, *words, data=None, failpoints=""):
        self.words = words
        self.folder = None if data else tempfile.TemporaryDirectory()
        self.data = data or self.folder.name
        self.failpoints = failpoints

    def __enter__(self):
        env = environment(self.data, QUIRE_FAILPOINTS=self.failpoints)
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(script.BUILD / "quire"), "serve", "--listen", "127.0.0.1:0", *self.words],
                                        stdout=subprocess.PIPE, stderr=self.log, env=env, text=True)
        line = self.process.stdout.readline().split()
        assert line[:2] == ["listening", "on"], (line, self.lines())
        self.url = line[2]
        self.host, port = self.url.removeprefix("http://").split(":")
        self.port = int(port)
        return self

    def __exit__(self, kind, *what):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process.stdout.close()
        if self.folder:
            self.folder.cleanup()
        if kind is None:
            assert code == 0, (code, self.lines())
        elif code not in (0, -signal.SIGKILL):
            print(self.lines())
        self.log.close()

    def lines(self):
        self.log.seek(0)
        return self.log.read().decode()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.returncode = 0

    def connect(self):
        return socket.create_connection((self.host, self.port), 60)

    def call(self, method, path, body=None, **headers):
        """Status, headers and body; JSON is parsed."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.headers.get("Content-Type") == "application/json" and data:
            data = json.loads(data)
        return answer.status, answer.headers, data

    def ask(self, status, method, path, body=None, **headers):
        got = self.call(method, path, body, **headers)
        assert got[0] == status, got
        return got[2]

    def upload(self, status, base, files, **headers):
        headers["Content_Type"] = f"multipart/form-data; boundary={BOUNDARY}"
        return self.ask(status, "POST", f"/api/v1/bases/{base}/uploads", form(files), **headers)

    def items(self, base):
        return self.ask(200, "GET", f"/api/v1/bases/{base}/items?limit=200")["data"]

    def wait_for(self, what, happens):
        """Looks until it is so; a test that waits for ever is ended by the runner."""
        end = time.monotonic() + 50
        while not happens():
            assert time.monotonic() < end, what
            time.sleep(0.02)

    def wait_until_done(self, base):
        self.wait_for("items at rest",
                      lambda: all(item["status"] in ("completed", "failed") for item in self.items(base)))


def form(files, end="--\r\n"):
    out = b""
    for name, content in files:
        out += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'.encode()
        out += b"Content-Type: application/octet-stream\r\n\r\n" + content + b"\r\n"
    return out + f"--{BOUNDARY}{end}".encode()


def files_below(data):
    """What uploads may leave: files of their own names, and those that are being written."""
    folder = pathlib.Path(data)
    return [path for path in folder.rglob("*")
            if path.is_file() and ("artifacts" in path.parts or path.name.startswith(".quire-tmp-"))]
