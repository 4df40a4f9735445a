"""A recorded session of a project holds what was searched and read, by the keys of its passages; other tools by their name."""

from __future__ import annotations

import json
from pathlib import Path

from nlp_retrieval.agents import read_trajectories, recording
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.service import ProjectService
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier


def test_searches_and_reads_of_a_project_are_recorded(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path / "project")
    index.add_document("The heron eats fish.", "https://example.org/1", source_quality="A")
    index.build_index()
    record = SessionRecord(tmp_path / "sessions", "s")
    tools = {tool.name: tool for tool in record.tools(ProjectService(index, LexicalVerifier()).tools)}

    def call(name: str, **arguments: object) -> dict[str, object]:
        tool = tools[name]
        return tool.call(tool.arguments.model_validate(arguments))

    (passage,) = json.loads(json.dumps(call("search", query="heron", k=2, min_quality="B")["passages"]))
    call("read_passage", key=passage["key"])
    call("verify_claim", claim="The heron eats fish.")
    call("submit_answer", answer="Fish.", citations=[f"{passage['key']}:0"])
    (trajectory,) = read_trajectories(tmp_path / "sessions")
    assert [(step.kind, step.tool) for step in trajectory.steps] == [
        ("search", "search"),
        ("open", "read_passage"),
        ("other", "verify_claim"),
    ]
    assert trajectory.steps[0].where == {"and": [{"quality": {"in": ["A", "B"]}}]}
    assert trajectory.seen() == trajectory.opened() == trajectory.cited() == [f"{passage['key']}:0"]
    with recording() as session:
        index.search("heron", 3)
    assert [(step.query, step.k, step.results) for step in session.steps] == [("heron", 3, (f"{passage['key']}:0",))]
    index.close()
