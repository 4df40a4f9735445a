"""Weights are fitted to judged queries by a loss whose gradient is right, and judged by queries that had no part in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_pages import questions, wiki

from nlp_retrieval import Bm25Retriever, Gold, LinkGraphRetriever, Query, tune
from nlp_retrieval.evaluation.tuning import TuningReport
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates
from nlp_retrieval.retrievers.link_graph.tuning import fit_weights, listwise_loss
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

KINDS = list(DEFAULT_WEIGHTS)
ITEMS = wiki(70, seed=2)
RETRIEVER = LinkGraphRetriever([Bm25Retriever()], pool=30)


def judged(count: int = 24) -> tuple[list[Query], list[Gold]]:
    """Queries in families of one to three, and two or three gold passages each: pages that one mentions another."""
    draw = np.random.default_rng(8)
    queries, gold = [], []
    for number, text in enumerate(questions(ITEMS, count)):
        family = None if number % 4 == 0 else f"family {number // 3}"
        queries.append(Query(query_id=f"q{number}", text=text, family=family))
        rows = draw.choice(len(ITEMS), 2 + number % 2, replace=False)
        gold.append(Gold(query_id=f"q{number}", relevance={f"d{row}": 1 for row in rows}))
    return queries, gold


QUERIES, GOLD = judged()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuning") / "index"
    RETRIEVER.index(ITEMS, path)
    return path


@pytest.fixture(scope="module")
def report(folder: Path) -> TuningReport:
    return tune(RETRIEVER, folder, QUERIES, GOLD, k_values=(2, 5, 10), folds=4)


def pool_of(evidence: np.ndarray) -> GraphCandidates:
    """A pool with this evidence, ``[candidates, kinds]``."""
    flat = np.ones(len(evidence)) / len(evidence)
    return GraphCandidates(np.arange(len(evidence)), flat, flat, dict(zip(KINDS, evidence.T, strict=True)), {})


# the loss


@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=40)
def test_the_gradient_of_the_loss_is_that_of_finite_differences(seed: int, spread: float) -> None:
    draw = np.random.default_rng(seed)
    evidence = draw.normal(size=(3, 5, 4)) * spread
    gold = draw.random((3, 5)) < 0.4
    other = ~gold & (draw.random((3, 5)) < 0.8)  # what is neither fills up
    gold[:, 0], other[:, 0], gold[:, 1], other[:, 1] = True, False, False, True
    weights, begin = draw.normal(size=4), draw.normal(size=4)
    value, slope = listwise_loss(weights, evidence, gold, other, begin, 0.1)
    steps = 1e-6 * np.eye(4)
    differences = [
        (listwise_loss(weights + step, evidence, gold, other, begin, 0.1)[0]
        - listwise_loss(weights - step, evidence, gold, other, begin, 0.1)[0]) / 2e-6
        for step in steps
    ]  # fmt: skip
    assert slope == pytest.approx(differences, rel=1e-4, abs=1e-4)
    scores = evidence @ weights
    by_hand = [
        -np.log(1 / (1 + np.exp(scores[query, other[query]] - scores[query, candidate]).sum()))
        for query, candidate in np.argwhere(gold)
    ]
    assert value == pytest.approx(np.mean(by_hand) + 0.1 * ((weights - begin) ** 2).sum())


# fitting


def pools_by(known: np.ndarray, count: int) -> tuple[list[GraphCandidates], list[np.ndarray]]:
    """Pools of evidence at random in which the two foremost by known weights are gold."""
    draw = np.random.default_rng(0)
    scales = np.array([4.0, 0.5, 0.2, 1.0, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
    pools, golden = [], []
    for _ in range(count):
        evidence = draw.normal(size=(int(draw.integers(5, 40)), len(KINDS))) * scales
        best = np.argsort(-(evidence @ known))[:2]
        pools.append(pool_of(evidence))
        golden.append(np.isin(np.arange(len(evidence)), best))
    return pools, golden


def test_the_fitted_weights_are_an_optimum() -> None:
    pools, golden = pools_by(np.array([1.0, 2, 5, 1, 0, 0, 0, 2, 1, 0, 1, 3]), 40)
    fitted = fit_weights(pools, golden, DEFAULT_WEIGHTS)
    stacked = np.concatenate([np.stack(list(pool.evidence.values()), axis=1) for pool in pools])
    scale = stacked.std(axis=0)

    def loss(weights: dict[str, float]) -> float:
        total, n_gold = 0.0, 0
        for pool, found in zip(pools, golden, strict=True):
            scores = sum(weights[kind] * column for kind, column in pool.evidence.items())
            for score in scores[found]:
                total += np.log1p(np.exp(scores[~found] - score).sum())
                n_gold += 1
        moved = (np.array([weights[kind] - DEFAULT_WEIGHTS[kind] for kind in KINDS]) * scale) ** 2
        return total / n_gold + moved.sum() / len(pools)

    best = loss(fitted)
    for kind, size in zip(KINDS, scale, strict=True):
        for step in (-0.2, 0.2):
            assert loss(fitted | {kind: fitted[kind] + step / size}) > best


# the report
