"""Fusion: the lists of several retrievers become one, each item once.

A fusion looks at a pool: per candidate, the score and the rank that each retriever gave it, NaN where it did not find
it. Scores of different engines do not compare, so all but :class:`RawScore` work on ranks or on normalised scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Rows, Scores, offsets_of, sort_lists
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.search.joining.merge import RRF_K
from nlp_retrieval.errors import ConfigurationError

Normalization = Literal["minmax", "zscore", "rank"]
Weights = (
    Sequence[Annotated[float, Field(ge=0, allow_inf_nan=False)]]
    | Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]
)


@dataclass(frozen=True)
class FusionPool:
    """The candidates of a batch of lists, each once per list, with their scores and ranks from every retriever.

    Args:
        labels: labels of the retrievers.
        owner: ``[candidates]`` ascending, the list of each.
        n_lists: how many lists there are.
        scores: ``[candidates, retrievers]``, NaN where a retriever did not find the candidate.
        ranks: the same, from 1.
    """

    labels: list[str]
    owner: Rows
    n_lists: int
    scores: Scores
    ranks: Scores


class BaseFusion(Component, ABC):
    """Joins the lists of several retrievers. A fusion writes one method, ``combine``."""

    kind: ClassVar[str] = "fusions"

    @abstractmethod
    def combine(self, pool: FusionPool) -> Scores:
        """Return the fused score of every candidate, ``[candidates]``; higher is better."""

    def fuse(self, batches: Mapping[str, CandidateBatch]) -> CandidateBatch:
        """Fuse the lists of retrievers; ``fusion.score`` joins their signals.

        Args:
            batches: one per retriever, by label; the lists of all line up.
        """
        labels = list(batches)
        n_lists = next(iter(batches.values())).n_lists
        width = 1 + max((int(batch.rows.max()) for batch in batches.values() if len(batch.rows)), default=0)
        keys = [batch.owner * width + batch.rows for batch in batches.values()]
        pooled, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        places = np.split(inverse, np.cumsum([len(key) for key in keys])[:-1])
        position = np.full((len(labels), len(pooled)), -1)
        scores, ranks = np.full((2, len(pooled), len(labels)), np.nan)
        for number, (batch, place) in enumerate(zip(batches.values(), places, strict=True)):
            position[number, place] = np.arange(len(place))
            scores[place, number], ranks[place, number] = batch.scores, batch.ranks
        owner, rows = pooled // width, pooled % width
        fused = self.combine(FusionPool(labels, owner, n_lists, scores, ranks))
        order = sort_lists(owner, fused, rows)
        if order is not None:
            rows, fused, position, scores = rows[order], fused[order], position[:, order], scores[order]
        return CandidateBatch(
            offsets_of(np.bincount(owner, minlength=n_lists)),
            rows,
            fused,
            _best_subquery(list(batches.values()), position),
            _joined_signals(list(batches.values()), position) | {"fusion.score": fused},
        )


def _joined_signals(batches: list[CandidateBatch], position: NDArray[np.int64]) -> dict[str, Scores]:
    joined: dict[str, Scores] = {}
    for batch, place in zip(batches, position, strict=True):
        seen = place >= 0
        for key, column in batch.signals.items():
            joined[key] = np.full(len(place), np.nan)
            joined[key][seen] = column[place[seen]]
    return joined


def _best_subquery(batches: list[CandidateBatch], position: NDArray[np.int64]) -> NDArray[np.int32]:
    subquery = np.zeros(position.shape[1], np.int32)
    for batch, place in zip(reversed(batches), position[::-1], strict=True):
        subquery[place >= 0] = batch.subquery[place[place >= 0]]
    return subquery


class RawScore(BaseFusion):
    """Keeps the retrievers' own scores; an item found by several keeps its highest. The default for one retriever."""

    name = "raw"
    manifest_may_set = may_set()

    def combine(self, pool: FusionPool) -> Scores:
        best: Scores = np.fmax.reduce(pool.scores, axis=1)
        return best


class ReciprocalRankFusion(BaseFusion):
    """Sum of ``weight / (k + rank)`` over the retrievers that found the item (Cormack et al., SIGIR 2009).

    Args:
        k: how much the first ranks count: the larger, the flatter.
        weights: per retriever, in their order or by label; equal by default.
    """

    name = "rrf"
    manifest_may_set = may_set("k", "weights")

    def __init__(self, k: Annotated[float, Field(ge=0)] = RRF_K, weights: Weights | None = None) -> None:
        self.k = k
        self.weights = _checked_weights(weights)

    def combine(self, pool: FusionPool) -> Scores:
        parts = _weights_for(self.weights, pool.labels) / (self.k + pool.ranks)
        summed: Scores = np.nansum(np.sort(parts, axis=1), axis=1)  # sorted: equal ranks in another order tie exactly
        return summed


