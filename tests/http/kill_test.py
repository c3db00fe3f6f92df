#!/usr/bin/env python3
"""`quire serve` is killed around every change that it can be asked for: what was answered is there afterwards, what was not is
there whole or not at all, and nothing else is left."""
import http.client
import json
import pathlib
import re
import sqlite3
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import postgres  # noqa: E402
import script  # noqa: E402
from server import BOUNDARY, LARGE, Server, files_below, form  # noqa: E402

V1 = "/api/v1"
QUEUES = ("expand", "convert", "embed", "assets", "delete")
FILES = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
UNTOLD = {"created_at", "updated_at", "indexed_at", "finished_at", "run_at", "claimed_at", "at", "last_used_at", "added_at"}

# Each change twice: of the n-th of two things that are alike. What it is asked of, the failpoints around its commit, and the
# request. `seed` has the ids.
CHANGES = {
    ("POST", f"{V1}/bases"): ("base.add", lambda seed, n: {"name": f"new {n}"}),
    ("PATCH", f"{V1}/bases/{{b}}"): ("request", lambda seed, n: {"settings": {"chunking": {"size_tokens": 300 + n}}}),
    ("POST", f"{V1}/bases/{{b}}/restore"): ("base.restore", None),
    ("POST", f"{V1}/bases/{{b}}/items"):
        ("add", lambda seed, n: {"items": [{"type": "note", "name": f"added {n}", "content": f"tide {n}"}]}),
    ("POST", f"{V1}/bases/{{b}}/uploads"): ("add", lambda seed, n: form([(f"up {n}/a.txt", LARGE), (f"up {n}/b", b"x")])),
    ("PATCH", f"{V1}/bases/{{b}}/items/{{i}}"): ("patch", lambda seed, n: {"enabled": False, "attributes": {"n": n}}),
    ("PUT", f"{V1}/bases/{{b}}/items/{{i}}/content"): ("update", lambda seed, n: {"content": f"new tide {n}"}),
    ("POST", f"{V1}/bases/{{b}}/items/reindex"): ("reindex", lambda seed, n: {"ids": [seed.item("reindexed", n)]}),
    ("POST", f"{V1}/bases/{{b}}/items/retry"): ("retry", lambda seed, n: {"ids": [seed.item("missing", n)]}),
    ("POST", f"{V1}/bases/{{b}}/items/refresh"): ("refresh", lambda seed, n: {"ids": [seed.item("file", n)]}),
    ("POST", f"{V1}/knowledge-spaces/{{b}}/process"): ("process", lambda seed, n: {"process_new_documents": True}),
    ("POST", f"{V1}/runs/{{r}}/cancel"): ("run.cancel", None),
    ("POST", f"{V1}/jobs/{{j}}/cancel"): ("cancel", None),
    ("POST", f"{V1}/jobs/{{j}}/retry"): ("job.retry", None),
    ("POST", f"{V1}/bases/{{b}}/items/delete"): ("delete", lambda seed, n: {"ids": [seed.item("deleted", n)]}),
    ("POST", f"{V1}/queues/{{q}}/resume"): ("request", None),
    ("POST", f"{V1}/queues/{{q}}/pause"): ("request", None),
    ("POST", f"{V1}/models"): ("request", lambda seed, n: {"name": f"m{n}", "embedding": {"provider": "hash"}}),
    ("DELETE", f"{V1}/models/{{m}}"): ("request", None),
    ("POST", f"{V1}/keys"): ("request", lambda seed, n: {"name": f"made {n}", "roles": {"b": "viewer"}}),
    ("POST", f"{V1}/keys/{{k}}/rotate"): ("request", None),
    ("PUT", f"{V1}/bases/{{b}}/members/{{k}}"): ("request", lambda seed, n: {"role": "editor"}),
    ("DELETE", f"{V1}/bases/{{b}}/members/{{k}}"): ("request", None),
    ("DELETE", f"{V1}/keys/{{k}}"): ("request", None),
    ("DELETE", f"{V1}/bases/{{b}}"): ("base.delete", None),
}

