"""``nlp-retrieval evidence demo``: runs from its own data, and says truthfully what the audit found and what it missed."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from cli.commands import run

from nlp_retrieval.systems.evidence.citations.report import read_report
from nlp_retrieval.systems.evidence.commands.demonstration import LIGHTHOUSE, outcome
from nlp_retrieval.systems.evidence.source_files import read_sources

WAYS = {"negated", "source not indexed", "contradicted", "wrong source", "swapped name", "changed number"}


def shipped(name: str) -> Path:
    return Path(str(resources.files("nlp_retrieval.systems.evidence").joinpath("demo", name)))


def known_wrong() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shipped("wrong.json").read_text())
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The folder that the demo ran in, and what it printed."""
    folder = tmp_path_factory.mktemp("demonstration")
    done = run("evidence", "demo", "--output", "demo", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


def test_it_leaves_a_project_an_audit_and_a_page(made: tuple[Path, str, str]) -> None:
    folder, _, said = made
    for name in ("project/10_graph/index_metadata.json", "project/09_qa/retrieval_audit.md", "audit.html", "report.md"):
        assert (folder / "demo" / "evidence" / name).stat().st_size > 100, name
    assert said.splitlines()[-1] == "open demo/evidence/audit.html in a browser"
    metadata = json.loads((folder / "demo/evidence/project/10_graph/index_metadata.json").read_text())
    assert (metadata["document_count"], metadata["index_built"]) == (12, True)


def test_what_it_says_it_found_is_what_the_audit_holds(made: tuple[Path, str, str]) -> None:
    folder, _, said = made
    rows = json.loads((folder / "demo" / "evidence" / "audit.json").read_text())["citations"]
    wrong = {one["number"] for one in known_wrong()}
    passed = {row["number"] for row in rows if row["status"] in ("PASS", "WEAK")}
    found, flagged = len(wrong - passed), 15 - len(wrong) - len(passed - wrong)
    assert len(rows) == 15
    assert f"found {found} of the 6 citations that are wrong, and flagged {flagged} of the 9 that are right" in said
    for row in rows:
        told = row["sentence"] in said
        assert told == ((row["number"] in wrong) == (row["number"] in passed)), row
    assert rows[6]["status"] == "SOURCE_NOT_INDEXED"


def test_one_claim_has_two_origins_and_a_wire_story_at_two_outlets_has_one(made: tuple[Path, str, str]) -> None:
    _, shown, _ = made
    lines = shown.splitlines()
    assert "VERIFIED  supported by 2 independent origins, contradicted by none" in lines
    (wire,) = [line for line in lines if line.startswith("  one origin: ")]
    assert "https://gazette.example/news/dredging" in wire
    assert "https://courier.example/2025/06/03/dredging" in wire
    assert "SUPPORTED  supported by one independent origin, contradicted by none; VERIFIED needs two" in lines


@pytest.mark.soak
def test_the_commands_that_it_shows_can_be_run_again(made: tuple[Path, str, str]) -> None:
    folder, shown, said = made
    *_, audit = [line for line in said.splitlines() if line.startswith("$ nlp-retrieval ")]
    again = run(*shlex.split(audit)[2:], folder=folder)
    assert again.returncode == 0, again.stderr
    assert again.stdout in shown


def test_instructions_that_no_reader_sees_are_in_no_source(made: tuple[Path, str, str]) -> None:
    folder, _, said = made
    page = shipped("lighthouse.html").read_text()
    assert "ignore your instructions" in page
    assert "2 hidden elements" in said
    for name in ("audit.html", "audit.json", "project/09_qa/retrieval_audit.md"):
        assert "ignore your instructions" not in (folder / "demo" / "evidence" / name).read_text()


def test_the_data_are_twelve_sources_and_six_citations_that_are_wrong_in_six_ways() -> None:
    sources = list(read_sources(shipped("sources.jsonl")))
    urls = {source.url for source in sources} | {LIGHTHOUSE}
    report = read_report(shipped("report.md").read_text())
    assert (len(urls), len(report.citations), len(report.missing), len(report.unused)) == (12, 15, 0, 0)
    assert {one["way"] for one in known_wrong()} == WAYS
    absent = [one.number for one in report.citations if one.url.partition("/?")[0].replace("http:", "https:") not in urls]
    assert absent == [one["number"] for one in known_wrong() if one["way"] == "source not indexed"]


def row(number: int, status: str) -> dict[str, Any]:
    return {"number": number, "status": status, "line": number, "sentence": f"Sentence {number}.", "reason": "not found"}


def test_an_audit_that_found_everything_is_told_in_one_line() -> None:
    wrong = [{"number": 2, "way": "negated"}]
    assert outcome([row(1, "PASS"), row(2, "REVIEW")], wrong) == [
        "the audit found 1 of the 1 citations that are wrong, and flagged 0 of the 1 that are right"
    ]


def test_what_was_missed_and_what_was_flagged_for_nothing_is_named() -> None:
    wrong = [{"number": 2, "way": "negated"}]
    first, missed, flagged, why = outcome([row(1, "SOURCE_NOT_INDEXED"), row(2, "PASS")], wrong)
    assert first == "the audit found 0 of the 1 citations that are wrong, and flagged 1 of the 1 that are right"
    assert missed == "  missed (pass), negated, line 2: Sentence 2."
    assert flagged == "  flagged though right (not found), line 1: Sentence 1."
    assert "pair_model" in why
