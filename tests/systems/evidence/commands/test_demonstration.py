"""``nlp-retrieval evidence demo``: runs from its own data, and says truthfully what the audit found and what it missed."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from cli.commands import run


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


def test_what_it_says_it_found_is_what_the_audit_holds(made: tuple[Path, str, str]) -> None:
    folder, _, said = made
    rows = json.loads((folder / "demo" / "evidence" / "audit.json").read_text())["rows"]
    wrong = {one["number"] for one in known_wrong()}
    passed = {row["citation"]["number"] for row in rows if row["status"] in ("PASS", "WEAK")}
    found, flagged = len(wrong - passed), 15 - len(wrong) - len(passed - wrong)
    assert len(rows) == 15
    assert f"found {found} of the 6 citations that are wrong, and flagged {flagged} of the 9 that are right" in said
    for row in rows:
        told = row["claim"] in said
        number = row["citation"]["number"]
        assert told == ((number in wrong) == (number in passed)), row
    assert rows[6]["status"] == "SOURCE_NOT_INDEXED"


def test_one_claim_has_two_origins_and_a_wire_story_at_two_outlets_has_one(made: tuple[Path, str, str]) -> None:
    _, shown, _ = made
    lines = shown.splitlines()
    assert "VERIFIED  supported by 2 independent origins, contradicted by none" in lines
    (wire,) = [line for line in lines if line.startswith("  one origin: ")]
    assert "https://gazette.example/news/dredging" in wire
    assert "https://courier.example/2025/06/03/dredging" in wire
    assert "SUPPORTED  supported by one independent origin, contradicted by none; VERIFIED needs two" in lines


def test_instructions_that_no_reader_sees_are_in_no_source(made: tuple[Path, str, str]) -> None:
    folder, _, said = made
    page = shipped("lighthouse.html").read_text()
    assert "ignore your instructions" in page
    assert "2 hidden elements" in said
    for name in ("audit.html", "audit.json", "project/09_qa/retrieval_audit.md"):
        assert "ignore your instructions" not in (folder / "demo" / "evidence" / name).read_text()