# What else is no GET, and why it is not killed here.
OTHERS = {
    ("POST", f"{V1}/backup"): "a test of its own",
    ("POST", f"{V1}/check"): "mends what is damaged, one finding a transaction",
    ("POST", f"{V1}/cache/prune"): "evicts what nobody uses, one batch a transaction",
    ("POST", "/mcp"): "makes the requests above",
    ("POST", f"{V1}/search"): "changes nothing",
    ("POST", f"{V1}/bases/{{b}}/search"): "changes nothing",
    ("POST", "/retrieval"): "changes nothing",
    ("POST", "/v1/vector_stores/{b}/search"): "changes nothing",
    ("POST", "/v1/embeddings"): "changes nothing",
}


# ---- a folder with something of everything, in which no job runs ----

class Seed:
    def __init__(self, server):
        self.server, self.ids, self.key = server, {}, {}
        self.ask("POST", "/bases", {"name": "b"})
        self.add_finished()
        for queue in QUEUES:
            self.ask("POST", f"/queues/{queue}/pause")
        self.add_open()
        self.key["Authorization"] = "Bearer " + self.ask("POST", "/keys", {"name": "admin", "admin": True})["secret"]
        for n in (0, 1):
            for name in ("emptied", "broken", "idle"):
                self.ask("POST", "/bases", {"name": f"{name} {n}"})
            self.ask("POST", f"/bases/idle%20{n}/items", {"items": [note("n", "x")], "process": "manual"})
            self.ask("POST", "/models", {"name": f"model {n}", "embedding": {"provider": "hash"}})
            self.ids["key", n] = self.ask("POST", "/keys", {"name": f"key {n}"})["id"]
            self.ids["member", n] = self.ask("POST", "/keys", {"name": f"member {n}", "roles": {"b": "viewer"}})["id"]

    def ask(self, method, path, body=None):
        status, _, answer = self.server.call(method, V1 + path, body, **self.key)
        assert status < 300, (method, path, status, answer)
        return answer

    def item(self, name, n):
        return self.ids[name, n]

    def add_finished(self):
        folder = pathlib.Path(self.server.data)
        kinds = ("reindexed", "deleted", "patched", "updated")
        items = [note(f"{kind} {n}", f"{kind} tide") for kind in kinds for n in (0, 1)]
        for n in (0, 1):
            (folder / f"source {n}.txt").write_text("a mooring")
            items += [{"type": "file", "path": str(folder / f"source {n}.txt")},
                      {"type": "file", "path": str(folder / f"missing {n}.txt")}]
        added = self.ask("POST", "/bases/b/items", {"items": items})["items"]
        self.server.wait_until_done("b")
        names = [(kind, n) for kind in kinds for n in (0, 1)] + [(kind, n) for n in (0, 1) for kind in ("file", "missing")]
        self.ids.update((name, item["id"]) for name, item in zip(names, added))

    def add_open(self):
        """Jobs and runs that wait; two of the jobs were cancelled."""
        for n in (0, 1):
            for kind in ("cancelled", "retried"):
                item = self.ask("POST", "/bases/b/items", {"items": [note(f"{kind} {n}", "y")]})["items"][0]
                self.ids[kind, n] = self.ask("GET", f"/jobs?item={item['id']}")["data"][0]["id"]
            self.ask("POST", f"/jobs/{self.ids['retried', n]}/cancel")
            self.ask("POST", "/bases", {"name": f"run {n}"})
            self.ask("POST", f"/bases/run%20{n}/items", {"items": [note("n", "x")], "process": "manual"})
            self.ids["run", n] = self.ask("POST", f"/knowledge-spaces/run%20{n}/process",
                                          {"process_new_documents": True})["id"]

    def path(self, pattern, n):
        """Of the n-th thing that this is done to."""
        bases = {f"{V1}/bases/{{b}}/restore": f"broken%20{n}", f"{V1}/bases/{{b}}": f"emptied%20{n}",
                 f"{V1}/knowledge-spaces/{{b}}/process": f"idle%20{n}"}
        item = "updated" if pattern.endswith("/content") else "patched"
        job = "cancelled" if pattern.endswith("/cancel") else "retried"
        key = "member" if "/members/" in pattern else "key"
        values = {"{b}": bases.get(pattern, "b"), "{i}": self.ids[item, n], "{r}": self.ids["run", n], "{k}": self.ids[key, n],
                  "{j}": self.ids[job, n], "{q}": ("assets", "embed")[n], "{m}": f"model%20{n}"}
        return re.sub(r"\{.\}", lambda found: values[found[0]], pattern)


