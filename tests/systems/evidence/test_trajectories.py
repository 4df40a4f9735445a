"""What agents cite, judged by the texts of a corpus; and the command."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nlp_retrieval.agents import AgentStep, Trajectory, write_trajectories
from nlp_retrieval.cli.app import app
from nlp_retrieval.evidence import LexicalVerifier, accuracy_by_calls, audit_trajectories

TEXTS = {
    "bridge": "The Long Bridge was opened in 1932. It has six arches of stone.",
    "harbour": "The harbour handled 4,200 ships in 1931, more than any other port of the coast.",
}


def trajectory(question: str, answer: str, *, searches: int = 1) -> Trajectory:
    steps = [AgentStep(kind="search", query=f"query {number}", results=("bridge",)) for number in range(searches)]
    return Trajectory(question_id=question, steps=(*steps, AgentStep(kind="open", item_id="bridge")), answer=answer)


def test_a_citation_passes_if_its_source_came_back_and_says_so() -> None:
    asked = [
        trajectory("right", "The Long Bridge was opened in 1932 [bridge]."),
        trajectory("wrong", "The Long Bridge was opened in 1935 [bridge]."),
        Trajectory(question_id="unseen", answer="It handled 4,200 ships in 1931.", citations=("harbour",)),
        Trajectory(question_id="unknown", answer="It sank.", citations=("nowhere",)),
    ]
    rows = audit_trajectories(asked, TEXTS, LexicalVerifier())
    assert [(row.citation.question_id, row.status, row.passes) for row in rows] == [
        ("right", "supported", True),
        ("wrong", "contradicted", False),
        ("unseen", "supported", False),
        ("unknown", "no text", False),
    ]
    assert rows[1].detail == "the source does not have 1935"


def test_accuracy_is_shown_by_the_number_of_calls_before() -> None:
    few = [trajectory(f"few {n}", "The Long Bridge was opened in 1932 [bridge].") for n in range(4)]
    many = [trajectory(f"many {n}", "The Long Bridge was opened in 1940 [bridge].", searches=30) for n in range(4)]
    rows = accuracy_by_calls(audit_trajectories([*few, *many], TEXTS, LexicalVerifier()))
    assert [(row.least, row.most, row.citations, row.came, row.opened, row.passed) for row in rows] == [
        (0, 2, 4, 1, 1, 1),
        (21, 50, 4, 1, 1, 0),
    ]
    assert rows[0].interval == (1, 1)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_prints_shares_by_calls_or_every_citation(tmp_path: Path, as_json: bool) -> None:
    write_trajectories(
        tmp_path / "a.jsonl",
        [
            trajectory("one", "The Long Bridge was opened in 1932 [bridge]."),
            trajectory("two", "The Long Bridge was opened in 1935 [bridge]."),
        ],
    )
    lines = [json.dumps({"id": name, "content": text}) for name, text in TEXTS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    command = ["evidence", "trajectories", str(tmp_path / "a.jsonl"), "--corpus", str(tmp_path / "corpus.jsonl")]
    done = CliRunner().invoke(app, [*command, *(["--json"] if as_json else [])])
    assert done.exit_code == 0, done.output
    if as_json:
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(row["question_id"], row["status"], row["came"]) for row in rows] == [
            ("one", "supported", 1),
            ("two", "contradicted", 1),
        ]
    else:
        assert "1 of 2 citations had been retrieved and are supported" in done.output
        assert "0 to 2" in done.output
        assert "two, [bridge]: contradicted: the source does not have 1935" in done.output
