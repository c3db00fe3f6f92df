#!/usr/bin/env python3
"""Clients that are not ours use the MCP tools, by the older protocol and the one of 2026-07-28, over a pipe and over HTTP."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import npm  # noqa: E402
import script  # noqa: E402
import server  # noqa: E402

TOOLS = ["quire_search", "quire_read", "quire_list", "quire_add", "quire_status", "quire_delete"]


def check(seen, version=None):
    assert seen["server"] == "quire", seen
    assert seen["tools"] == TOOLS and seen["destructive"] == ["quire_delete"], seen
    assert seen["cited"]["name"] == "harbour.md" and seen["cited"]["item"], seen
    assert seen["cited"]["heading"].startswith("Harbour") and seen["cited"]["lines"][0] in (1, 3), seen
    assert seen["listed"] == ["harbour.md"], seen
    assert seen["refused"]["isError"] and seen["refused"]["text"].startswith("not_found: "), seen
    assert "Next: " in seen["refused"]["text"], seen
    assert seen["deleted"] == 1 and seen["left"] == 0, seen
    assert version is None or seen["version"] == version, seen


def over_a_pipe(era):
    npm.folder()
    with tempfile.TemporaryDirectory() as data:
        return npm.run("mcp_client.mjs", era, "stdio", str(script.BUILD / "quire"), data)


def over_http(era):
    npm.folder()
    with tempfile.TemporaryDirectory() as data, server.Server(data=data) as running:
        return npm.run("mcp_client.mjs", era, "http", running.url + "/mcp")


def test_the_older_client_works_over_a_pipe():
    check(over_a_pipe("old"))


def test_the_new_client_works_over_a_pipe():
    check(over_a_pipe("new"), "2026-07-28")


def test_a_client_that_looks_for_the_version_finds_the_new_one():
    check(over_a_pipe("auto"), "2026-07-28")


def test_the_older_client_works_over_http():
    check(over_http("old"))


def test_the_new_client_works_over_http():
    check(over_http("new"), "2026-07-28")


def test_a_pipe_works_through_the_server_that_owns_the_folder():
    npm.folder()
    with tempfile.TemporaryDirectory() as data, server.Server(data=data):
        check(npm.run("mcp_client.mjs", "new", "stdio", str(script.BUILD / "quire"), data))


if __name__ == "__main__":
    script.main(globals())
