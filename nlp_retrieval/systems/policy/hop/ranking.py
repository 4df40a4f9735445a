"""The lists that a hop search ends with: passages found and passages reached, and passages that a version changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core import Mask, Rows, Scores
from nlp_retrieval.systems.policy.relations.best_first import RelationPath
from nlp_retrieval.systems.policy.relations.structure import EDITED

__all__ = ["RankedPassages", "VersionChanges", "changed", "pooled"]


@dataclass(frozen=True, eq=False)
class RankedPassages:
    """A list, best first.

    Args:
        rows: of the passages.
        scores: theirs.
        signals: by name, a column each.
    """

    rows: Rows
    scores: Scores
    signals: dict[str, Scores]

    def then(self, others: RankedPassages, k: int) -> RankedPassages:
        """These, and below them, with the same distances, those of another list that are not among them; at most k."""
        kept = np.flatnonzero(~np.isin(others.rows, self.rows))[: max(0, k - len(self.rows))]
        signals = {
            key: np.concatenate([
                self.signals.get(key, np.full(len(self.rows), np.nan)),
                others.signals.get(key, np.full(len(others.rows), np.nan))[kept],
            ])
            for key in dict.fromkeys([*self.signals, *others.signals])
        }  # fmt: skip
        following = others.scores[kept]
        if len(self.rows) and len(following):
            following = float(self.scores.min()) - 1.0 - (float(others.scores.max()) - following)
        scores = np.concatenate([self.scores, following])
        whole = RankedPassages(np.concatenate([self.rows, others.rows[kept]]), scores, signals)
        return whole.head(k)

    def head(self, k: int) -> RankedPassages:
        """The best k."""
        return RankedPassages(self.rows[:k], self.scores[:k], {key: column[:k] for key, column in self.signals.items()})


def pooled(rows: Rows, own: Scores, paths: list[RelationPath], hop_weight: float, central: Scores, k: int) -> RankedPassages:
    """Rank passages that were found, and those reached from them.

    Args:
        rows: found, best first.
        own: their scaled scores.
        paths: the strongest to each passage that was reached.
        hop_weight: what a path adds, times its strength.
        central: by row, what centrality adds.
        k: how many to return at most.
    """
    reached = np.array([path.row for path in paths], np.int64)
    every = np.union1d(rows, reached)
    found, walked, hops = np.zeros(len(every)), np.zeros(len(every)), np.full(len(every), np.nan)
    found[np.searchsorted(every, rows)] = own
    places = np.searchsorted(every, reached)
    walked[places] = [path.strength for path in paths]
    hops[places] = [len(path.relations) for path in paths]
    scores = (found + hop_weight * walked + central[every]).round(9)
    order = np.lexsort((every, -scores))[:k]
    return RankedPassages(every[order], scores[order], {"path": walked[order], "hops": hops[order]})


@dataclass(frozen=True, eq=False)
class VersionChanges:
    """What versions change, by row of an index.

    Args:
        versions: number of the version of each passage in its family; -1 for none.
        families: number of its family.
        new: share of its words that the version before does not have; NaN where there is none.
        gone: share of its words that the next version does not have; NaN where there is none.
        following: rows that stand after another in their document.
        followed: for each, the row before it.
    """

    versions: Rows
    families: Rows
    new: Scores
    gone: Scores
    following: Rows
    followed: Rows

    def side(self, kind: str, allowed: Mask | None) -> tuple[Mask, Mask]:
        """Return which passages are of the version asked for, and which of these are changed.

        That is the last version of each family that has one before it (or, for what is gone, one after it), of those that may
        be found.

        Args:
            kind: ``added`` or ``dropped``.
            allowed: ``[rows]``, which may be found.
        """
        shares = self.new if kind == "added" else self.gone
        comparable = ~np.isnan(shares)
        if allowed is not None:
            comparable = comparable & allowed
        rows = np.flatnonzero(comparable)
        last = np.full(int(self.families.max(initial=0)) + 1, -1)
        np.maximum.at(last, self.families[rows], self.versions[rows])
        comparable = comparable & (self.versions == last[self.families])
        return comparable, comparable & (np.nan_to_num(shares) >= EDITED)

    def smoothed(self, rows: Rows, scores: Scores, weight: float) -> Scores:
        """Scores in which those of the passages before and after count too: a matter takes more than one passage.

        Args:
            rows: the passages that have a score.
            scores: 0 to 1.
            weight: how much a neighbour counts, compared with 1 for the passage itself.
        """
        by_row = np.full(len(self.versions), np.nan)
        by_row[rows] = scores
        sums, counts = np.nan_to_num(by_row), np.ones(len(by_row))
        for one, other in ((self.following, self.followed), (self.followed, self.following)):
            known = ~np.isnan(by_row[other])
            np.add.at(sums, one[known], weight * by_row[other[known]])
            np.add.at(counts, one[known], weight)
        means: Scores = sums / counts
        return means[rows]


Search = Callable[[str, int, Mask], tuple[Rows, Scores]]
"""Finds at most so many allowed rows for a query: rows, best first, and their scores."""


def changed(
    changes: VersionChanges,
    kind: str,
    query: str,
    search: Search,
    allowed: Mask | None,
    depth: int,
    weight: float,
    power: float,
) -> RankedPassages:
    """Rank what a version changed, by relevance to a query and by how much of it is new, or gone.

    Args:
        changes: what versions change.
        kind: ``added`` or ``dropped``.
        query: what the question is about.
        search: finds passages.
        allowed: ``[rows]``, which may be found.
        depth: how many changed passages, and how many others, are searched for.
        weight: how much the passages before and after count.
        power: the share that is new counts to this power.
    """
    side, is_changed = changes.side(kind, allowed)
    rows, scores = search(query, depth, is_changed)
    if not len(rows):
        return RankedPassages(rows, scores, {})
    others, other_scores = search(query, depth, side & ~is_changed)
    both = np.concatenate([scores, other_scores])
    lowest = float(both.min())
    span = float(both.max()) - lowest
    relevance = (both - lowest) / span if span > 0 else np.ones(len(both))
    smooth = changes.smoothed(np.concatenate([rows, others]), relevance, weight)[: len(rows)]
    shares = (changes.new if kind == "added" else changes.gone)[rows]
    final = ((0.01 + smooth) * shares**power).round(9)
    order = np.lexsort((rows, -final))
    return RankedPassages(rows[order], final[order], {"relevance": smooth[order]})
