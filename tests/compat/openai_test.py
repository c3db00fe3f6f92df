#!/usr/bin/env python3
"""The client of OpenAI searches a base and makes vectors."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import npm  # noqa: E402
import script  # noqa: E402
import server  # noqa: E402


def ask(url, path, body, method="POST"):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"},
                                     method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def fill(data, url):
    ask(url, "/api/v1/bases", {"name": "town", "settings": {"embedding": {"provider": "hash"}}})
    notes = [("harbour", "Boats may enter at high tide.", {"town": "hamburg", "year": 2024}),
             ("beach", "At low tide one can walk far out.", {"town": "bremen", "year": 2024}),
             ("bakery", "Bread leaves the oven at six.", {})]
    ask(url, "/api/v1/bases/town/items", {"items": [
        {"type": "note", "name": name, "content": text, "attributes": attributes} for name, text, attributes in notes]})
    subprocess.run([str(script.BUILD / "quire"), "wait"], env=dict(os.environ, QUIRE_DATA=data), check=True,
                   capture_output=True)


def test_the_client_of_openai_searches_and_embeds():
    npm.folder()
    with tempfile.TemporaryDirectory() as data, server.Server(data=data) as running:
        fill(data, running.url)
        seen = npm.run("openai_client.mjs", running.url, "town")
    assert seen["dimension"] > 8 and seen["indexes"] == [0, 1] and seen["same"] and seen["alone"], seen
    assert seen["usage"]["total_tokens"] > 0, seen
    assert seen["tokens"]["status"] == 422 and "token ids" in seen["tokens"]["message"], seen
    assert seen["empty"]["status"] == 422 and seen["unknown"]["status"] == 404, seen
    names = [hit["name"] for hit in seen["found"]]
    assert set(names[:2]) == {"harbour", "beach"}, seen
    assert all(0 <= hit["score"] <= 1 for hit in seen["found"]), seen
    assert len(seen["several"]) == 1 and seen["several"][0]["name"] == "harbour", seen
    assert [hit["name"] for hit in seen["filtered"]] == ["harbour"], seen
    assert seen["filtered"][0]["attributes"] == {"town": "hamburg", "year": 2024}, seen
    assert seen["none"] == [] and seen["badFilter"]["code"] == "invalid_value", seen
    assert seen["noStore"]["status"] == 404 and seen["noStore"]["code"] == "not_found", seen


if __name__ == "__main__":
    script.main(globals())
