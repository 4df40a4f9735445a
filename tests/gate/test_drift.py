"""A log beside the baseline's queries: two configurations on what was asked, and notes on how far today's questions differ."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nlp_retrieval import TopicsLoader
from nlp_retrieval.cli.app import app
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.gate import Gate, GateSettings

from .test_gate import ITEMS, searcher


def asked(seed: int, n: int = 150) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.sample(rng.choice(ITEMS).content.split()[:14], 3)) for _ in range(n)]


@pytest.fixture
def settings(tmp_path: Path) -> GateSettings:
    (tmp_path / "log.txt").write_text("\n".join(asked(1)))
    command = ["judge", "questions", "from-log", str(tmp_path / "log.txt"), str(tmp_path / "asked.jsonl"), "--sample", "120"]
    assert CliRunner().invoke(app, command).exit_code == 0
    queries = TopicsLoader(tmp_path / "asked.jsonl")
    made = GateSettings(tmp_path / "base.jsonl", queries, {"precision@5": 0.05}, log=tmp_path / "today.txt")
    Gate(made, searcher(tmp_path / "accepted")).update("from a log")
    return made


def notes(settings: GateSettings, folder: Path, questions: list[str]) -> str:
    Path(str(settings.log)).write_text("\n".join(questions))
    return "\n".join(Gate(settings, searcher(folder)).check().notes)


def test_a_log_of_the_same_kind_differs_as_little_as_the_queries_among_themselves(
    settings: GateSettings, tmp_path: Path
) -> None:
    said = notes(settings, tmp_path / "now", asked(2))
    new, usual, empty, low, low_before = map(int, re.findall(r"(\d+)%", said))
    assert abs(new - usual) < 5
    assert empty == 0
    assert abs(low - low_before) < 8


def test_questions_about_something_else_are_seen_and_decide_nothing(settings: GateSettings, tmp_path: Path) -> None:
    others = [f"zebra{number} finance" for number in range(50)]
    with pytest.warns(RetrievalWarning, match="found nothing for 50"):
        said = notes(settings, tmp_path / "now", asked(2)[:50] + others)
    new, usual, empty, low, low_before = map(int, re.findall(r"(\d+)%", said))
    assert 40 <= new < 45  # two of five: 50 questions of 3 words, and 50 of 2
    assert usual < 10
    assert empty == 50 <= low
    assert low_before < 5
    with pytest.warns(RetrievalWarning, match="found nothing for 50"):
        report = Gate(settings, searcher(tmp_path / "again")).check()
    assert (report.verdict, report.passes) == (None, True)


def test_two_configurations_are_compared_on_a_log(settings: GateSettings, tmp_path: Path) -> None:
    shadow = Gate(replace(settings, log=None, judging=tmp_path / "judged"), searcher(tmp_path / "now", k1=0.0, b=1.0)).check()
    assert (shadow.verdict, shadow.queries) == ("cannot tell", 120)
    assert shadow.agreement < 1
    assert shadow.change.passages > 0


def test_a_log_without_questions_is_an_error(settings: GateSettings, tmp_path: Path) -> None:
    table = tmp_path / "today.csv"
    table.write_text("time,what\n1,krill\n")
    with pytest.raises(SourceError, match=r"no column has a usual name.* that column is log_column"):
        Gate(replace(settings, log=table), searcher(tmp_path / "now")).check()
    read = replace(settings, log=table, log_column="what")
    with pytest.warns(RetrievalWarning, match="found nothing"):
        assert "of 1 drawn question are" in Gate(read, searcher(tmp_path / "now")).check().notes[0]
    with pytest.raises(SourceError, match="no such file"):
        Gate(replace(settings, log=tmp_path / "none.csv"), searcher(tmp_path / "now")).check()
