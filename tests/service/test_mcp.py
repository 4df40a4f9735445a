"""What is served, used by clients of the Model Context Protocol: the same answers, limits and refusals as over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client, MCPError

from nlp_retrieval import Bm25sRetriever, Searcher
from nlp_retrieval.errors import DependencyError
from nlp_retrieval.evidence import ClaimVerifier, EvidenceIndex, LexicalVerifier
from nlp_retrieval.service.endpoints import ABOUT_TEXTS
from nlp_retrieval.service.mcp import require_mcp
from nlp_retrieval.systems.evidence.citations.audit_json import audit_json
from nlp_retrieval.systems.evidence.citations.auditor import CitationAuditor

from .asking_mcp import called, over_http, over_stdio, refused
from .running import COMMAND, item, make_index, running

TOKEN = "0123456789abcdef-token"
DANUBE = "The Danube flows through Vienna. It is 2,850 kilometres long."
URL = "https://example.org/danube"
CLAIM = "The Danube flows through Vienna."
REPORT = f"{CLAIM[:-1]} [1]. The Danube is 900 kilometres long [1].\n\n## References\n\n[1] Danube. {URL}\n"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def index(tmp_path):
    folder = tmp_path / "index"
    make_index(folder, 6)
    return folder


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    words = [folder, "--as", "project", "-r", "bm25s", "--mcp-http", "--max-body", "3"]
    with running(words, NLP_RETRIEVAL_TOKEN=TOKEN) as service:
        yield service


async def all_tools(client: Client) -> dict[str, Any]:
    """Use every tool of a project, and compare with the schemas that were listed."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    found = {
        "add_document": await called(client, "add_document", content=DANUBE, url=URL, title="Danube", quality="B"),
        "search": await called(client, "search", query="Danube", k=3, min_quality="C"),
        "verify_claim": await called(client, "verify_claim", claim=CLAIM, claim_type="C1"),
        "audit_report": await called(client, "audit_report", report=REPORT),
    }
    (passage,) = found["search"]["passages"]
    found["read_passage"] = await called(client, "read_passage", key=passage["key"], start=passage["start"])
    assert listed.keys() == found.keys()
    for name, answer in found.items():
        jsonschema.validate(answer, listed[name].output_schema or {})
        assert listed[name].input_schema["additionalProperties"] is False
        assert (answer.get("about_texts") == ABOUT_TEXTS) == (name != "add_document")
        assert listed[name].annotations.read_only_hint == (name != "add_document")
    return found


def as_the_library(found: dict[str, Any], folder: Path) -> None:
    """Whether answers are those of the library."""
    with EvidenceIndex(folder, Searcher([Bm25sRetriever()])) as index:
        verifier = LexicalVerifier()
        audit = CitationAuditor(index, verifier).audit(REPORT)
        verdict = ClaimVerifier(index, verifier).verify(CLAIM, "C1").as_dict()
        said = {"about_texts": ABOUT_TEXTS}
        assert found["verify_claim"] == said | json.loads(json.dumps(verdict))
        assert found["audit_report"] == said | json.loads(audit_json(audit.rows, audit.report))
        assert [one["content"] for one in found["search"]["passages"]] == [DANUBE]
        assert [one["content"] for one in found["read_passage"]["passages"]] == [DANUBE]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_of_a_project_works_over_standard_input_and_output(project, mode):
    found = over_stdio([project, "--as", "project", "-r", "bm25s"], all_tools, mode)
    assert found["add_document"] == {"added": [True], "document_count": 1, "passage_count": 1, "index_built": True}
    as_the_library(found, project)


def test_every_tool_of_a_project_works_over_http(http):
    found = over_http(http.url, TOKEN, all_tools)
    again = over_http(http.url, TOKEN, all_tools, "legacy")
    assert found["add_document"]["added"] == [True]
    assert again["add_document"]["added"] == [False]
    with http.client(TOKEN) as client:
        assert client.post("/verify", json={"claim": CLAIM, "claim_type": "C1"}).json() == {
            key: value for key, value in found["verify_claim"].items() if key != "about_texts"
        }


def test_an_index_is_searched_and_read_and_a_newer_generation_is_taken_up(index):
    async def ask(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"search", "read_passage"}
        found = await called(client, "search", query="dog", k=2, where={"year": {"gte": 2001}})
        assert [one["item"]["item_id"] for one in found["results"]] == ["p3"]
        assert found["about_texts"] == ABOUT_TEXTS
        assert (await called(client, "read_passage", item_id="p3"))["content"] == "fox number3 dog"
        assert "no item of this index has the id 'p9'" in await refused(client, "read_passage", item_id="p9")
        searcher = Searcher([Bm25sRetriever()])
        searcher.open(index)
        searcher.add([item(9, "a heron, and no fox")])
        assert (await called(client, "read_passage", item_id="p9"))["content"] == "a heron, and no fox"
        assert len((await called(client, "search", query="heron"))["results"]) == 1
        searcher.delete(["p3"])
        assert "p3" in await refused(client, "read_passage", item_id="p3")
        assert (await called(client, "search", query="dog", k=3.0))["results"][0]["item"]["item_id"] == "p0"

    over_stdio([index], ask)


