#!/usr/bin/env python3
"""Following events of `quire serve`: nothing is missed or repeated when it is restarted or killed, who does not read is
hung up on, who leaves is forgotten, and stopping waits for nobody."""
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402
from server import Server  # noqa: E402


class Stream:
    """What comes, event by event, on a connection that the server ends."""

    def __init__(self, server, target="/api/v1/events", last_id=None, headers="", unix=None):
        self.socket = socket.socket(socket.AF_UNIX) if unix else server.connect()
        if unix:
            self.socket.connect(unix)
        self.socket.settimeout(60)
        if last_id is not None:
            headers += f"Last-Event-ID: {last_id}\r\n"
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() not in (b"\r\n", b""):
            pass
        self.text = b""
        self.last_id = last_id
        self.is_whole = False  # it was ended, not broken off

    def next(self):
        """(id, kind, data) of the next event, None at the end; signs of life only move the id."""
        while True:
            while b"\n\n" not in self.text:
                size = self.file.readline()  # of a chunk
                if not size or int(size, 16) == 0:
                    self.is_whole = bool(size)
                    return None
                self.text += self.file.read(int(size, 16))
                self.file.readline()
            block, self.text = self.text.split(b"\n\n", 1)
            fields = dict(line.decode().split(": ", 1) for line in block.split(b"\n") if b": " in line)
            self.last_id = fields.get("id", self.last_id)
            if "data" in fields:
                return fields["id"], fields["event"], json.loads(fields["data"])

    def close(self):
        self.file.close()
        self.socket.close()


def add(server, base, name):
    server.ask(202, "POST", f"/api/v1/bases/{base}/items",
               {"items": [{"type": "note", "name": name, "content": f"a note {name}"}]})


def numbers(events):
    return [int(event[0].split("-")[0]) for event in events]


