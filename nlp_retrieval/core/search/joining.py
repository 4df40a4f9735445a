"""Merging several ranked lists of a query into one: those of its parts in turn, and those of retrievers by fusion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import RRF_K, Hits, Rows, Scores, offsets_of, reciprocal_ranks, sort_lists
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.errors import ConfigurationError

# Interleaving several ranked lists of a query: in turn, each item once, each list up to its quota.


def interleave(batch: Hits, counts: Sequence[int], k: int, quota: int | None) -> Hits:
    """Interleave the lists of every query by rank; without a quota, each gets an even share, and then what others left."""
    rows, bounds = batch.rows.tolist(), batch.offsets.tolist()
    lengths, positions = list[int](), list[int]()
    for first, count in zip(offsets_of(counts).tolist(), counts, strict=False):
        lists = [range(bounds[number], bounds[number + 1]) for number in range(first, first + count)]
        limits = [-(-k // max(count, 1)), len(rows)] if quota is None else [quota]
        of_query = _take_in_turn(rows, lists, k, limits)
        lengths.append(len(of_query))
        positions += of_query
    picked = batch.take(np.array(positions, np.int64), offsets_of(lengths))
    return replace(picked, scores=np.reciprocal(picked.ranks.astype(np.float64)))


def _take_in_turn(rows: list[int], lists: list[range], k: int, limits: list[int]) -> list[int]:
    """Positions taken: those of every list up to the first limit, then up to the next."""
    chosen: list[int] = []
    seen: set[int] = set()
    counts, cursors = [0] * len(lists), list(map(iter, lists))
    for limit in limits:
        turns = deque(range(len(lists)))
        while turns and len(chosen) < k:
            owner = turns.popleft()
            if counts[owner] == limit:
                continue
            position = next((at for at in cursors[owner] if rows[at] not in seen), None)
            if position is not None:
                seen.add(rows[position])
                chosen.append(position)
                counts[owner] += 1
                turns.append(owner)
    return chosen


# Fusion: the lists of several retrievers become one, without duplicates. Scores of different engines are not comparable, so all
# but `RawScore` use ranks or normalised scores.

_Weight = Annotated[float, Field(ge=0, le=1e100, allow_inf_nan=False)]
Weights = Sequence[_Weight] | Mapping[str, _Weight]
Normalization = Literal["minmax", "zscore", "rank"]


@dataclass(frozen=True)
class FusionPool:
    """Candidates without duplicates within a list: the list of each, and its score and rank, from 1, from every retriever.

    Scores and ranks are ``[candidates, retrievers]``, NaN if a retriever did not find the candidate; ``owner`` is ascending.
    """

    labels: list[str]
    owner: Rows
    scores: Scores
    ranks: Scores


class BaseFusion(Component, ABC):
    """Merges the lists of several retrievers. A fusion implements one method, ``combine``."""

    kind: ClassVar[str] = "fusions"

    @abstractmethod
    def combine(self, pool: FusionPool) -> Scores:
        """Return the fused score of every candidate, ``[candidates]``; higher is better, and NaN leaves it out."""

    def fuse(self, batches: Mapping[str, Hits]) -> Hits:
        """Fuse the lists of retrievers, by label, which are equally many; adds the signal ``fusion.score``."""
        labels, n_lists = list(batches), next(iter(batches.values())).n_lists
        width = 1 + max((int(batch.rows.max()) for batch in batches.values() if len(batch.rows)), default=0)
        keys = [batch.owner * width + batch.rows for batch in batches.values()]
        pooled, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        scores, ranks = np.full((2, len(pooled), len(labels)), np.nan)
        signals = dict[str, Scores]()
        places_of = np.split(inverse, np.cumsum([len(key) for key in keys])[:-1])
        for number, (batch, places) in enumerate(zip(batches.values(), places_of, strict=True)):
            scores[places, number], ranks[places, number] = batch.scores, batch.ranks
            for key, column in batch.signals.items():
                signals[key] = np.full(len(pooled), np.nan)
                signals[key][places] = column
        owner, rows = pooled // width, pooled % width
        fused = self.combine(FusionPool(labels, owner, scores, ranks))
        whole = Hits(offsets_of(np.bincount(owner, minlength=n_lists)), rows, fused, signals | {"fusion.score": fused})
        kept = np.flatnonzero(~np.isnan(fused))
        order = sort_lists(owner[kept], fused[kept], rows[kept])
        return whole.take(kept if order is None else kept[order], offsets_of(np.bincount(owner[kept], minlength=n_lists)))


class RawScore(BaseFusion):
    """Keeps the retrievers' own scores; an item found by several keeps its highest. The default for one retriever.

    Examples:
        >>> Searcher([Bm25Retriever()], fusion=RawScore()).fusion
        RawScore()
    """

    name = "raw"
    manifest_may_set = may_set()

    def combine(self, pool: FusionPool) -> Scores:
        best: Scores = np.fmax.reduce(pool.scores, axis=1)
        return best


class ReciprocalRankFusion(BaseFusion):
    """Sum of ``weight / (k + rank)`` over the retrievers that found the item (Cormack et al., SIGIR 2009).

    Args:
        k: smoothing: the larger, the less the first ranks dominate.
        weights: per retriever, in their order or by label; equal by default.
        found_by: an item that fewer retrievers found is left out.

    Examples:
        >>> Searcher(["bm25", "faiss"], fusion=ReciprocalRankFusion(k=60, weights=[1.0, 2.0]))
        Searcher(retrievers=[Bm25Retriever(), FaissRetriever()], fusion=ReciprocalRankFusion(weights=[1.0, 2.0]))
    """

    name = "rrf"
    manifest_may_set = may_set("k", "weights", "found_by")

    def __init__(
        self,
        k: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = RRF_K,
        weights: Weights | None = None,
        found_by: Annotated[int, Field(ge=1)] = 1,
    ) -> None:
        self.k = k
        self.weights = _checked_weights(weights)
        self.found_by = found_by

    def combine(self, pool: FusionPool) -> Scores:
        parts = reciprocal_ranks(pool.ranks, self.k, weights_for(self.weights, pool.labels))
        enough = np.isfinite(pool.scores).sum(axis=1) >= self.found_by
        return np.where(enough, _summed(np.nan_to_num(parts)), np.nan)


class WeightedSum(BaseFusion):
    """Weighted sum of normalised scores; an item that a retriever did not find gets 0, or the lowest z-score of its list.

    Args:
        weights: per retriever, in their order or by label; equal by default. They need not sum to 1.
        normalization: ``minmax`` to 0..1, ``zscore`` to mean 0 and deviation 1, ``rank`` to 1 for the first down to 1/n.

    Examples:
        >>> Searcher(["bm25", "faiss"], fusion=WeightedSum([0.3, 0.7]))
        Searcher(retrievers=[Bm25Retriever(), FaissRetriever()], fusion=WeightedSum(weights=[0.3, 0.7]))
    """

    name = "weighted_sum"
    manifest_may_set = may_set("weights", "normalization")

    def __init__(self, weights: Weights | None = None, normalization: Normalization = "minmax") -> None:
        self.weights = _checked_weights(weights)
        self.normalization: Normalization = normalization

    def combine(self, pool: FusionPool) -> Scores:
        return _summed(normalized(pool, self.normalization) * weights_for(self.weights, pool.labels))


class CombSUM(BaseFusion):
    """Sum of normalised scores (Fox and Shaw, TREC-2, 1994).

    Args:
        normalization: ``minmax`` to 0..1, ``zscore`` to mean 0 and deviation 1, ``rank`` to 1 for the first down to 1/n.

    Examples:
        >>> Searcher(["bm25", "faiss"], fusion=CombSUM()).config["fusion"]
        {'name': 'combsum', 'normalization': 'minmax'}
    """

    name = "combsum"
    manifest_may_set = may_set("normalization")

    def __init__(self, normalization: Normalization = "minmax") -> None:
        self.normalization: Normalization = normalization

    def combine(self, pool: FusionPool) -> Scores:
        return _summed(normalized(pool, self.normalization))


class CombMNZ(BaseFusion):
    """Sum of normalised scores times the number of retrievers that found the item (Fox and Shaw, TREC-2, 1994).

    Args:
        normalization: ``minmax`` or ``rank``; z-scores can be negative, which the product would turn into penalties.

    Examples:
        >>> Searcher(["bm25", "faiss"], fusion=CombMNZ("rank"))
        Searcher(retrievers=[Bm25Retriever(), FaissRetriever()], fusion=CombMNZ(normalization='rank'))
    """

    name = "combmnz"
    manifest_may_set = may_set("normalization")

    def __init__(self, normalization: Literal["minmax", "rank"] = "minmax") -> None:
        self.normalization: Literal["minmax", "rank"] = normalization

    def combine(self, pool: FusionPool) -> Scores:
        n_found = np.isfinite(pool.scores).sum(axis=1)
        summed: Scores = _summed(normalized(pool, self.normalization)) * n_found
        return summed


def _summed(parts: Scores) -> Scores:
    """Return the sum of each row, ``[rows, parts]``; equal parts in another order have the same sum."""
    summed: Scores = np.sort(parts, axis=1).sum(axis=1)
    return summed


def normalized(pool: FusionPool, rule: Normalization) -> Scores:
    """Comparable scores, ``[candidates, retrievers]``, normalised per list and retriever."""
    values = np.zeros_like(pool.scores)
    for column in range(pool.scores.shape[1]):
        finite = np.flatnonzero(np.isfinite(pool.scores[:, column]))
        if len(finite) == 0:
            continue
        owner, scores, ranks = pool.owner[finite], pool.scores[finite, column], pool.ranks[finite, column]
        is_first = np.concatenate([[True], owner[1:] != owner[:-1]])
        begins, group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        count = np.diff(np.append(begins, len(owner)))
        if rule == "rank":
            values[finite, column] = 1.0 - (ranks - 1.0) / count[group]
            continue
        # by powers of two, which is exact, so that no difference overflows and no square underflows
        scores = np.ldexp(scores, -np.frexp(np.maximum.reduceat(np.abs(scores), begins))[1][group])
        low, high = np.minimum.reduceat(scores, begins)[group], np.maximum.reduceat(scores, begins)[group]
        scaled = (scores - low) / np.where(high > low, high - low, 1.0)
        if rule == "minmax":
            values[finite, column] = np.where(high > low, scaled, 1.0)
            continue
        mean = (np.add.reduceat(scaled, begins) / count)[group]
        deviation = np.sqrt(np.add.reduceat((scaled - mean) ** 2, begins) / count)[group]
        z = np.where(high > low, (scaled - mean) / np.where(high > low, deviation, 1.0), 0.0)
        lowest = np.zeros(int(pool.owner.max()) + 1)
        lowest[owner[begins]] = np.minimum.reduceat(z, begins)
        values[:, column] = lowest[pool.owner]
        values[finite, column] = z
    return values


def _checked_weights(weights: Weights | None) -> Weights | None:
    values = list(weights.values()) if isinstance(weights, Mapping) else weights
    if values is not None and not any(values):
        raise ConfigurationError(f"weights={weights!r}: at least one weight must be above 0")
    return weights


def weights_for(weights: Weights | None, labels: list[str]) -> Scores:
    """Return ``[labels]``: the weight of each retriever."""
    if weights is None:
        return np.ones(len(labels))
    if isinstance(weights, Mapping):
        if set(weights) != set(labels):
            raise ConfigurationError(f"weights are given for {sorted(weights)}, the retrievers are {sorted(labels)}")
        return np.array([weights[label] for label in labels], np.float64)
    if len(weights) != len(labels):
        raise ConfigurationError(f"{len(weights)} weights are given for {len(labels)} retrievers ({', '.join(labels)})")
    return np.array(weights, np.float64)
