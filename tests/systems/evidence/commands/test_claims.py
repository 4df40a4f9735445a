"""``nlp-retrieval evidence verify`` and ``audit``: statuses, files and exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli.commands import refused, run

from .world import CLAIM, make_project


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two sources, and a report with three citations."""
    return make_project(tmp_path_factory.mktemp("claims"))


def test_a_claim_is_told_with_its_status_the_rule_and_a_quote(world: Path) -> None:
    done = run("evidence", "verify", "project", CLAIM, folder=world)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "SUPPORTED  supported by one independent origin, contradicted by none; VERIFIED needs two"
    assert lines[1].startswith("  supports (")
    assert lines[1].endswith(")  Tram in figures  A  https://stats.altbrunn.example/tram")
    assert lines[2] == f"     {CLAIM}"


def test_an_audit_writes_its_file_a_page_and_json(world: Path) -> None:
    words = ("--html", "made/audit.html", "--json", "made/audit.json")
    done = run("evidence", "audit", "project", "report.md", *words, folder=world)
    assert done.returncode == 0, done.stderr
    assert "written: project/09_qa/retrieval_audit.md, made/audit.html, made/audit.json" in done.stderr
    told = json.loads((world / "made" / "audit.json").read_text())
    statuses = [row["status"] for row in told["rows"]]
    assert statuses == ["PASS", "REVIEW", "SOURCE_NOT_INDEXED"]
    assert told["rows"][1]["reason"] == "other number"
    assert "1 of 3 citations pass; 2 to review: 1 other number and 1 not indexed." in done.stdout
    audit = (world / "project" / "09_qa" / "retrieval_audit.md").read_text()
    assert audit.startswith("# Retrieval Quality Audit\n")
    assert [line.rsplit(" | ", 1)[1] for line in audit.splitlines() if line.startswith(("| The", "| It"))] == [
        f"{status} |" for status in statuses
    ]
    page = (world / "made" / "audit.html").read_text()
    assert page.count("<article") == 3
    for file in (audit, page):
        assert "Judged by lexical: a citation passes word for word, or with a support of at least 0" in file
    assert "http-equiv" in page


@pytest.mark.parametrize(
    ("cited", "codes"),
    [
        ("The tram of Altbrunn carried 2.4 million passengers in 2019", {"not-indexed": 0, "review": 0}),
        ("The tram of Altbrunn carried 7.4 million passengers in 2019", {"not-indexed": 0, "review": 1}),
    ],
)
def test_a_report_fails_only_for_what_was_asked(cited: str, codes: dict[str, int], world: Path) -> None:
    (world / "short.md").write_text(f"{cited} [1].\n\n[1]: https://stats.altbrunn.example/tram\n")
    for fail_on, code in codes.items():
        done = run("evidence", "audit", "project", "short.md", "--fail-on", fail_on, folder=world)
        assert done.returncode == code, done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("project", "nowhere.md"), "nowhere.md: no such file; check the path"),
        (("nowhere", "report.md"), "nowhere holds no sources"),
        (("project", "report.md", "--threshold", "1"), "must be between 0 and 1"),
        (("project", "report.md", "--verifier", "lexica"), "did you mean 'lexical'"),
    ],
)
def test_an_audit_that_cannot_be_made_is_told_and_writes_nothing(
    words: tuple[str, ...], said: str, world: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(world, tmp_path / "copied", ignore=shutil.ignore_patterns("09_qa"))
    refused(run("evidence", "audit", *words, "--html", "page.html", folder=copied), 2, said)
    assert not (copied / "page.html").exists()
    assert not (copied / "project" / "09_qa").exists()