def connections(server):
    """And sockets that listen, of which there are two."""
    count = 0
    for fd in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            count += os.readlink(fd).startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def kill(server):
    """A child that was just forked has what its parent had locked until it becomes its own program."""
    server.kill()
    with open(f"{server.data}/quire.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def follow_through(last_id, server_of, rounds, end):
    """One client over several servers: all events, each by its id, going on from where the last one ended."""
    heard = []
    for i in range(rounds):
        with server_of(i) as server:
            stream = Stream(server, last_id=last_id)
            assert stream.status == 200
            for name in range(5):
                add(server, "b", f"r{i}n{name}")
            for _ in range(3 + 2 * i):  # not all of what happens before the server ends
                heard.append(stream.next())
            last_id = stream.last_id
            stream.close()
            end(server)
    return heard, last_id


def check_no_gap(end):
    with tempfile.TemporaryDirectory() as data:
        with Server(data=data) as server:
            server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
            first = Stream(server)
            add(server, "b", "first")
            begin = first.next()
            first.close()
        heard, last_id = follow_through(begin[0], lambda i: Server(data=data), 3, end)
        with Server(data=data) as server:
            server.wait_until_done("b")
            add(server, "b", "last")
            stream = Stream(server, last_id=last_id)
            while not heard or heard[-1][2]["status"] != "completed" or not is_last(server, heard[-1]):
                heard.append(stream.next())
            stream.close()
        assert numbers(heard) == list(range(2, len(heard) + 2)), numbers(heard)  # the only base: no id is another's
        done = {event[2]["item_id"] for event in heard if event[1] == "live"}
        assert len(done) >= 16, done


def is_last(server, event):
    return server.ask(200, "GET", f"/api/v1/bases/b/items/{event[2]['item_id']}")["name"] == "last"


def test_events_have_no_gap_and_no_repetition_over_restarts():  # EVENT-3
    check_no_gap(lambda server: None)


def test_events_have_no_gap_and_no_repetition_though_the_server_is_killed():  # EVENT-3
    check_no_gap(kill)


def test_old_and_foreign_places_are_a_reset():  # EVENT-2
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        for last_id in ("17-19a8c5f21bb", "nonsense"):
            stream = Stream(server, last_id=last_id)
            assert stream.next()[1] == "reset"
            add(server, "b", last_id)
            assert stream.next()[1] == "added"
            stream.close()
        assert Stream(server, "/api/v1/events?base=none").status == 404


def test_key_follows_its_own_bases_until_it_is_ended():  # EVENT-4
    with Server() as server:
        for name in ("a", "b"):
            server.ask(201, "POST", "/api/v1/bases", {"name": name})
        admin = server.ask(201, "POST", "/api/v1/keys", {"name": "admin", "admin": True})["secret"]
        headers = {"Authorization": f"Bearer {admin}"}
        key = server.ask(201, "POST", "/api/v1/keys", {"name": "k", "roles": {"b": "viewer"}}, **headers)
        assert Stream(server).status == 401
        line = f"Authorization: Bearer {key['secret']}\r\n"
        assert Stream(server, "/api/v1/events?base=a", headers=line).status == 404
        stream = Stream(server, headers=line)
        for base in ("a", "b"):
            server.ask(202, "POST", f"/api/v1/bases/{base}/items",
                       {"items": [{"type": "note", "name": "n", "content": "n"}]}, **headers)
        base_id = server.ask(200, "GET", "/api/v1/bases/b", **headers)["id"]
        assert stream.next()[2]["base_id"] == base_id
        server.ask(200, "DELETE", f"/api/v1/keys/{key['id']}", **headers)
        while event := stream.next():
            assert event[2]["base_id"] == base_id
        stream.close()


def test_clients_that_vanish_leak_no_descriptors():  # EVENT-5
    with Server("--set", "server.heartbeat_ms=200") as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        before = connections(server)
        for _ in range(3):
            streams = [Stream(server) for _ in range(40)]
            streams += [Stream(server, unix=f"{server.data}/quire.sock") for _ in range(5)]
            add(server, "b", "n")
            for stream in streams:
                while stream.next()[1] != "added":  # what became of the note before is told too
                    pass
                stream.close()
        server.wait_for("connections closed", lambda: connections(server) <= before + 1)
        assert server.call("GET", "/healthz")[0] == 200


def test_client_that_does_not_read_is_hung_up_on():  # EVENT-5
    with Server("--set", "server.request_ms=300", "--set", "server.address_requests=0") as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((server.host, server.port))
        deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: deaf\r\n\r\n")
        stream = Stream(server)
        item = server.ask(202, "POST", "/api/v1/bases/b/items",
                          {"items": [{"type": "note", "name": "n", "content": "n"}]})["items"][0]["id"]
        stop = threading.Event()

        def make_events():
            shown = False
            while not stop.is_set():
                server.call("PATCH", f"/api/v1/bases/b/items/{item}", {"enabled": shown})
                shown = not shown

        threads = [threading.Thread(target=make_events) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:  # the server lets the kernel hold no more than 64 KB or so
            server.wait_for("the deaf one gone", lambda: "id=deaf" in server.lines() or not stream.next())
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert "id=deaf" in server.lines()
        stream.close()
        deaf.close()


def test_stopping_does_not_wait_for_those_who_follow():  # EVENT-5
    with Server() as server:
        streams = [Stream(server) for _ in range(100)]
        streams += [Stream(server, unix=f"{server.data}/quire.sock") for _ in range(10)]
        server.process.send_signal(signal.SIGTERM)
        for stream in streams:
            assert stream.next() is None and stream.is_whole
            stream.close()


def test_command_line_that_waits_follows_events():  # EVENT-3
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        for i in range(30):
            pathlib.Path(folder, f"{i}.md").write_text(f"# {i}\n\nThe harbour number {i}.\n")
        for where in (("--server", f"http://{server.host}:{server.port}"), ("--data", server.data)):
            server.ask(201, "POST", "/api/v1/bases", {"name": where[0].strip("-")})
            done = subprocess.run([str(script.BUILD / "quire"), *where, "add", "-b", where[0].strip("-"), folder],
                                  capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0 and folder in done.stdout, done
        assert server.lines().count("path=/api/v1/events ") == 1, server.lines()  # what comes by the socket has no line


def test_those_who_follow_are_limited():  # EVENT-5
    with Server("--set", "server.streams=3", "--set", "server.address_streams=2") as server:
        streams = [Stream(server) for _ in range(2)]
        assert Stream(server).status == 429
        for stream in streams:
            stream.close()
        server.wait_for("room", lambda: Stream(server).status == 200)


if __name__ == "__main__":
    script.main(globals())
