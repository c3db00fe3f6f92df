#!/usr/bin/env python3
"""A real server among 300 clients that are too slow, and among those that vanish: they are hung up on, hold up nobody, and leave
neither descriptors nor rows nor files. What they would leave in memory the sanitizer tells at the end of the server."""
import os
import pathlib
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402
from server import BOUNDARY, LARGE, Server, files_below, form  # noqa: E402

V1 = "/api/v1"
READERS_MAX = 8  # a process that parses files is spoken to by a socket, and stays for a while
UPLOAD = (f"POST {V1}/bases/b/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n"
          f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n").encode() + form([("a", LARGE)], end="")[:3000]
NOTE = (f"POST {V1}/bases/b/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: once\r\n"
        "Content-Length: 500\r\n\r\n{\"items\":[").encode()
PHASES = [b"", b"POST /api/v1/ba", b"GET /api/v1/bases HTTP/1.1\r\nHost: local", NOTE, UPLOAD,
          b"GET /api/v1/bases/b/items HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\nGET /"]


def sockets_of(server):
    """Those that are open now; the folder changes while it is read."""
    count = 0
    for path in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            count += "socket:" in os.readlink(path)
        except FileNotFoundError:
            pass
    return count


def is_hung_up_on(client):
    """Whatever it was told before."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def check_untouched(server, before):
    server.wait_for("no sockets more", lambda: sockets_of(server) <= before)
    server.wait_for("no files", lambda: not files_below(server.data))
    assert server.items("b") == []
    assert server.ask(200, "POST", f"{V1}/check")["found"] == 0
    # nothing was begun with the key that a broken request had
    note = {"items": [{"type": "note", "name": "n", "content": "x"}]}
    server.ask(202, "POST", f"{V1}/bases/b/items", note, Idempotency_Key="once")


def test_slow_clients_are_hung_up_on_and_hold_up_nobody():  # HTTP-2, HTTP-4
    with Server("--set", "server.request_ms=1000", "--set", "server.threads=4") as server:
        server.ask(201, "POST", f"{V1}/bases", {"name": "b"})
        server.ask(201, "POST", f"{V1}/bases", {"name": "good"})
        before = sockets_of(server) + READERS_MAX
        clients = []
        for number in range(300):
            client = server.connect()
            client.sendall(PHASES[number % len(PHASES)])
            clients.append(client)
        server.upload(202, "good", [("large", LARGE), ("small", b"a lighthouse")])
        server.wait_until_done("good")
        assert server.ask(200, "POST", f"{V1}/bases/good/search", {"query": "lighthouse"})["hits"]
        assert all(is_hung_up_on(client) for client in clients)
        for client in clients:
            client.close()
        root = [item["id"] for item in server.items("good")]
        server.ask(202, "POST", f"{V1}/bases/good/items/delete", {"ids": root})
        check_untouched(server, before)


def test_clients_that_vanish_leave_nothing():  # HTTP-2, HTTP-4
    with Server() as server:
        server.ask(201, "POST", f"{V1}/bases", {"name": "b"})
        before = sockets_of(server)
        for number in range(10 * len(PHASES)):
            client = server.connect()
            client.sendall(PHASES[number % len(PHASES)])
            if number % 2:  # the connection is reset, not closed
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        check_untouched(server, before)


if __name__ == "__main__":
    script.main(globals())
