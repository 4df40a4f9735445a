"""Whatever has a figure over synthetic questions says so beside it, however the questions came there."""

from __future__ import annotations

import pytest
from benchmarks.small_benchmark import GOLD, QUERIES, benchmarker, searchers
from fuzz.command_lines import ended

from nlp_retrieval import Query, write_run_files
from nlp_retrieval.benchmarks.comparing import compare_runs
from nlp_retrieval.benchmarks.runs import read_sources
from nlp_retrieval.core.models import SYNTHETIC
from nlp_retrieval.judging import JudgingProject
from nlp_retrieval.judging.health import health_of
from nlp_retrieval.judging.report import decided, report_of
from nlp_retrieval.reports.tables import markdown_table

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
    alone = judged(tmp_path / "alone", [replaced(query) for query in ASKED])
    assert report_of(alone).notes[0].startswith("All 4 queries are synthetic")
    real = judged(tmp_path / "real", ASKED)
    assert not any("synthetic" in text for text in (*report_of(real).notes, decided(real), *health_of(real).warnings))


def replaced(query: Query) -> Query:
    return Query(query_id=query.query_id, text=query.text, metadata={"synthetic": True})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A benchmark's folder, of whose 20 queries 3 are marked by their ids alone."""
    folder = tmp_path_factory.mktemp("mixed")
    names = {query.query_id: f"{SYNTHETIC}{query.query_id}" for query in QUERIES[:3]}
    queries = [query.model_copy(update={"query_id": names.get(query.query_id, query.query_id)}) for query in QUERIES]
    gold = [each.model_copy(update={"query_id": names.get(each.query_id, each.query_id)}) for each in GOLD]
    done = benchmarker(folder / "index", queries=queries, gold=gold, searchers={"bm25": searchers()["bm25"]}).run()
    write_run_files(done, folder / "run")
    return done, folder


def test_a_benchmark_says_it_in_every_form(mixed):
    done, folder = mixed
    said = "3 of 20 queries are synthetic"
    assert done.report.manifest["synthetic"] == 3
    assert said in str(done)
    assert said in markdown_table(done.report)
    assert said in (folder / "run" / "report.html").read_text()
    (folder / "run" / "trec" / "bm25.trec").rename(folder / "other.trec")
    compared = compare_runs(read_sources([str(folder / "run"), str(folder / "other.trec")]))
    assert said in str(compared)
