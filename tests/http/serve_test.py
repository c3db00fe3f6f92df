#!/usr/bin/env python3
"""`quire serve` as programs see it: uploads, what is done once, versions, ranges, and what is left when clients or the
server die."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402
from server import BOUNDARY, LARGE, Server, files_below, form  # noqa: E402


# ---- uploads ----

def test_uploaded_files_are_items_in_their_folders():  # HTTP-4
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        files = [("guide.md", b"# Guide\nThe lighthouse is red."), ("docs/large.txt", LARGE),
                 ("docs/deep/note.txt", b"an anchorage"), ("docs\\deep\\other.txt", b"a mooring"), ("empty.txt", b"")]
        answer = server.upload(202, "b", files)
        assert len(answer["items"]) == 7, answer
        server.wait_until_done("b")
        items = {item["name"]: item for item in server.items("b")}
        assert items["docs"]["type"] == "directory" and items["docs"]["counts"]["completed"] == 2
        assert items["deep"]["parent_id"] == items["docs"]["id"] and items["deep"]["counts"]["completed"] == 2
        assert items["large.txt"]["parent_id"] == items["docs"]["id"] and items["large.txt"]["source"] is None
        hits = server.ask(200, "POST", "/api/v1/bases/b/search", {"query": "anchorage"})["hits"]
        assert [hit["name"] for hit in hits] == ["note.txt"]
        for name, content in (("guide.md", files[0][1]), ("large.txt", LARGE), ("other.txt", b"a mooring")):
            assert server.ask(200, "GET", f"/api/v1/bases/b/items/{items[name]['id']}/raw") == content
        # nothing of them is left once they are deleted
        roots = [item["id"] for item in items.values() if not item["parent_id"]]
        server.ask(202, "POST", "/api/v1/bases/b/items/delete", {"ids": roots})
        server.wait_for("no files", lambda: not files_below(server.data))
        assert server.ask(200, "POST", "/api/v1/check")["found"] == 0


def test_upload_that_cannot_be_taken_leaves_nothing():  # HTTP-4
    with Server("--set", "server.upload_limit=3MB") as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        one = ("a.txt", LARGE)
        for code, files in (("invalid_value", [one, ("../b", b"x")]), ("invalid_value", [one, ("/etc/b", b"x")]),
                            ("invalid_value", [one, ("a//b", b"x")]), ("invalid_value", [one, one]),
                            ("invalid_value", [one, ("a.txt/b", b"x")]), ("payload_too_large", [one, ("b", 3 * LARGE)]),
                            ("bad_request", [])):
            answer = server.upload({"invalid_value": 422, "payload_too_large": 413}.get(code, 400), "b", files)
            assert answer["error"]["code"] == code, (files, answer)
        assert server.upload(404, "missing", [one])["error"]["code"] == "not_found"
        path = "/api/v1/bases/b/uploads"
        assert server.ask(415, "POST", path, b"x", Content_Type="text/plain")["error"]["code"] == "unsupported_media_type"
        for body in (form([one], end=""), form([one])[20:], b""):
            answer = server.ask(400, "POST", path, body, Content_Type=f"multipart/form-data; boundary={BOUNDARY}")
            assert answer["error"]["code"] == "bad_request"
        assert server.items("b") == [] and files_below(server.data) == []


def begin_upload(server):
    """A client in the middle of an upload, of which something is on disk already."""
    client = server.connect()
    client.sendall(f"POST /api/v1/bases/b/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n"
                   f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode())
    client.sendall(form([("whole.txt", LARGE), ("half.txt", LARGE)], end="")[:-len(BOUNDARY) - 8])
    server.wait_for("a file", lambda: len(files_below(server.data)) >= 2)
    return client


def test_upload_whose_client_leaves_leaves_nothing():  # HTTP-4
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        client = begin_upload(server)
        client.close()
        server.wait_for("no files", lambda: not files_below(server.data))
        assert server.items("b") == []


def test_server_killed_in_an_upload_keeps_what_was_answered_and_nothing_else():  # HTTP-4
    with tempfile.TemporaryDirectory() as data:
        with Server(data=data) as server:
            server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
            server.upload(202, "b", [("kept.txt", LARGE)])
            client = begin_upload(server)
            server.kill()
            client.close()
        with Server(data=data) as server:
            server.wait_until_done("b")
            assert [item["name"] for item in server.items("b")] == ["kept.txt"]
            assert not [path for path in files_below(data) if path.name.startswith(".quire-tmp-")]
            assert server.ask(200, "GET", f"/api/v1/bases/b/items/{server.items('b')[0]['id']}/raw") == LARGE


def test_content_of_a_file_is_replaced_by_raw_bytes():
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        item = server.upload(202, "b", [("a.txt", b"the old tide")])["items"][0]
        server.wait_until_done("b")
        path = f"/api/v1/bases/b/items/{item['id']}"
        server.ask(202, "PUT", f"{path}/content", b"the new tide " + LARGE, Content_Type="text/plain")
        server.wait_until_done("b")
        assert server.ask(200, "GET", path)["generation"] == 2
        hits = server.ask(200, "POST", "/api/v1/bases/b/search", {"query": "tide", "top_k": 1})["hits"]
        assert hits[0]["text"].startswith("the new tide")
        server.ask(202, "PUT", f"{path}/content", b"the new tide " + LARGE, Content_Type="text/plain")
        assert server.ask(200, "GET", path)["generation"] == 2  # it is the same
        server.ask(404, "PUT", f"{path[:-1]}x/content", b"x", Content_Type="text/plain")


def test_large_upload_takes_little_memory():
    with Server("--set", "log.level=warn") as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b", "settings": {"limits": {}}})
        size = 256 << 20
        head = form([("huge.bin", b"")])[:-len(BOUNDARY) - 8]
        tail = f"\r\n--{BOUNDARY}--\r\n".encode()
        client = server.connect()
        client.sendall(f"POST /api/v1/bases/b/uploads?process=manual HTTP/1.1\r\nHost: localhost\r\n"
                       f"Content-Length: {len(head) + size + len(tail)}\r\n"
                       f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode() + head)
        block = bytes(1 << 20)
        before = resident_mb(server.process.pid)
        for _ in range(size >> 20):
            client.sendall(block)
        grown = resident_mb(server.process.pid) - before
        client.sendall(tail)
        assert client.recv(12) == b"HTTP/1.1 202"
        client.close()
        assert grown < 60, grown


def resident_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) >> 10


# ---- once, versions, ranges ----

def test_request_with_a_key_is_done_once():  # HTTP-5
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        note = {"items": [{"type": "note", "name": "n", "content": "x"}]}
        path = "/api/v1/bases/b/items"
        first = server.ask(202, "POST", path, note, Idempotency_Key="one")
        status, headers, again = server.call("POST", path, note, Idempotency_Key="one")
        assert status == 202 and again == first and headers["Idempotency-Replayed"] == "true"
        note["items"][0]["content"] = "y"
        assert server.ask(422, "POST", path, note, Idempotency_Key="one")["error"]["code"] == "idempotency_mismatch"
        assert server.ask(400, "POST", path, note, Idempotency_Key="a b")["error"]["code"] == "bad_request"
        # a request that was refused leaves its key free
        server.ask(422, "POST", path, {"items": [{"type": "what"}]}, Idempotency_Key="two")
        server.ask(202, "POST", path, note, Idempotency_Key="two")
        # of files it is they that count, not how they are sent
        server.upload(202, "b", [("a.txt", b"a")], Idempotency_Key="three")
        global BOUNDARY
        BOUNDARY, before = "another", BOUNDARY
        try:
            server.upload(202, "b", [("a.txt", b"a")], Idempotency_Key="three")
            server.upload(422, "b", [("a.txt", b"b")], Idempotency_Key="three")
        finally:
            BOUNDARY = before
        assert sorted(item["name"] for item in server.items("b")) == ["a.txt", "n", "n"]


def test_request_whose_server_died_is_not_begun_again():  # HTTP-5
    with tempfile.TemporaryDirectory() as data:
        note = {"items": [{"type": "note", "name": "n", "content": "x"}]}
        with Server(data=data, failpoints="once.done=crash") as server:
            server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
            try:
                server.call("POST", "/api/v1/bases/b/items", note, Idempotency_Key="one")
                raise AssertionError("it was answered")
            except (http.client.HTTPException, ConnectionError):
                pass
            server.process.wait()
            server.process.returncode = 0
        with Server(data=data) as server:
            answer = server.ask(409, "POST", "/api/v1/bases/b/items", note, Idempotency_Key="one")
            assert answer["error"]["code"] == "idempotency_pending"
            assert len(server.items("b")) == 1


def test_settings_change_only_in_the_version_that_is_meant():  # HTTP-8
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        etag = server.call("GET", "/api/v1/bases/b")[1]["ETag"]
        assert server.call("GET", "/api/v1/bases/b", If_None_Match=etag)[0] == 304
        change = {"settings": {"chunking": {"size_tokens": 200}}}
        status, headers, _ = server.call("PATCH", "/api/v1/bases/b", change, If_Match=etag)
        assert status == 200 and headers["ETag"] != etag
        answer = server.ask(409, "PATCH", "/api/v1/bases/b", change, If_Match=etag)
        assert answer["error"]["code"] == "version_conflict"
        assert server.ask(409, "PATCH", "/api/v1/bases/b", change, If_Match="what")["error"]["code"] == "version_conflict"
        server.ask(200, "PATCH", "/api/v1/bases/b", change, If_Match="*")
        server.ask(200, "GET", "/api/v1/bases/b", If_None_Match=etag)


def test_ranges_of_raw_content():  # HTTP-8
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        content = bytes(i % 251 for i in range(1000000))
        item = server.upload(202, "b", [("a.bin", content)])["items"][0]
        path = f"/api/v1/bases/b/items/{item['id']}/raw"
        for asked, first, last in (("0-0", 0, 0), ("5-99", 5, 99), ("999990-", 999990, 999999), ("-7", 999993, 999999),
                                   ("10-9999999", 10, 999999), ("-9999999", 0, 999999)):
            status, headers, data = server.call("GET", path, Range=f"bytes={asked}")
            assert (status, headers["Content-Range"]) == (206, f"bytes {first}-{last}/1000000"), (asked, status)
            assert data == content[first:last + 1], asked
        for asked in ("1000000-", "-0"):
            status, headers, data = server.call("GET", path, Range=f"bytes={asked}")
            assert (status, headers["Content-Range"]) == (416, "bytes */1000000"), asked
            assert data["error"]["code"] == "range_not_satisfiable"
        for asked in ("bytes=5-3", "bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=a-b"):
            assert server.ask(200, "GET", path, Range=asked) == content
        etag = server.call("GET", path)[1]["ETag"]
        assert server.call("GET", path, Range="bytes=0-1", If_Range=etag)[0] == 206
        assert server.call("GET", path, Range="bytes=0-1", If_Range='"other"')[0] == 200
        assert server.call("GET", path, If_None_Match=etag)[0] == 304


def test_large_content_is_sent_in_bounded_memory():  # HTTP-9
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        content = bytes(range(256)) * 4096 * 48 + b"!"
        item = server.ask(202, "POST", "/api/v1/bases/b/uploads?process=manual", form([("a.bin", content)]),
                          Content_Type=f"multipart/form-data; boundary={BOUNDARY}")["items"][0]
        path = f"/api/v1/bases/b/items/{item['id']}/raw"
        before = resident_mb(server.process.pid)
        status, headers, data = server.call("GET", path)
        assert status == 200 and headers["Content-Length"] == str(len(content)) and data == content
        grown = resident_mb(server.process.pid) - before
        assert grown < 20, grown
        etag = headers["ETag"]
        assert server.call("GET", path, If_None_Match=etag)[0] == 304
        status, headers, data = server.call("GET", path, Range="bytes=7-", If_Range=etag)
        assert (status, headers["Content-Range"]) == (206, f"bytes 7-{len(content) - 1}/{len(content)}")
        assert data == content[7:]
        status, headers, data = server.call("HEAD", path)
        assert (status, headers["Content-Length"], data) == (200, str(len(content)), b"")
        for _ in range(5):  # clients that leave in the middle leave nothing open
            with server.connect() as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                connection.recv(1000)
        fds = pathlib.Path(f"/proc/{server.process.pid}/fd")
        count = len(list(fds.iterdir()))
        server.wait_for("connections closed", lambda: len(list(fds.iterdir())) < count + 5)


# ---- around it ----

def test_requests_have_ids_and_no_secret_is_logged():  # KEY-9
    with Server() as server:
        _, headers, _ = server.call("GET", "/api/v1/bases?cursor=secret1", X_Request_Id="mine.1",
                                    Authorization="Bearer secret2")
        assert headers["X-Request-Id"] == "mine.1"
        server.wait_for("a line", lambda: "id=mine.1" in server.lines())
        assert "path=/api/v1/bases " in server.lines() and "secret" not in server.lines()
        misplaced = "qk_" + 43 * "A"
        server.call("GET", "/api/v1/bases/" + misplaced, X_Request_Id="mine.2")
        server.wait_for("a line", lambda: "id=mine.2" in server.lines())
        assert misplaced not in server.lines() and "qk_" + 43 * "*" in server.lines()
        status, headers, _ = server.call("POST", "/api/v1/bases", b"name=b", Content_Type="text/plain")
        assert status == 415 and headers["X-Request-Id"]
        status, headers, _ = server.call("PUT", "/api/v1/bases", {})
        assert status == 405 and "POST" in headers["Allow"]
        status, headers, data = server.call("HEAD", "/api/v1/bases")
        assert status == 200 and data == b"" and int(headers["Content-Length"]) > 0


def sockets_of(process):
    """How many it has open; one that is closed while they are counted is none."""
    count = 0
    for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            count += os.readlink(path).startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def test_clients_that_vanish_leak_no_descriptors():
    with Server() as server:
        server.ask(201, "POST", "/api/v1/bases", {"name": "b"})
        server.wait_for("rest", lambda: sockets_of(server.process) == sockets_of(server.process))
        before = sockets_of(server.process)
        for _ in range(5):
            for phase in (b"", b"GET /api", b"POST /api/v1/bases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
                          b"GET /api/v1/bases HTTP/1.1\r\nHost: localhost\r\n\r\n"):
                client = server.connect()
                client.sendall(phase)
                client.close()
            begin_upload(server).close()
            server.wait_for("no files", lambda: not files_below(server.data))
        server.wait_for("the same descriptors", lambda: sockets_of(server.process) <= before)


def test_server_stops_though_clients_stay():
    with Server() as server:
        idle = server.connect()
        half = server.connect()
        half.sendall(b"GET /api/v1/bas")
        server.ask(200, "GET", "/api/v1/bases")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        idle.close()
        half.close()


def test_command_line_works_through_a_server():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a.txt").write_text("the ferry leaves at noon")
        url = f"http://127.0.0.1:{server.port}"
        env = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "QUIRE_KEY": "qk_none"}

        def quire(*words):
            return subprocess.run([str(script.BUILD / "quire"), *words], env=env, capture_output=True, text=True, timeout=60)

        done = quire("--server", url, "add", folder)
        assert done.returncode == 0, done
        found = quire("--server", url, "--json", "search", "ferry")
        assert json.loads(found.stdout)["hits"][0]["name"] == "a.txt", found
        assert "qk_none" not in server.lines()
        for wrong in ("ftp://localhost", "http://", "http://localhost:0", "localhost:80"):
            assert quire("--server", wrong, "ls").returncode == 2, wrong
    assert quire("--server", url, "ls").returncode == 5


def test_address_that_others_can_reach_needs_a_key():
    with tempfile.TemporaryDirectory() as data:
        done = subprocess.run([str(script.BUILD / "quire"), "--data", data, "serve", "--listen", "0.0.0.0:0"],
                              capture_output=True, text=True, timeout=60, env=dict(os.environ, HOME="/nonexistent"))
        assert done.returncode != 0 and "(forbidden)" in done.stderr, done


if __name__ == "__main__":
    script.main(globals())
