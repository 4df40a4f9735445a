"""The computations of the link graph retriever for one query.

These are the restarts of its walk, and the candidates that the walk reaches, with the evidence for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.retrievers.link_graph.walk.evidence import DEFAULT_WEIGHTS

_RANK = 60  # the constant of reciprocal rank fusion (Cormack et al., SIGIR 2009)


@dataclass(frozen=True)
class Seeded:
    """Restarts of a query's walk.

    Args:
        rows: item rows, ascending.
        shares: share of the restarts at each; they sum to 1, or are all 0 if nothing was found.
        scores: hits of each seed: rows, best first, and their scores.
        titled_rows: rows whose titles the query names, ascending.
        titled: certainty that it names each, 0 to 1.
    """

    rows: Rows
    shares: Scores
    scores: dict[str, tuple[Rows, Scores]]
    titled_rows: Rows
    titled: Scores


@dataclass(frozen=True)
class GraphCandidates:
    """The candidates of a query, by falling share of the walk.

    Args:
        rows: item rows.
        ranks: share of the walk.
        shares: share of its restarts.
        evidence: by kind, for the first candidates; see
            :data:`~nlp_retrieval.retrievers.link_graph.walk.evidence.DEFAULT_WEIGHTS`.
        seeds: scores of each seed; NaN for items that it did not find.
    """

    rows: Rows
    ranks: Scores
    shares: Scores
    evidence: dict[str, Scores]
    seeds: dict[str, Scores]

    def ranked(self, weights: Mapping[str, float], k: int) -> tuple[Rows, Scores, dict[str, Scores]]:
        """Return the best k rows by weighted evidence, their scores and their signals.

        Candidates without evidence follow those that have it, in the order of the walk.
        """
        n_pooled = len(self.evidence["pagerank"])
        scores = np.zeros(len(self.rows))
        scores[:n_pooled] = sum(weights[kind] * column for kind, column in self.evidence.items())
        if len(self.rows) > n_pooled:
            scores[n_pooled:] = scores_below(float(scores[:n_pooled].min()), len(self.rows) - n_pooled)
        order = np.lexsort((self.rows, -scores))[:k]
        signals = {"pagerank": self.ranks[order]}
        for kind in DEFAULT_WEIGHTS.keys() - signals.keys():
            column = np.full(len(self.rows), np.nan)
            column[:n_pooled] = self.evidence[kind]
            signals[kind] = column[order]
        signals = {"seeds": self.shares[order]} | {kind: signals[kind] for kind in DEFAULT_WEIGHTS}
        signals |= {f"seed.{label}": column[order] for label, column in self.seeds.items()}
        return self.rows[order], scores[order], signals


def scores_below(lowest: float, count: int) -> Scores:
    """Return strictly falling scores below a score, within a narrow range, by position only: the same for every ``count``."""
    return lowest - max(1.0, abs(lowest)) * (2.0 - 1.0 / np.arange(1, count + 1))


def fused_ranks(wanted: Rows, seeded: Seeded) -> Scores:
    """Return the reciprocal rank fusion of the seeds' hits: 1 for the first place with all seeds, 0 for rows that none found.

    Hits of one score share the first of their places.
    """
    fused = np.zeros(len(wanted))
    for rows, scores in seeded.scores.values():
        places = np.searchsorted(-scores, -scores)
        fused += looked_up(wanted, *by_row(rows, (_RANK + 1) / (_RANK + 1 + places)), 0.0)
    return fused / max(len(seeded.scores), 1)


def looked_up(wanted: Rows, rows: Rows, values: Scores, otherwise: float) -> Scores:
    """Return the values of wanted rows, ``otherwise`` for rows without one; ``rows`` is ascending."""
    wanted_values = np.full(len(wanted), otherwise)
    if len(rows):
        places = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
        has_value = rows[places] == wanted
        wanted_values[has_value] = values[places[has_value]]
    return wanted_values


def by_row(rows: Rows, values: Scores) -> tuple[Rows, Scores]:
    """Sort rows and their values by row."""
    order = np.argsort(rows)
    return rows[order], values[order]
