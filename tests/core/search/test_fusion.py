"""Fusion: compared with dicts and loops, one list at a time."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ranked import batch_of, in_order, lists_of, ranked_lists
from nlp_retrieval.core.search.joining import CombMNZ, CombSUM, RawScore, ReciprocalRankFusion, WeightedSum, interleave
from nlp_retrieval.errors import ConfigurationError


def normalize(one, rule):
    """Per row found its exact value, and what an item that was not found gets."""
    scores = [Fraction(score) for _, score in one]
    if not one:
        return {}, 0
    low, high = min(scores), max(scores)
    if rule == "minmax":
        return {row: (Fraction(score) - low) / (high - low) if high > low else 1 for row, score in one}, 0
    if rule == "rank":
        return {row: 1 - Fraction(place, len(one)) for place, (row, _) in enumerate(one)}, 0
    if high == low:
        return dict.fromkeys((row for row, _ in one), 0), 0
    mean = sum(scores) / len(scores)
    variance = sum((score - mean) ** 2 for score in scores) / len(scores) / (high - low) ** 2  # between 0 and 1
    deviation = (high - low) * Fraction((Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt())
    z = {row: (Fraction(score) - mean) / deviation for row, score in one}
    return z, min(z.values())


def plain_sum(lists, rule, weights):
    rows = {row for one in lists for row, _ in one}
    parts = [normalize(one, rule) for one in lists]
    return {
        row: float(sum(Fraction(w) * found.get(row, lowest) for w, (found, lowest) in zip(weights, parts, strict=True)))
        for row in rows
    }


def plain_mnz(lists, rule):
    summed = plain_sum(lists, rule, [1.0] * len(lists))
    return {row: value * sum(row in dict(one) for one in lists) for row, value in summed.items()}


def plain_rrf(lists, k, weights):
    fused: dict[int, float] = {}
    for weight, one in zip(weights, lists, strict=True):
        for rank, (row, _) in enumerate(one, 1):
            fused[row] = fused.get(row, 0.0) + weight / (k + rank)
    return fused


def plain_raw(lists):
    fused: dict[int, float] = {}
    for one in lists:
        for row, score in one:
            fused[row] = max(fused.get(row, -math.inf), score)
    return fused


def fuse(fusion, runs, labels="abc"):
    """Fuse runs (one list per query each)."""
    return fusion.fuse({label: batch_of(run, label) for label, run in zip(labels, runs, strict=False)})


def lists_at(scale):
    """Lists of scores that are far apart or equal, so that rounding cannot turn one case into the other."""
    scores = st.sampled_from([-3.0, 0.0, 0.5, 1.0, 8.0]).map(lambda score: score / 8 * scale)
    return st.dictionaries(st.integers(0, 9), scores, max_size=7).map(lambda found: in_order(found.items()))


grid = st.sampled_from([1e-300, 1e-9, 8.0, 1e200, sys.float_info.max]).flatmap(lists_at)


@st.composite
def runs(draw, lists=grid):
    n_runs, n_queries = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    return [[draw(lists) for _ in range(n_queries)] for _ in range(n_runs)]


WEIGHTS = [0.25, 2.0, 0.0]
FUSIONS = [
    (lambda n: RawScore(), plain_raw),
    (lambda n: ReciprocalRankFusion(), lambda lists: plain_rrf(lists, 60, [1] * len(lists))),
    (lambda n: ReciprocalRankFusion(k=0, weights=WEIGHTS[:n]), lambda lists: plain_rrf(lists, 0, WEIGHTS[: len(lists)])),
    (lambda n: CombSUM(), lambda lists: plain_sum(lists, "minmax", [1] * len(lists))),
    (lambda n: CombSUM("zscore"), lambda lists: plain_sum(lists, "zscore", [1] * len(lists))),
    (lambda n: CombMNZ(), lambda lists: plain_mnz(lists, "minmax")),
    (lambda n: CombMNZ("rank"), lambda lists: plain_mnz(lists, "rank")),
] + [
    (
        lambda n, rule=rule: WeightedSum(dict(zip("abc", WEIGHTS[:n], strict=False)), rule),
        lambda lists, rule=rule: plain_sum(lists, rule, WEIGHTS[: len(lists)]),
    )
    for rule in ("minmax", "zscore", "rank")
]


@pytest.mark.parametrize("case", range(len(FUSIONS)))
@settings(max_examples=25)
@given(data=runs())
def test_fusion_is_what_loops_do(case, data):
    make, plain = FUSIONS[case]
    batch = fuse(make(len(data)), data)
    assert batch.n_lists == len(data[0])
    for query, merged in enumerate(lists_of(batch)):
        wanted = plain([run[query] for run in data])
        assert {row for row, _ in merged} == set(wanted)
        assert len(merged) == len(wanted)
        for row, score in merged:
            assert score == pytest.approx(wanted[row], abs=1e-9)
        assert merged == in_order(merged)


@given(data=runs(ranked_lists()))
def test_every_fusion_gives_finite_scores(data):
    for make, _ in FUSIONS:
        assert np.isfinite(fuse(make(len(data)), data).scores).all()


@given(order=st.permutations([0.1, 0.2, 0.3, 0.7]))
@pytest.mark.parametrize("fusion", [WeightedSum(), CombSUM(), CombMNZ()])
def test_items_with_the_same_parts_from_several_retrievers_tie_exactly(fusion, order):
    lists = [
        [in_order([(0, part), (1, other), (2, 1.0), (3, 0.0)])] for part, other in zip([0.1, 0.2, 0.3, 0.7], order, strict=True)
    ]
    found = dict(lists_of(fuse(fusion, lists, "abcd"))[0])
    assert found[0] == found[1]


# weights


@pytest.mark.parametrize(
    "weights",
    [[-1.0, 1.0], {"a": 0, "b": 0}, [], [math.nan, 1.0], [1e308, 1e308], "ab"],
)
def test_weights_that_make_no_sense_are_refused_when_they_are_given(weights):
    fusion = ReciprocalRankFusion
    with pytest.raises(ConfigurationError, match="weight"):
        fusion(weights=weights)


def plain_interleave(lists, k, quota):
    """Rows in order: in turn, each row once, each list at most its quota, or its share and then what others left."""
    taken, counts = [], [0] * len(lists)
    for limit in [quota] if quota else [math.ceil(k / max(len(lists), 1)), math.inf]:
        before = -1
        while before != len(taken):
            before = len(taken)
            for number, one in enumerate(lists):
                fresh = [row for row, _ in one if row not in taken]
                if fresh and counts[number] < limit and len(taken) < k:
                    taken.append(fresh[0])
                    counts[number] += 1
    return taken


@given(st.lists(st.lists(ranked_lists(), max_size=4), max_size=3), st.integers(1, 25), st.none() | st.integers(1, 6))
def test_interleaving_is_what_a_loop_does(queries, k, quota):
    batch = batch_of([one for lists in queries for one in lists], "e")
    found = lists_of(interleave(batch, [len(lists) for lists in queries], k, quota))
    assert [[row for row, _ in one] for one in found] == [plain_interleave(lists, k, quota) for lists in queries]