def note(name, content):
    return {"type": "note", "name": name, "content": content}


# ---- what is there ----

class Look:
    """All that a server shows of its folder, and the files of it: {(kind, name): fields}."""

    def __init__(self, server, seed):
        self.server, self.key, self.things = server, seed.key, {}
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        for base in self.put("base", "/bases?limit=200", "id"):
            for kind in ("items", "runs"):
                self.put(kind, f"/bases/{base['id']}/{kind}?limit=200", "id")
            self.put(f"members of {base['name']}", f"/bases/{base['id']}/members", "key_id")
        self.put("job", "/jobs?limit=200", "id", lambda job: job["base_id"])
        self.put("key", "/keys?limit=200", "id")
        self.put("model", "/models", "name")
        for queue in self.get("/queues")["data"]:
            self.things["queue", queue["name"]] = {"paused": queue["paused_since"] is not None}
        checked = self.ask("POST", "/check")
        assert checked["ok"] and checked["found"] == 0, checked
        self.connection.close()
        folder = pathlib.Path(server.data)
        for path in folder.rglob("*"):
            if path.is_file() and ("artifacts" in path.parts or "backups" in path.parts or path.name.startswith(".")):
                self.things["file", str(path.relative_to(folder))] = {"size": path.stat().st_size}

    def ask(self, method, path):
        self.connection.request(method, V1 + path, headers=self.key)
        answer = self.connection.getresponse()
        data = json.loads(answer.read())
        assert answer.status == 200, (path, data)
        return data

    def get(self, path):
        return self.ask("GET", path)

    def put(self, kind, path, name, chosen=lambda thing: True):
        answer = self.get(path)
        assert answer["next_cursor"] is None, path
        for thing in filter(chosen, answer["data"]):
            self.things[kind, thing[name]] = {field: thing[field] for field in thing if field not in UNTOLD}
        return answer["data"]

    def ids(self):
        return ids_in([[name, fields] for (_, name), fields in self.things.items()])

    def difference(self, other):
        """What is new, gone and changed in the other, without ids: equal for two changes that are alike."""
        found = []
        for kind, name in {**self.things, **other.things}:
            old, new = self.things.get((kind, name)), other.things.get((kind, name))
            if old != new:
                fields = sorted(field for field in {**(old or {}), **(new or {})}
                                if (old or {}).get(field) != (new or {}).get(field))
                found.append((kind, "new" if not old else "gone" if not new else "changed", *fields))
        return sorted(found)


def ids_in(answer):
    return set(ID.findall(json.dumps(answer)))


# ---- one change ----

class Walk:
    """The lives of one folder. Each begins with a look at what the life before has left."""

    def __init__(self, data, *words):
        self.data, self.words, self.expected = data, words, None
        with Server(*words, data=data) as server:
            self.seed = Seed(server)
            self.routes = routes(server)

    def life(self, failpoints, method, pattern, n):
        """Its look, and the answer of the request in the end of which the server is killed; None = it died before."""
        _, make = CHANGES[method, pattern]
        body = make(self.seed, n) if make else None
        headers = {**self.seed.key, **(FILES if isinstance(body, bytes) else {})}
        with Server(*self.words, data=self.data, failpoints=failpoints) as server:
            look = Look(server, self.seed)
            try:
                status, _, answer = server.call(method, self.seed.path(pattern, n), body,
                                                **{name.replace("-", "_"): value for name, value in headers.items()})
            except (http.client.HTTPException, ConnectionError):
                answer = None
                assert failpoints, "the server died"
                server.process.wait()
                server.process.returncode = 0
            else:
                server.kill()
                assert status in (200, 201, 202), (method, pattern, status, answer)
        return look, answer

    def change(self, method, pattern):
        """Three lives; what the last one has left is seen by whoever looks next."""
        point = CHANGES[method, pattern][0]
        where = f"{method} {pattern}"
        first, answer = self.life("", method, pattern, 0)
        self.expect(first)
        second, before = self.life(f"{point}.before_commit=crash", method, pattern, 1)
        third, after = self.life(f"{point}.after_commit=crash", method, pattern, 1)
        assert before is None and after is None, f"{where} has no failpoints {point}.*"
        answered = first.difference(second)
        assert answered, f"{where}: what was answered is not there"
        assert ids_in(answer) <= first.ids() | second.ids(), (where, answer)
        assert second.difference(third) == [], (where, second.difference(third))  # it had not been committed
        self.expected = (where, third, answered)

    def expect(self, look):
        """What was committed and not answered is there as what was answered is."""
        where, before, answered = self.expected or ("", look, [])
        assert before.difference(look) == answered, (where, before.difference(look), answered)

    def end(self):
        with Server(*self.words, data=self.data) as server:
            self.expect(Look(server, self.seed))


