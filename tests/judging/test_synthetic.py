"""Whatever has a figure over synthetic questions says so beside it, however the questions came there."""

from __future__ import annotations

from fuzz.command_lines import ended

from nlp_retrieval import Query
from nlp_retrieval.judging import JudgingProject
from nlp_retrieval.judging.health import health_of
from nlp_retrieval.judging.report import decided, report_of

from .world import ITEMS, RUNS
from .world import QUERIES as ASKED

MARKED = [
    Query(query_id="q0", text=ASKED[0].text, metadata={"synthetic": True}),
    Query(query_id="q1", text=ASKED[1].text, metadata={"synthetic": "TRUE"}),
    *ASKED[2:],
]
NOTE = "2 of 4 queries are synthetic"


def judged(folder, queries) -> JudgingProject:
    project = JudgingProject.create(folder, queries, RUNS, ITEMS)
    for pair in project.next_pairs("Ann", 100):
        project.judge(pair.number, pair.number % 2, "Ann")
    return project


def test_a_project_says_it_in_report_page_and_health(tmp_path):
    project = judged(tmp_path / "mixed", MARKED)
    assert report_of(project).notes[0].startswith(NOTE)
    assert NOTE in decided(project)
    assert health_of(project).warnings[0].startswith(NOTE)
    printed = ended(["judge", "report", str(project.path)]).out.splitlines()
    assert printed[2].startswith(f"Note: {NOTE}")
    real = judged(tmp_path / "real", ASKED)
    assert not any("synthetic" in text for text in (*report_of(real).notes, decided(real), *health_of(real).warnings))
