"""The health of a collection, against ir-measures and by hand."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest

from nlp_retrieval import Query, SearchableItem
from nlp_retrieval.judging import JudgingProject
from nlp_retrieval.judging.health import health_of


@pytest.fixture
def project(tmp_path) -> JudgingProject:
    rng = np.random.default_rng(3)
    items = [SearchableItem(item_id=f"p{n}", content=f"Passage {n} tells of comet {n}.") for n in range(40)]
    queries = [Query(query_id=f"q{n}", text=f"comet {n}") for n in range(10)]
    runs = {
        name: {
            query.query_id: [(f"p{item}", 50.0 - rank) for rank, item in enumerate(rng.permutation(40)[:12])]
            for query in queries
        }
        for name in ("one", "two", "three")
    }
    project = JudgingProject.create(tmp_path / "p", queries, runs, items, depth=12)
    for pair in range(len(project.pool().item_ids)):
        if rng.random() < 0.7:
            project.judge(pair, int(rng.random() < 0.3), "Ann")
    return project


def test_figures_of_incomplete_judgements_are_those_of_ir_measures(project):
    pool = project.pool()
    given = project.qrels()
    qrels = [ir_measures.Qrel(query, item, grade) for query, grades in given.items() for item, grade in grades.items()]
    judged = ir_measures.Judged @ 5
    for found in health_of(project, 5).systems:
        run = [
            ir_measures.ScoredDoc(query, pool.item_ids[pair], -float(rank))
            for query, pairs in zip(pool.query_ids, pool.systems[found.system], strict=True)
            for rank, pair in enumerate(pairs)
        ]
        values = ir_measures.calc_aggregate([ir_measures.P @ 5, judged], qrels, run)
        assert found.precision == pytest.approx(values[ir_measures.P @ 5])
        assert found.judged == pytest.approx(values[judged])


def test_what_makes_a_comparison_unsafe_is_said(tmp_path):
    items = [
        SearchableItem(item_id="a", content="Olbers saw the comet in March of that year, from Bremen."),
        SearchableItem(item_id="b", content="Olbers saw  the comet in March of that year, from Bremen!"),
        SearchableItem(item_id="c", content="When did Olbers see the comet? In March."),
        SearchableItem(item_id="d", content="Something else."),
    ]
    queries = [Query(query_id="q1", text="When did Olbers see the comet?"), Query(query_id="q2", text="Who?")]
    runs = {
        "first": {"q1": [("a", 2.0), ("b", 1.0)], "q2": [("d", 1.0)]},
        "second": {"q1": [("c", 2.0), ("b", 1.0)], "q2": [("d", 1.0)]},
    }
    project = JudgingProject.create(tmp_path / "p", queries, runs, items, depth=2)
    ids = project.pool().item_ids
    for item_id, grade in (("a", 1), ("b", 0), ("d", 0)):
        project.judge(ids.index(item_id), grade, "Ann")
    found = health_of(project)
    assert found.duplicates == [("a", "b")]
    assert found.without_relevant == ["q2"]
    systems = {each.system: each for each in found.systems}
    assert (systems["first"].relevant_alone, systems["second"].unjudged) == (1, 1)
    said = " ".join(found.warnings)
    for part in ("1 passage among the first 2 of second unjudged", "found by first alone", "'q2'", "the same words"):
        assert part in said