def routes(server):
    paths = server.ask(200, "GET", "/openapi.json")["paths"]
    return {(method.upper(), path) for path in paths for method in paths[path] if method in ("post", "put", "patch", "delete")}


def break_bases(data):
    """Nothing that can be asked for makes a base fail."""
    database = sqlite3.connect(pathlib.Path(data, "quire.db"))
    database.execute("UPDATE base SET status = 2, error_code = 'index_lost' WHERE name LIKE 'broken %'")
    database.commit()
    database.close()


def test_every_change_that_was_answered_survives_and_no_other_begins():  # REQ-6, REQ-1, I5, HTTP-4
    with tempfile.TemporaryDirectory() as data:
        walk = Walk(data)
        assert walk.routes == {*CHANGES, *OTHERS}, walk.routes ^ {*CHANGES, *OTHERS}
        break_bases(data)
        for method, pattern in CHANGES:
            walk.change(method, pattern)
        walk.end()


def test_files_of_an_upload_that_was_not_committed_are_removed_at_the_next_start():  # HTTP-4
    with tempfile.TemporaryDirectory() as data:
        with Server(data=data, failpoints="artifact.file.written=crash@2") as server:
            server.ask(201, "POST", f"{V1}/bases", {"name": "b"})
            try:
                server.upload(202, "b", [("one", LARGE), ("two", LARGE)])
                raise AssertionError("it was answered")
            except (http.client.HTTPException, ConnectionError):
                server.process.wait()
                server.process.returncode = 0
            assert len(files_below(data)) == 2  # they have their names, and nobody knows them
        with Server(data=data) as server:
            assert server.items("b") == [] and files_below(data) == [], files_below(data)
            assert not list(pathlib.Path(data).glob(".quire-*"))


def test_backup_that_was_killed_leaves_nothing():  # BACKUP-3
    with tempfile.TemporaryDirectory() as data:
        for point in ("backup.stores_copied", "backup.before_name"):
            with Server(data=data, failpoints=f"{point}=crash") as server:
                try:
                    server.call("POST", f"{V1}/backup")
                    raise AssertionError("it was answered")
                except (http.client.HTTPException, ConnectionError):
                    server.process.wait()
                    server.process.returncode = 0
                assert len(list(pathlib.Path(data, "backups").iterdir())) == 1
            with Server(data=data) as server:
                assert list(pathlib.Path(data, "backups").iterdir()) == []
                server.kill()
        with Server(data=data) as server:
            kept = pathlib.Path(server.ask(201, "POST", f"{V1}/backup")["path"])
            server.kill()
        with Server(data=data) as server:
            assert list(pathlib.Path(data, "backups").iterdir()) == [kept]


def test_changes_on_postgresql_survive_too():  # REQ-6
    with postgres.Server() as database, tempfile.TemporaryDirectory() as data:
        walk = Walk(data, "--set", f"database.url={database.url}")
        for method, pattern in CHANGES:
            if pattern in (f"{V1}/bases/{{b}}/items", f"{V1}/bases/{{b}}/uploads", f"{V1}/bases/{{b}}/items/delete",
                           f"{V1}/keys/{{k}}"):
                walk.change(method, pattern)
        walk.end()


if __name__ == "__main__":
    script.main(globals())
