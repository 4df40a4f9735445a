"""Links of one kind in columns, from which a graph is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.errors import EngineError


@dataclass(frozen=True)
class Links:
    """Links of one kind as columns; the text of the source points to the target.

    Args:
        sources: item rows.
        targets: item rows.
        weights: finite, above 0.
    """

    sources: Rows
    targets: Rows
    weights: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence[Links]) -> Links:
        """Put lists of links one after another."""
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.sources for part in parts)]),
            np.concatenate([none, *(part.targets for part in parts)]),
            np.concatenate([none.astype(np.float32), *(part.weights for part in parts)]),
        )

    def where(self, kept: Mask) -> Links:
        """Return those links that a mask over them keeps."""
        return Links(self.sources[kept], self.targets[kept], self.weights[kept])

    def among(self, live: Mask) -> Links:
        """Return the links neither of whose ends is deleted."""
        return self if live.all() else self.where(live[self.sources] & live[self.targets])

    def merged(self, kind: str, n_nodes: int) -> Links:
        """Leave out self links, add up repeated ones, and sort by source and target.

        Raises:
            EngineError: columns of unequal length, a row outside ``0..n_nodes - 1``, or a weight that is not above 0.
        """
        if not len(self.sources) == len(self.targets) == len(self.weights):
            lengths = f"{len(self.sources)} sources, {len(self.targets)} targets and {len(self.weights)} weights"
            raise EngineError(f"links of kind {kind!r}: {lengths}; the columns must be equally long")
        for rows in (self.sources, self.targets):
            if len(rows) and (rows.min() < 0 or rows.max() >= n_nodes):
                wrong = int(rows[(rows < 0) | (rows >= n_nodes)][0])
                raise EngineError(f"links of kind {kind!r} name the row {wrong}; rows are 0..{n_nodes - 1}")
        if not (np.isfinite(self.weights) & (self.weights > 0)).all():
            wrong_weight = self.weights[~(np.isfinite(self.weights) & (self.weights > 0))][0]
            raise EngineError(f"links of kind {kind!r} have a weight of {wrong_weight}; weights are finite and above 0")
        keys = np.multiply(self.sources, n_nodes, dtype=np.int64)
        keys += self.targets
        keys[self.sources == self.targets] = -1
        is_typed = self.sources.dtype == self.targets.dtype == np.int64 and self.weights.dtype == np.float32
        if is_typed and (keys >= 0).all() and (keys[1:] > keys[:-1]).all():
            return self
        return merged_links(keys, self.weights, kind, n_nodes)


def merged_links(keys: NDArray[np.int64], weights: NDArray[np.float32], kind: str, n_nodes: int) -> Links:
    """Add up repeated links, and sort by source and target.

    Args:
        keys: per link, ``source * n_nodes + target``; links with a key below 0 are dropped.
        weights: finite, above 0.
        kind: named in an error.
        n_nodes: how many nodes there are.

    Raises:
        EngineError: the weights of one link add up to more than float32 holds.
    """
    order = np.argsort(keys, kind="stable")
    order = order[np.searchsorted(keys, 0, sorter=order) :]
    keys = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(is_first)
    sums = weights[order].astype(np.float64)
    sums = np.add.reduceat(sums, first) if len(first) else sums
    if sums.max(initial=0.0) > np.finfo(np.float32).max:
        raise EngineError(f"links of kind {kind!r}: the weights of one repeated link add up to more than float32 holds")
    sources, targets = np.divmod(keys[first], max(n_nodes, 1))
    return Links(sources, targets, sums.astype(np.float32))