DEEP: Any = "x"
for _ in range(120):
    DEEP = {"not": DEEP}

REFUSED = [
    ("search", {"query": "x", "k": 2000}, "k: Input should be less than or equal to 1000"),
    ("search", {"query": "x", "k": 0}, "k: Input should be greater than or equal to 1"),
    ("search", {"query": "x", "k": "5"}, "k: Input should be a valid integer"),
    ("search", {}, "query: Field required"),
    ("search", {"query": "x" * 10_001}, "query: String should have at most 10000 characters"),
    ("search", {"query": "x", "path": "/etc/passwd"}, "path: Extra inputs are not permitted"),
    ("search", {"query": "x", "where": {"url": {"near": 1}}}, "near"),
    ("search", {"query": "x", "where": DEEP}, "nested deeper than 100"),
    ("search", {"query": "x", "min_quality": "F"}, "min_quality"),
    ("read_passage", {"key": "0123456789ab"}, "0123456789ab"),
    ("read_passage", {"key": "../../etc/passwd"}, "passwd"),
    ("read_passage", {"key": "x", "count": 101}, "count: Input should be less than or equal to 100"),
    ("verify_claim", {"claim": ""}, "claim: String should have at least 1 character"),
    ("verify_claim", {"claim": "x", "claim_type": "C9"}, "claim_type"),
    ("audit_report", {"report": "x" * 200_001}, "report: String should have at most 200000 characters"),
    ("audit_report", {"report": None}, "report: Input should be a valid string"),
    ("add_document", {"content": "", "url": URL}, "content: String should have at least 1 character"),
    ("add_document", {"content": "x", "url": "javascript:alert(1)"}, "javascript"),
    ("add_document", {"content": "x" * (3 * 2**20), "url": URL}, "larger than"),
    ("drop_table", {}, "there is no tool 'drop_table'; there are search, read_passage"),
]


async def all_refused(client: Client) -> list[str]:
    """What is said to every call that is refused, over one connection."""
    return [await refused(client, name, **given) for name, given, _ in REFUSED]


def test_what_is_refused_is_said_in_one_line_and_the_server_goes_on(project):
    for (name, _, expected), said in zip(
        REFUSED, over_stdio([project, "--as", "project", "-r", "bm25s", "--max-body", "3"], all_refused), strict=True
    ):
        assert expected in said, name
        assert str(project) not in said