class WeightedSum(BaseFusion):
    """Weighted sum of normalised scores; an item that a retriever did not find gets 0, or the lowest z-score of its list.

    Args:
        weights: per retriever, in their order or by label; equal by default. They need not sum to 1.
        normalization: ``minmax`` to 0..1, ``zscore`` to mean 0 and deviation 1, ``rank`` to 1 for the first down to 1/n.
    """

    name = "weighted_sum"
    manifest_may_set = may_set("weights", "normalization")

    def __init__(self, weights: Weights | None = None, normalization: Normalization = "minmax") -> None:
        self.weights = _checked_weights(weights)
        self.normalization: Normalization = normalization

    def combine(self, pool: FusionPool) -> Scores:
        summed: Scores = normalized(pool, self.normalization) @ _weights_for(self.weights, pool.labels)
        return summed


class CombSUM(BaseFusion):
    """Sum of normalised scores (Fox and Shaw, TREC-2, 1994).

    Args:
        normalization: ``minmax`` to 0..1, ``zscore`` to mean 0 and deviation 1, ``rank`` to 1 for the first down to 1/n.
    """

    name = "combsum"
    manifest_may_set = may_set("normalization")

    def __init__(self, normalization: Normalization = "minmax") -> None:
        self.normalization: Normalization = normalization

    def combine(self, pool: FusionPool) -> Scores:
        summed: Scores = normalized(pool, self.normalization).sum(axis=1)
        return summed


class CombMNZ(BaseFusion):
    """Sum of normalised scores times the number of retrievers that found the item (Fox and Shaw, TREC-2, 1994).

    Args:
        normalization: ``minmax`` or ``rank``; z-scores can be negative, which the product would turn into a penalty.
    """

    name = "combmnz"
    manifest_may_set = may_set("normalization")

    def __init__(self, normalization: Literal["minmax", "rank"] = "minmax") -> None:
        self.normalization: Literal["minmax", "rank"] = normalization

    def combine(self, pool: FusionPool) -> Scores:
        found = np.isfinite(pool.scores).sum(axis=1)
        product: Scores = normalized(pool, self.normalization).sum(axis=1) * found
        return product


def normalized(pool: FusionPool, rule: Normalization) -> Scores:
    """Scores made comparable, ``[candidates, retrievers]``, per list and retriever.

    A list whose scores are all equal becomes 1 (``minmax``) or 0 (``zscore``). A candidate that a retriever did not find
    gets 0, or the lowest z-score of the list.
    """
    values = np.zeros_like(pool.scores)
    for column in range(pool.scores.shape[1]):
        found = np.flatnonzero(np.isfinite(pool.scores[:, column]))
        if len(found) == 0:
            continue
        owner, scores, ranks = pool.owner[found], pool.scores[found, column], pool.ranks[found, column]
        begins = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
        group = np.cumsum(np.concatenate([[0], owner[1:] != owner[:-1]]))
        count = np.diff(np.append(begins, len(owner)))
        if rule == "rank":
            values[found, column] = 1.0 - (ranks - 1.0) / count[group]
            continue
        low, high = np.minimum.reduceat(scores, begins), np.maximum.reduceat(scores, begins)
        spread = (high - low)[group]
        if rule == "minmax":
            safe = np.where(spread > 0, spread, 1.0)
            values[found, column] = np.where(spread > 0, (scores - low[group]) / safe, 1.0)
            continue
        scaled = (scores - low[group]) / np.where(spread > 0, spread, 1.0)  # so that no square under- or overflows
        mean = np.add.reduceat(scaled, begins) / count
        deviation = np.sqrt(np.add.reduceat((scaled - mean[group]) ** 2, begins) / count)[group]
        z = np.where(spread > 0, (scaled - mean[group]) / np.where(spread > 0, deviation, 1.0), 0.0)
        lowest = np.zeros(pool.n_lists)
        lowest[owner[begins]] = np.minimum.reduceat(z, begins)
        values[:, column] = lowest[pool.owner]
        values[found, column] = z
    return values


def _checked_weights(weights: Weights | None) -> Weights | None:
    values = list(weights.values()) if isinstance(weights, Mapping) else weights
    if values is not None and not any(values):
        raise ConfigurationError(f"weights={weights!r}: at least one weight must be above 0")
    return weights


def _weights_for(weights: Weights | None, labels: list[str]) -> Scores:
    if weights is None:
        return np.ones(len(labels))
    if isinstance(weights, Mapping):
        if set(weights) != set(labels):
            raise ConfigurationError(f"weights are given for {sorted(weights)}, the retrievers are {sorted(labels)}")
        return np.array([weights[label] for label in labels], np.float64)
    if len(weights) != len(labels):
        raise ConfigurationError(f"{len(weights)} weights are given for {len(labels)} retrievers ({', '.join(labels)})")
    return np.array(weights, np.float64)
