"""Halving leaves out what does worst on few queries, and says that its survivors were chosen so."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hashed_words import InMemory
from soaking import mostly_soaked

from nlp_retrieval import Bm25Retriever, Query, Searcher, write_run_files
from nlp_retrieval.benchmarks.benchmarker import run_searchers
from nlp_retrieval.benchmarks.checked import read_settings
from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.benchmarks.grid import build_grid
from nlp_retrieval.benchmarks.halving import halve, planned_rungs, sample_of, with_record
from nlp_retrieval.benchmarks.settings import Halving
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.evaluation import RetrievalEvaluator

from .small_benchmark import GOLD, QUERIES, TEXTS, TITLES, benchmarker

WORST = "depth=1, k1=0.4, b=1"


def many() -> dict[str, Any]:
    """12 configurations, of which those of depth 1 cannot find much."""
    vary = {"depth": [1, 3, 10], "retrievers.bm25.k1": [0.4, 2.0], "retrievers.bm25.b": [1, 0.1]}
    return build_grid({"retrievers": ["bm25"]}, vary).searchers


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    Searcher([Bm25Retriever()]).index(InMemory(TEXTS, TITLES), folder)
    return folder


def values_by_hand(searchers: dict[str, Any], query_ids: list[str], measure: str, index: Path) -> dict[str, float]:
    """The measure of every searcher on some queries, without a benchmark."""
    queries = [query for query in QUERIES if query.query_id in query_ids]
    gold = [one for one in GOLD if one.query_id in query_ids]
    evaluator = RetrievalEvaluator(gold, [f"d{row}" for row in range(len(TEXTS))], TITLES, [3, 5, 10])
    found = {}
    for name, searcher in searchers.items():
        lists = searcher.open(index).search([query.text for query in queries], 10)
        rows = [[int(hit.item.item_id[1:]) for hit in hits] for hits in lists]
        found[name] = evaluator.evaluate_lists(rows).means()[measure]
    return found


@pytest.mark.parametrize("measure", mostly_soaked(["recall@10", "ndcg@3", "mrr@5"]))
@pytest.mark.parametrize("baseline", [None, WORST])
def test_every_rung_keeps_what_is_best_by_hand(index: Path, tmp_path: Path, measure: str, baseline: str | None) -> None:
    whole = benchmarker(index, searchers=many(), baseline=baseline, stage_folder=tmp_path / "stages", seed=3)
    halved = halve(whole, Halving(measure, queries=4, factor=2))
    left = many()
    first = baseline or next(iter(left))
    assert len(left) == 12
    assert [len(rung.query_ids) for rung in halved.rungs] == [4, 8, 16]
    for rung in halved.rungs:
        assert rung.values == values_by_hand(left, rung.query_ids, measure, index)
        others = [name for name in left if name != first]
        # sorted() is stable: of equal ones the first stays
        best = sorted(others, key=lambda name: rung.values[name], reverse=True)[: math.ceil(len(others) / 2)]
        assert rung.left_out == [name for name in others if name not in best]
        assert rung.tied == [name for name in rung.left_out if rung.values[name] == rung.values[best[-1]]]
        left = {name: searcher for name, searcher in left.items() if name in {*best, first}}
    assert list(halved.settings.searchers) == list(left)
    assert halved.settings.searchers == left
    assert len(left) == 3
    assert first in left
    tied = sum(len(rung.tied) for rung in halved.rungs)
    assert (f"{tied} that were left out did as well as the last that stayed" in halved.note) == (tied > 0)
    assert len(whole.searchers) == 12


def test_samples_are_seeded_and_a_larger_one_contains_a_smaller_one() -> None:
    samples = [sample_of(QUERIES, size, seed=1) for size in (3, 6, 12, 19)]
    assert [len(sample) for sample in samples] == [3, 6, 12, 19]
    for smaller, larger in pairwise(samples):
        assert set(smaller) < set(larger)
        assert larger == sorted(larger)
    assert samples[0] == sample_of(QUERIES, 3, seed=1)
    assert len({tuple(sample_of(QUERIES, 6, seed)) for seed in range(10)}) > 5


def test_families_are_drawn_whole() -> None:
    families = {number: f"family {number % 5}" for number in range(15)}
    queries = [Query(query_id=f"q{number}", text="x", family=families.get(number)) for number in range(20)]
    for seed in range(20):
        for size in (1, 4, 9, 18):
            places = sample_of(queries, size, seed)
            assert size <= len(places) < size + 3
            for family in set(families.values()):
                members = {number for number, name in families.items() if name == family}
                assert members <= set(places) or not members & set(places)


def test_the_rungs_are_as_planned_and_the_survivors_run_as_any_others(index: Path, tmp_path: Path) -> None:
    halving = Halving("recall@10", queries=5, factor=3)
    whole = benchmarker(index, searchers=many(), stage_folder=tmp_path / "stages")
    planned = planned_rungs(whole, halving)
    said: list[str] = []
    halved = halve(whole, halving, said.append)
    assert planned == [(12, 5), (5, 15), (3, 20)]
    rungs = [(len(rung.values), len(rung.query_ids)) for rung in halved.rungs]
    assert [*rungs, (len(halved.settings.searchers), len(QUERIES))] == planned
    told = [line for line in said if line.startswith("halving: ")]
    assert told[0] == "halving: 12 configurations on 5 of 20 queries"
    assert told[1].startswith("halving: 5 stay (recall@10 from ")
    assert told[1].endswith("7 are left out")
    assert told[-1] == f"halving: {halved.note}"

    run = with_record(run_searchers(halved.settings), halved)
    alone = benchmarker(index, searchers={name: many()[name] for name in halved.settings.searchers}).run()
    assert [one.measures for one in run.report.configurations] == [one.measures for one in alone.report.configurations]
    write_run_files(run, tmp_path / "run")
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())["halving"]
    assert record["survivors"] == [one.name for one in run.report.configurations]
    assert [rung["queries"] for rung in record["rungs"]] == [5, 15]
    assert [rung["measures"] for rung in record["rungs"]] == [rung.values for rung in halved.rungs]
    assert [rung["tied"] for rung in record["rungs"]] == [rung.tied for rung in halved.rungs]
    gone = [name for rung in record["rungs"] for name in rung["left_out"]]
    assert sorted([*gone, *record["survivors"]]) == sorted(many())
    assert (record["measure"], record["factor"], record["seed"]) == ("recall@10", 3, 0)
    assert record["note"] == halved.note
    assert "3 of 12 configurations were chosen by recall@10 on 5, then 15 of these 20 queries" in halved.note
    assert "likely to be too good" in halved.note


def test_it_ends_where_there_is_nothing_left_to_choose(index: Path) -> None:
    two = {name: many()[name] for name in list(many())[:2]}
    halved = halve(benchmarker(index, searchers=two), Halving("recall@10", queries=2))
    assert (halved.rungs, list(halved.settings.searchers)) == ([], list(two))
    assert halved.note == "Halving left no configuration out."
    three = {name: many()[name] for name in list(many())[:3]}
    halved = halve(benchmarker(index, searchers=three), Halving("recall@10", queries=2))
    assert len(halved.rungs) == 1
    assert len(halved.settings.searchers) == 2


class Broken(Bm25Retriever):
    """A retriever whose model is gone."""

    name = "broken"

    def search_batch(self, queries: list[str], k: int, allowed: Any) -> Any:
        raise ModelError("the model is gone")


def test_a_configuration_that_fails_stays_so_that_the_whole_run_tells_of_it(index: Path) -> None:
    searchers = {"broken": Searcher([Broken()])} | many()
    whole = benchmarker(index, searchers=searchers, baseline=WORST)
    halved = halve(whole, Halving("recall@10", queries=5))
    assert "broken" in halved.settings.searchers
    assert all("broken" not in rung.values for rung in halved.rungs)
    report = run_searchers(halved.settings).report
    assert [failed.name for failed in report.failed] == ["broken"]


def test_where_nothing_but_the_baseline_can_be_judged_nothing_is_left_out(index: Path) -> None:
    searchers = {WORST: many()[WORST]} | {f"broken {depth}": Searcher([Broken()], depth=depth) for depth in (1, 2, 3)}
    halved = halve(benchmarker(index, searchers=searchers), Halving("recall@10", queries=5))
    assert list(halved.settings.searchers) == list(searchers)
    assert all(list(rung.values) == [WORST] and not rung.left_out for rung in halved.rungs)


def test_runs_of_other_tools_stay_and_are_not_judged(index: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.trec"
    path.write_text("".join(f"{query.query_id} Q0 d0 1 1.0 other\n" for query in QUERIES))
    searchers = {"other": TrecRun(str(path))} | many()
    whole = benchmarker(index, searchers=searchers, baseline="other")
    halving = Halving("recall@10", queries=5)
    halved = halve(whole, halving)
    assert list(halved.rungs[0].values) == list(many())
    assert "other" in halved.settings.searchers
    assert (len(halved.settings.searchers), len(QUERIES)) == planned_rungs(whole, halving)[-1]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"measure": "recall@7", "queries": 5}, r"halving\.measure: 'recall@7' is not measured; did you mean 'recall@"),
        ({"measure": "recal@10", "queries": 5}, r"halving\.measure: 'recal@10' is not measured; did you mean 'recall@10'"),
        ({"measure": 10, "queries": 5}, r"halving: measure: expected text, found 10"),
        ({"measure": "recall@10", "queries": 0}, r"halving: queries: expected an integer of at least 1, found 0"),
        ({"measure": "recall@10", "queries": True}, r"halving: queries: expected an integer, found True"),
        ({"measure": "recall@10", "queries": 5, "factor": 1}, r"halving: factor: expected an integer of at least 2, found 1"),
        ({"measure": "recall@10", "queries": 5, "factor": 2.5}, r"halving: factor: expected an integer, found 2\.5"),
        ({"measure": "recall@10", "queries": 20}, r"halving\.queries: 20 are not fewer than the 20 queries"),
        ({"measure": "recall@10"}, r"halving\.queries: 100 are not fewer than the 20 queries"),
        ({"measure": "recall@10", "queries": 5, "facter": 3}, r"halving: unknown key 'facter'; did you mean 'factor'"),
        ("recall@10", r"halving: expected settings"),
    ],
)
def test_what_cannot_be_halved_is_said_before_anything_runs(tmp_path: Path, settings: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        halve(benchmarker(tmp_path / "index"), read_settings(Halving, settings, "halving"))
    assert not (tmp_path / "index").exists()


def test_queries_are_not_fewer_where_their_families_are_all_drawn(index: Path) -> None:
    family = [query.model_copy(update={"family": "one"}) for query in QUERIES]
    halved = halve(benchmarker(index, searchers=many(), queries=family), Halving("recall@10", queries=5))
    assert halved.rungs == []


def test_page_and_tables_say_that_configurations_were_chosen_on_these_queries(index: Path, tmp_path: Path) -> None:
    whole = benchmarker(index, searchers=many(), seed=3)
    halved = halve(whole, Halving("recall@10", queries=4, factor=2))
    run = run_searchers(halved.settings)
    write_run_files(run, tmp_path / "plain")
    write_run_files(with_record(run, halved), tmp_path / "halved")
    for name in ("report.html", "table.md", "table.tex"):
        said = "their figures are likely to be too good"
        assert said in (tmp_path / "halved" / name).read_text(), name
        assert said not in (tmp_path / "plain" / name).read_text(), name