def test_over_http_the_same_is_refused_and_what_is_too_large_or_deep_before_it_is_read(http):
    before_it_is_read = {"larger than", "nested deeper than 100"}

    async def ask(client: Client) -> list[tuple[str, str]]:
        return [
            (expected, await refused(client, name, **given))
            for name, given, expected in REFUSED
            if expected not in before_it_is_read
        ]

    for expected, said in over_http(http.url, TOKEN, ask):
        assert expected in said

    async def too_much(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("add_document", {"content": "x" * (3 * 2**20), "url": URL})

    over_http(http.url, TOKEN, too_much)


# who may ask over HTTP

ASKS = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x"])
def test_without_the_token_nothing_is_answered(http, token):
    with http.client(token) as client:
        answer = client.post("/mcp", json=HELLO, headers=ASKS)
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "unauthorized"

    async def ask(client: Client) -> None:
        await client.list_tools()

    with pytest.raises(BaseException) as caught:
        over_http(http.url, token, ask)
    assert TOKEN not in repr(caught.value).replace(TOKEN + "x", "")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_page_in_a_browser_cannot_ask(http, headers, status):
    with http.client(TOKEN) as client:
        answer = client.post("/mcp", content=json.dumps(HELLO), headers=ASKS | {"Content-Type": "application/json"} | headers)
        assert answer.status_code == status, answer.text


def test_nothing_is_pushed_and_only_one_path_answers(http, index):
    with http.client(TOKEN) as client:
        assert client.get("/mcp", headers=ASKS).status_code == 405
        assert client.delete("/mcp").status_code == 405
        assert client.post("/mcp/x", json=HELLO).status_code == 404
        assert "/mcp" not in client.get("/openapi.json").json()["paths"]
    with running([index]) as service, service.client() as client:
        assert client.post("/mcp", json=HELLO, headers=ASKS).status_code == 404, "without --mcp-http"


def test_any_of_several_processes_answers(index):
    async def ask(client: Client) -> list[dict[str, Any]]:
        return [await called(client, "search", query="dog", k=1) for _ in range(6)]

    with running([index, "--mcp-http", "--workers", "2"]) as service:
        for mode in ("auto", "legacy"):
            found = over_http(service.url, None, ask, mode)
            assert all(one == found[0] for one in found)


# standard output is for messages alone


def messages_of(process: subprocess.Popen[bytes], *lines: bytes, until: set[int]) -> tuple[list[dict[str, Any]], str]:
    """What a server wrote to standard output, all of it messages, until these requests were answered, and to standard error."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(line + b"\n" for line in lines))
    process.stdin.flush()
    found: list[dict[str, Any]] = []
    while not until <= {one.get("id") for one in found}:
        line = process.stdout.readline()
        assert line, "standard output ended before all was answered"
        found.append(json.loads(line))
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, b""), err
    return found, err.decode()


def started(*command: str | Path) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(list(map(str, command)), stdin=pipe, stdout=pipe, stderr=pipe)


def written(*messages: dict[str, Any]) -> list[bytes]:
    return [json.dumps(message).encode() for message in messages]


def test_lines_that_are_no_messages_are_survived(index):
    noise = [b"", b"no json", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"jsonrpc": "2.0", "id": 1e999}', b'{"id": 7}']
    found, said = messages_of(
        started(COMMAND, "serve", index, "--mcp"), *written(HELLO, INITIALIZED), *noise, *written(LIST), until={1, 2}
    )
    by_id = {one.get("id"): one for one in found}
    assert [tool["name"] for tool in by_id[2]["result"]["tools"]] == ["search", "read_passage"]
    assert all(one["jsonrpc"] == "2.0" for one in found)
    assert f"serving the index {index} over MCP" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"query": "fox", "k": NaN}', "k: Input should be a valid integer"),
        ('{"query": "fox", "k": 1e999}', "k: Input should be a valid integer"),
        ('{"query": "fox", "where": {"year": NaN}}', "where.year: nan is not a number"),
        ('{"query": "fox", "where": {"year": -1e999}}', "where.year: -inf is not a number"),
        ("null", "query: Field required"),
    ],
)
def test_numbers_that_json_does_not_know_are_refused(index, arguments, said):
    call = f'{{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {{"name": "search", "arguments": {arguments}}}}}'
    found, _ = messages_of(started(COMMAND, "serve", index, "--mcp"), *written(HELLO, INITIALIZED), call.encode(), until={1, 2})
    (answer,) = (one["result"] for one in found if one["id"] == 2)
    assert answer["isError"]
    assert said in answer["content"][0]["text"]


NOISY = """
import os, sys
from nlp_retrieval import Bm25sRetriever, Searcher
from nlp_retrieval.service.index_service import IndexService
from nlp_retrieval.service.mcp import serve_stdio
from nlp_retrieval.service.settings import ServiceLimits

class Noisy(IndexService):
    def _search(self, body):
        noise("searched")
        if body.query == "defect":
            raise RuntimeError("a secret of the inside")
        return super()._search(body)

def noise(what):
    print("NOISE", what, flush=True)
    os.write(1, b"NOISE from C")
    os.system("echo NOISE from a child")

def opening():
    noise("opened")
    return Noisy(Searcher([Bm25sRetriever()]).open(sys.argv[1]))

serve_stdio(opening, ServiceLimits(), lambda: None)
"""


def test_what_libraries_print_and_defects_do_not_reach_the_client(index):
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "search", "arguments": {"query": query}}}
        for n, query in ((3, "dog"), (4, "defect"))
    ]
    found, said = messages_of(started(sys.executable, "-c", NOISY, index), *written(HELLO, INITIALIZED, *calls), until={3, 4})
    by_id = {one["id"]: one for one in found}
    assert by_id[3]["result"]["structuredContent"]["results"]
    assert by_id[4]["result"]["isError"]
    assert "a defect of the service" in by_id[4]["result"]["content"][0]["text"]
    assert "secret of the inside" not in json.dumps(found)
    assert "secret of the inside" in said, "whoever runs it is told"
    assert said.count("NOISE from C") == said.count("NOISE from a child") == 3


def test_a_signal_ends_it_while_it_waits_for_input(index):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = started(COMMAND, "serve", index, "--mcp")
        assert process.stderr is not None
        assert b"over MCP" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(300) == -number
        process.communicate()


def test_what_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    with pytest.raises(DependencyError, match=r"pip install 'nlp_retrieval\[mcp\]'"):
        require_mcp()
