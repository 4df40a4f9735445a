"""Tokens with a filter each: what a token may not see, no route shows it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest
import yaml
from mcp import Client

from .asking_mcp import called, over_http, refused
from .running import Running, item, make_index, running

ALL, PART, OTHER = "0123456789abcdef-all", "0123456789abcdef-part", "0123456789abcdef-other"
WHERE = {"year": {"lt": 2003}}
SEEN = {"p0", "p1", "p2"}


def hashed(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def written(folder: Path, rows: object) -> Path:
    (folder / "tokens.yaml").write_text(yaml.safe_dump(rows))
    return folder / "tokens.yaml"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("tokens")
    secret = item(6, "fox of others").model_copy(update={"metadata": {"year": 2006, "owner": "them"}})
    make_index(folder / "index", 6).add([secret])
    rows = {
        "all": {"sha256": hashed(ALL)},
        "part": {"sha256": hashed(PART), "where": WHERE},
        "other": {"sha256": hashed(OTHER).upper(), "where": {"year": 2005}},
    }
    words = [folder / "index", "--mcp-http", "--tokens", written(folder, rows), "--record", folder / "sessions"]
    with running(words) as service:
        yield service


def ids_of(client: httpx2.Client, path: str = "/search", **asked: object) -> set[str]:
    answer = client.post(path, json={"query": "fox dog", "k": 100} | asked)
    assert answer.status_code == 200, answer.text
    return {hit["item"]["item_id"] for hit in answer.json()["results"]}


def test_no_filter_of_a_request_loosens_that_of_its_token(service: Running) -> None:
    with service.client(ALL) as everything, service.client(PART) as part, service.client(OTHER) as other:
        assert ids_of(everything) == {f"p{number}" for number in range(7)}
        assert ids_of(part) == ids_of(part, path="/search/") == SEEN
        assert ids_of(other) == {"p5"}
        for where in (
            {"year": {"gte": 0}},
            {"or": [{"year": {"gte": 2003}}, {"year": {"lt": 2003}}]},
            {"not": {"year": 1}},
            {"and": [{"not": {"year": {"lt": 2003}}}]},
            {"or": [{"not": {"and": [{"year": {"lt": 2003}}]}}]},
        ):
            assert ids_of(part, where=where) <= SEEN
    for token in (None, "0123456789abcdef-no", hashed(PART)):
        with service.client(token) as nobody:
            assert nobody.post("/search", json={"query": "fox"}).status_code == 401
    bearer = f"Bearer {ALL}"
    for values in (["Bearer"], [bearer[:-1]], [ALL], [f"{bearer} {ALL}"], [b"Bearer \xff"], [f"Basic {ALL}"], [bearer, bearer]):
        with service.client() as nobody:
            answer = nobody.post("/nowhere", content=b"[", headers=[("Authorization", value) for value in values])
            assert (answer.status_code, ALL in answer.text) == (401, False), "refused before it is read"


def test_every_other_route_is_refused_to_a_token_with_a_filter(service: Running) -> None:
    with service.client(ALL) as everything, service.client(PART) as part:
        routes = [
            (path, method) for path, of_path in everything.get("/openapi.json").json()["paths"].items() for method in of_path
        ]
        shown = set()
        for path, method in [*routes, ("/openapi.json", "get"), ("/metrics", "get"), ("/nothing", "get")]:
            status = part.request(method.upper(), path, json={} if method == "post" else None).status_code
            shown |= {path} if status not in (401, 403) else set()
        assert shown == {"/search", "/submit_answer", "/livez", "/readyz"}


def test_a_metadata_key_of_others_alone_is_as_one_that_nobody_has(service: Running) -> None:
    with service.client(ALL) as everything, service.client(PART) as part:
        assert ids_of(everything, where={"owner": "them"}) == {"p6"}
        said = [part.post("/search", json={"query": "fox", "where": {key: "x"}}) for key in ("owner", "nobodys")]
        assert [answer.status_code for answer in said] == [422, 422]
        first, second = (answer.json()["error"]["message"] for answer in said)
        assert first.replace("owner", "nobodys") == second
        assert ids_of(part, where={"year": {"exists": True}, "title": "T1"}) == {"p1"}


def test_tools_show_what_the_token_may_see(service: Running) -> None:
    async def ask(client: Client) -> None:
        (searching,) = (tool for tool in (await client.list_tools()).tools if tool.name == "search")
        assert ('"year"' in searching.description, "owner" in searching.description) == (True, False)
        found = await called(client, "search", query="fox dog", k=100, where={"year": {"gte": 0}})
        assert {hit["item"]["item_id"] for hit in found["results"]} == SEEN
        assert (await called(client, "read_passage", item_id="p1"))["item_id"] == "p1"
        assert "no item of this index has the id 'p5'" in await refused(client, "read_passage", item_id="p5")

    over_http(service.url, PART, ask)


def test_one_token_does_not_write_into_the_session_of_another(service: Running) -> None:
    for token in (ALL, PART):
        with service.client(token) as client:
            headers = {"X-Session-Id": "s", "X-Question-Id": "q"}
            client.post("/search", json={"query": "fox"}, headers=headers)
            answer = client.post("/submit_answer", json={"answer": "A fox."}, headers=headers)
            assert answer.json() == {"session": f"{'all' if token == ALL else 'part'}:s"}


def test_a_project_shows_a_token_with_a_filter_its_search_alone(tmp_path: Path) -> None:
    rows = {"all": {"sha256": hashed(ALL)}, "part": {"sha256": hashed(PART), "where": {"quality": "A"}}}
    words = [tmp_path, "--as", "project", "-r", "bm25", "--mcp-http", "--tokens", written(tmp_path, rows)]
    with running(words) as service, service.client(ALL) as everything, service.client(PART) as part:
        sources = [
            {"content": f"The river number {number} is long.", "url": f"https://example.org/{quality}", "quality": quality}
            for number, quality in enumerate("AD")
        ]
        everything.post("/index", json={"documents": sources})
        assert len(everything.post("/search", json={"query": "river", "k": 9}).json()["passages"]) == 2
        found = part.post("/search", json={"query": "river", "k": 9, "where": {"quality": {"in": ["A", "D"]}}}).json()[
            "passages"
        ]
        assert [passage["quality"] for passage in found] == ["A"]
        assert part.post("/search", json={"query": "nothing"}).json() == {"passages": [], "notes": []}
        for path, of_path in everything.get("/openapi.json").json()["paths"].items():
            for method in of_path if path not in ("/search", "/livez", "/readyz") else ():
                asked = part.request(method.upper(), path.replace("{key}", "x"), json={})
                assert (path, method, asked.status_code) == (path, method, 403)

        async def ask(client: Client) -> None:
            for tool in (await client.list_tools()).tools:
                arguments = dict.fromkeys(tool.input_schema.get("required", []), "x")
                if tool.name != "search":
                    said = await refused(client, tool.name, **arguments)
                    assert "shows more than this token may see" in said, (tool.name, said)

        over_http(service.url, PART, ask)


def test_a_source_that_a_token_may_not_see_is_hidden_by_each_of_its_urls_in_each_form(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    first, second, seen = "http://a.example/x/", "https://b.example/y", "https://c.example/z"
    hidden: list[object] = ["https://a.example/x", first, "https://A.example:443/x/?utm_source=q#top", second, f"{second}/"]
    hidden += [{"eq": first}, {"in": [second]}]
    filters: list[object] = [{"not": {key: value}} for key in ("url", "metadata.url") for value in hidden]
    filters += [{"and": [{"not": {"or": [{"url": second}]}}]}, {"url": f"{seen}/#top"}]
    tokens = {f"token-number-{number:010}": where for number, where in enumerate(filters)}
    rows: dict[str, object] = {"all": {"sha256": hashed(ALL)}}
    rows |= {token: {"sha256": hashed(token), "where": where} for token, where in tokens.items()}
    with running([tmp_path, "--as", "project", "-r", "bm25", "--tokens", written(tmp_path, rows)]) as service:
        with service.client(ALL) as everything:
            given = [(first, "The river is secret."), (second, "The river is secret."), (seen, "The river is long.")]
            everything.post("/index", json={"documents": [{"url": url, "content": content} for url, content in given]})
            (found,) = everything.post("/search", json={"query": "river", "where": {"url": first}}).json()["passages"]
            assert found["url"] == first
        for token, where in tokens.items():
            with subtests.test(where=where), service.client(token) as part:
                answer = part.post("/search", json={"query": "river", "where": {"start": 0}}).json()
                assert [passage["url"] for passage in answer["passages"]] == [seen]
