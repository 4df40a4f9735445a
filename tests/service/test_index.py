"""An index that is served: it answers as the library does, and follows what others add."""

from __future__ import annotations

import json
import subprocess

import pytest

from nlp_retrieval import Bm25Retriever, Searcher

from .running import COMMAND, error_of, item, make_index, running


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "index"
    searcher = make_index(folder)
    with running([folder, "--max-body", "0.05"]) as service, service.client() as client:
        yield service, client, searcher


def as_library(searcher, query, k):
    (hits,) = searcher.search(query, k)
    return [hit.model_dump(mode="json") for hit in hits]


def test_it_finds_what_the_library_finds(served):
    _, client, searcher = served
    answer = client.post("/search", json={"query": "dog number3", "k": 4})
    assert answer.status_code == 200
    assert answer.json() == {"results": as_library(searcher, "dog number3", 4), "notes": []}
    assert answer.json()["results"][0]["item"]["item_id"] == "p3"


def test_every_answer_has_the_shape_that_the_schema_says(served):
    import jsonschema

    _, client, _ = served
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/search", "/stats", "/livez", "/readyz", "/metrics"}
    asked = {
        ("/search", "post", "200"): client.post("/search", json={"query": "fox"}),
        ("/search", "post", "422"): client.post("/search", json={"query": 5}),
        ("/stats", "get", "200"): client.get("/stats"),
        ("/readyz", "get", "200"): client.get("/readyz"),
    }
    for (path, method, status), answer in asked.items():
        assert str(answer.status_code) == status
        wanted = schema["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), wanted | {"components": schema["components"]})


UNUSABLE = [
    ({}, "query: Field required"),
    (["fox"], "body: Input should be a valid dictionary"),
    ({"query": 5}, "query: "),
    ({"query": "a", "k": 1001}, "k: Input should be less than or equal to 1000"),
    ({"query": "a", "depth": 3}, "depth: "),
    ({"query": "a", "where": {"year": {"like": 3}}}, "where.year: there is no operator 'like'"),
]


def test_what_cannot_be_searched_is_refused_with_the_place(served, subtests):
    for body, said in UNUSABLE:
        with subtests.test(str(body)[:80]):
            answer = served[1].post("/search", content=json.dumps(body), headers={"Content-Type": "application/json"})
            assert said in error_of(answer, 422, "invalid_request")


NO_JSON = [
    (b'{"query": "fox"', "not valid JSON"),
    (b"[" * 20_000, "nested too deeply"),
    (b'{"query": "fox", "where": ' + b'{"not": ' * 200 + b"1" + b"}" * 201, "nested too deeply"),
    (b'{"query": "fox", "k": ' + b"9" * 5000 + b"}", "number is infinity"),
    (b'{"query": "\\ud800"}', "half of a surrogate pair"),
    ('{"query": "fox"}'.encode("utf-16"), "not UTF-8"),
]


def test_a_body_that_is_no_json_is_refused(served, subtests):
    for body, said in NO_JSON:
        with subtests.test(str(body)[:80]):
            answer = served[1].post("/search", content=body, headers={"Content-Type": "application/json"})
            assert said in error_of(answer, 400, "invalid_json")


def test_a_body_that_is_too_large_is_refused_by_what_it_declares_and_by_what_it_sends(served):
    service, client, _ = served
    kind = {"Content-Type": "application/json"}
    error_of(client.post("/search", content=b" " * 60_000, headers=kind), 413, "too_large")
    error_of(client.post("/search", content=(b" " * 1000 for _ in range(60)), headers=kind), 413, "too_large")
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    for declared in (b"52429", b"9" * 15):
        answer = service.raw(head + declared + b"\r\n\r\n")  # nothing of the body was sent
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer
    assert client.post("/search", json={"query": "fox"}).status_code == 200


def test_only_a_name_of_this_machine_is_answered(served):
    for host in ("evil.example", "127.0.0.1.evil.example", "", "[::"):
        for path in ("/stats", "/readyz"):
            error_of(served[1].get(path, headers={"Host": host}), 421, "wrong_host")
    for host in ("localhost", "LOCALHOST:1234", "127.0.0.1", "127.1.2.3:99", "[::1]:80", "localhost."):
        assert served[1].get("/stats", headers={"Host": host}).status_code == 200


def test_what_other_processes_do_to_the_index_is_followed_without_a_restart(tmp_path):
    folder = tmp_path / "index"
    make_index(folder, 5)
    (tmp_path / "more.jsonl").write_text('{"id": "p99", "content": "a walrus"}')
    with running([folder]) as service, service.client() as client:
        assert client.post("/search", json={"query": "walrus"}).json()["results"] == []
        subprocess.run([COMMAND, "add", str(tmp_path / "more.jsonl"), str(folder)], check=True, capture_output=True)
        found = client.post("/search", json={"query": "walrus"}).json()["results"]
        assert [hit["item"]["item_id"] for hit in found] == ["p99"]
        assert client.get("/stats").json()["generation"] == 2
        Searcher([Bm25Retriever(stemmer="none")]).index([item(1, "a lynx")], folder, replace=True)
        error_of(client.post("/search", json={"query": "lynx"}), 409, "index_state")
        (folder / "manifest.json").unlink()
        error_of(client.post("/search", json={"query": "fox"}), 409, "index_state")
        error_of(client.get("/readyz"), 503, "not_ready")


def test_only_a_proxy_that_is_named_says_who_asks(served, tmp_path):
    make_index(tmp_path / "index", 3)
    asks = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    service, client, _ = served
    assert client.get("/stats", headers=asks).status_code == 200
    with running([tmp_path / "index", "--proxy", "127.0.0.1"]) as behind, behind.client() as asking:
        assert asking.get("/stats", headers=asks).status_code == 200
    assert "client=203.0.113.9" in "".join(behind.said)
    assert "203.0.113.9" not in "".join(service.said)
