"""A project that is served, used by clients of the Model Context Protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client
from service.asking_mcp import called, over_stdio
from service.test_mcp import REFUSED_SEARCHES, check_refused
from soaking import mostly_soaked

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.service.endpoints import ABOUT_TEXTS
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.audit_report import audit_json
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

DANUBE = "The Danube flows through Vienna. It is 2,850 kilometres long."
URL = "https://example.org/danube"
CLAIM = "The Danube flows through Vienna."
REPORT = f"{CLAIM[:-1]} [1]. The Danube is 900 kilometres long [1].\n\n## References\n\n[1] Danube. {URL}\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


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
    found["list_sources"] = await called(client, "list_sources", match="danube")
    assert [source["url"] for source in found["list_sources"]["sources"]] == [URL]
    assert listed.keys() == found.keys()
    for name, answer in found.items():
        jsonschema.validate(answer, listed[name].output_schema or {})
        assert listed[name].input_schema["additionalProperties"] is False
        writes = name == "add_document"
        assert answer["about_texts"] == ABOUT_TEXTS
        assert listed[name].annotations.read_only_hint == (not writes)
    return found


def as_the_library(found: dict[str, Any], folder: Path) -> None:
    """Whether answers are those of the library."""
    with EvidenceIndex(folder, Searcher([Bm25Retriever()])) as index:
        verifier = LexicalVerifier()
        audit = CitationAuditor(index, verifier).audit(REPORT)
        verdict = ClaimVerifier(index, verifier).verify(CLAIM, "C1").as_dict()
        said = {"about_texts": ABOUT_TEXTS}
        assert found["verify_claim"] == said | json.loads(json.dumps(verdict)) | {"neutral_evidence": []}
        assert found["audit_report"] == said | json.loads(audit_json(audit))
        assert [one["content"] for one in found["search"]["passages"]] == [DANUBE]
        assert [one["content"] for one in found["read_passage"]["passages"]] == [DANUBE]


@pytest.mark.parametrize("mode", mostly_soaked(["auto", "legacy"]))
def test_every_tool_of_a_project_works_over_standard_input_and_output(project, mode):
    found = over_stdio([project, "--as", "project", "-r", "bm25"], all_tools, mode)
    added = {"added": [True], "document_count": 1, "passage_count": 1, "index_built": True}
    assert found["add_document"] == {"about_texts": ABOUT_TEXTS} | added
    as_the_library(found, project)


REFUSED = [
    *REFUSED_SEARCHES,
    ("search", {"query": "x", "min_quality": "F"}, "min_quality"),
    ("read_passage", {"key": "../../etc/passwd"}, "passwd"),
    ("read_passage", {"key": "x", "count": 101}, "count: Input should be less than or equal to 100"),
    ("verify_claim", {"claim": ""}, "claim: String should have at least 1 character"),
    ("audit_report", {"report": "x" * 200_001}, "report: String should have at most 200000 characters"),
    ("add_document", {"content": "", "url": URL}, "content: String should have at least 1 character"),
    ("add_document", {"content": "x", "url": "javascript:alert(1)"}, "javascript"),
    ("drop_table", {}, "there is no tool 'drop_table'; there are search, read_passage"),
]


def test_what_is_refused_is_said_in_one_line_and_the_server_goes_on(project):
    check_refused([project, "--as", "project", "-r", "bm25"], REFUSED)
