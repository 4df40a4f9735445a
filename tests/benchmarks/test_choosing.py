"""The best of several configurations: what the choice is worth on queries that had no part in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nlp_retrieval import Benchmarker, Query, Searcher, compare_systems
from nlp_retrieval.benchmarks import BenchmarkRun, best_by_folds

N_QUERIES, N_FAMILIES = 60, 20


@pytest.fixture(scope="module")
def run() -> BenchmarkRun:
    corpus = {f"d{number}": f"{word} eats krill {'and squid ' * (number % 3)}" for number, word in enumerate("abcdef")}
    queries = [
        Query(query_id=f"q{number}", text=f"{'abcdef'[number % 6]} squid", family=f"f{number % N_FAMILIES}")
        for number in range(N_QUERIES)
    ]
    gold = {query.query_id: [f"d{number % 6}"] for number, query in enumerate(queries)}
    return compare_systems(
        Benchmarker.grid(Searcher(["bm25"]), {"retrievers.bm25.b": [0.0, 0.5, 1.0]}), queries, gold, corpus, measures=["RR@5"]
    )


def test_each_query_has_the_value_of_what_is_best_on_the_other_folds(run: BenchmarkRun) -> None:
    generator = np.random.default_rng(3)
    values = {name: generator.random(N_QUERIES) for name in run.per_query}
    done = best_by_folds(replace(run, per_query={name: {"mrr@5": of_one} for name, of_one in values.items()}), folds=4)
    assert len(done.chosen) == 4
    means = {name: of_one.mean() for name, of_one in values.items()}
    assert (done.best, done.in_sample) == (max(means, key=lambda name: means[name]), pytest.approx(max(means.values())))
    left = set(range(N_QUERIES))
    for name in dict.fromkeys(done.chosen):  # a query's value is that of a configuration which a fold chose
        left -= {number for number in left if done.out_of_fold[number] == values[name][number]}
    assert not left
    difference = done.out_of_fold - values[run.report.baseline]
    assert done.gain[0] == pytest.approx(difference.mean())
    assert done.gain[1] <= done.gain[0] <= done.gain[2]


def test_a_choice_among_chance_gains_nothing_out_of_sample_and_a_real_one_does(run: BenchmarkRun) -> None:
    """The control: fifty configurations that differ by chance alone, whose best looks better than the baseline in sample."""
    generator = np.random.default_rng(5)
    baseline = run.report.baseline
    noise = {baseline: generator.random(N_QUERIES)} | {f"n{number}": generator.random(N_QUERIES) for number in range(50)}
    by_chance = best_by_folds(replace(run, per_query={name: {"mrr@5": of_one} for name, of_one in noise.items()}))
    assert by_chance.in_sample - noise[baseline].mean() > 0.05
    assert by_chance.gain[1] < 0
    better = noise | {"better": np.minimum(noise[baseline] + 0.3, 1.0)}
    real = best_by_folds(replace(run, per_query={name: {"mrr@5": of_one} for name, of_one in better.items()}))
    assert (real.best, set(real.chosen)) == ("better", {"better"})
    assert real.gain[1] > 0
    assert "chosen in 5 of 5 folds" in str(real)
