"""A project that is served: sources come in, passages, verdicts and audits go out."""

from __future__ import annotations

import json
from urllib.parse import quote

import jsonschema
import pytest
from service.running import document, error_of, running

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.audit_report import audit_json
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

TOKEN = "0123456789abcdef-token"
DANUBE = "The Danube flows through Vienna. It is 2,850 kilometres long."
REPORT = """# Rivers

The Danube flows through Vienna [1]. The Danube is 900 kilometres long [1]. The Rhine flows through Basel [2].

## References

[1] Danube. https://example.org/danube
[2] Rhine. https://example.org/rhine
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    with (
        running([folder, "--as", "project", "-r", "bm25"], NLP_RETRIEVAL_TOKEN=TOKEN) as service,
        service.client(TOKEN) as client,
    ):
        first = {"content": DANUBE, "url": "https://example.org/danube", "title": "Danube", "quality": "B"}
        answer = client.post("/index", json={"documents": [first, first | {"fetch_date": "2026-01-19T14:30:00Z"}]})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"added": [True, False], "document_count": 1, "passage_count": 1, "index_built": True}
        yield service, client, EvidenceIndex(folder, Searcher([Bm25Retriever()]))


def test_what_was_added_is_found_with_its_source(served):
    _, client, _ = served
    (found,) = client.post("/search", json={"query": "Danube", "k": 3, "min_quality": "C"}).json()["passages"]
    assert (found["content"], found["url"], found["quality"]) == (DANUBE, "https://example.org/danube", "B")
    assert found["fetch_date"] == "2026-01-19T14:30:00Z"
    assert found["signals"]
    nothing = client.post("/search", json={"query": "Danube", "min_quality": "A"}).json()
    assert nothing == {"passages": [], "notes": ["no passage matches; try other words, or fewer conditions"]}
    assert client.get(f"/passages/{found['key']}").json()["passages"][0]["content"] == DANUBE


def test_sources_are_listed_and_deleted(served):
    _, client, index = served
    url = "https://river.example/a?b=1"
    client.post("/index", json={"documents": [{"content": "The Inn joins the Danube at Passau.", "url": url}]})
    path = "/sources/" + quote(url, safe="")
    listed = client.get("/sources").json()
    assert listed["total"] == 2
    assert [source["url"] for source in listed["sources"]] == ["https://example.org/danube", url]
    assert client.delete(path).json() == {"deleted_versions": 1, "document_count": 1}
    assert index.was_deleted(url)
    for again in (client.delete(path), client.delete("/sources/0123456789ab")):
        error_of(again, 404, "not_found")


def test_a_report_is_audited_as_the_library_audits_it_and_nothing_is_written(served):
    _, client, index = served
    before = sorted(index.project_path.rglob("*"))
    answer = client.post("/audit", json={"report": REPORT}).json()
    done = CitationAuditor(index, LexicalVerifier()).audit(REPORT)
    assert answer == json.loads(audit_json(done))
    assert [row["status"] for row in answer["rows"]] == ["PASS", "REVIEW", "SOURCE_NOT_INDEXED"]
    assert not {path.name for path in index.project_path.rglob("*")} - {path.name for path in before}


def test_every_answer_has_the_shape_that_the_schema_says(served):
    _, client, index = served
    schema = client.get("/openapi.json").json()
    own = {
        "/index",
        "/search",
        "/verify",
        "/audit",
        "/passages/{key}",
        "/sources",
        "/sources/{key}",
        "/stats",
    }
    assert set(schema["paths"]) == own | {"/livez", "/readyz", "/metrics"}
    (key,) = {one["key"] for one in client.post("/search", json={"query": "Danube"}).json()["passages"]}
    asked = {
        "/index": client.post("/index", json={"documents": [], "build": False}),
        "/search": client.post("/search", json={"query": "Danube"}),
        "/verify": client.post("/verify", json={"claim": DANUBE}),
        "/audit": client.post("/audit", json={"report": REPORT}),
        "/passages/{key}": client.get(f"/passages/{key}"),
        "/sources": client.get("/sources"),
        "/stats": client.get("/stats"),
    }
    assert asked["/stats"].json().keys() == index.stats().keys()
    for path, answer in asked.items():
        ((_, endpoint),) = schema["paths"][path].items()
        wanted = endpoint["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), wanted | {"components": schema["components"]})
        assert endpoint["security"] == [{"HTTPBearer": []}]


def test_where_one_source_cannot_be_used_none_is_added(served):
    _, client, index = served
    before = index.stats()["document_count"]
    wrong = [document(1), document(2) | {"url": "not a url"}]
    assert "document 2" in error_of(client.post("/index", json={"documents": wrong}), 422, "invalid_request")
    assert index.stats()["document_count"] == before


def test_what_cannot_be_used_is_refused_with_the_place(served):
    for path, body, said in [
        ("/index", {"documents": [{"url": "https://example.org"}]}, "documents.0.content: Field required"),
        ("/index", {"documents": [document(1, fetch_date="yesterday")]}, "document 1: "),
        ("/index", {"documents": [document(1)] * 1001}, "documents: "),
        ("/index", {"documents": [document(1, path="/etc/passwd")]}, "documents.0.path: there is no such field"),
        ("/search", {"query": "a", "k": 1001}, "k: "),
        ("/verify", {"claim": "x" * 10_001}, "claim: "),
        ("/audit", {"report": "Bees [1-99]. " * 21}, "2,079 citations, and at most 2,000 are audited at a time"),
        ("/audit", {"report": "x" * 200_001}, "report: String should have at most 200000 characters"),
        ("/audit", {"report": "x", "html": "/tmp/x"}, "html: there is no such field"),
    ]:
        assert said in error_of(served[1].post(path, json=body), 422, "invalid_request")
