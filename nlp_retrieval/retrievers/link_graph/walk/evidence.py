"""The evidence for a candidate of a multi-hop search, as columns whose weighted sum is its score.

The walk over the links finds passages near the seeds, but not whether a passage, together with those it is linked to, answers
the query. ``chain`` tells this: the part of the query's information that a passage covers together with its best linked
neighbour among the candidates. ``complement`` is the part that it adds to the first candidate. Both are needed if one passage
alone cannot cover a query, as in multi-hop questions.

The links show whether a query is multi-hop, by the share of the candidates that mention another or are mentioned by one. The
query's information that the first candidate lacks is evidence for passages linked to it, and for others only by that share; the
fusion of the seeds (``fused``) counts by the rest of the share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.retrievers.link_graph.store.link_graph import WeightedGraph

FLOOR = 1e-7
"""Smaller shares of the walk count as this one."""

DEFAULT_WEIGHTS: dict[str, float] = {
    "pagerank": 0.75,
    "fused": 2.0,
    "similarity": 8.0,
    "titles": 1.3,
    "title_coverage": 1.1,
    "named": 6.3,
    "coverage": -6.0,
    "chain": 6.0,
    "chain_along": 2.8,
    "chain_against": 4.7,
    "complement": 7.5,
}
"""The weight of each kind of evidence in the score.

``pagerank`` is the natural logarithm of a share of the walk, ``fused`` the reciprocal rank fusion of the seeds (0 to 1, the
first place with all of them) times the share of candidates that no link with a direction connects, ``similarity`` the encoder's
inner product with the query, ``titles`` the certainty that the query names the passage (0 to 1), ``title_coverage`` the share
of its title's terms in the query, ``named`` the extent to which the passage is about its title (0 to 1, see
:meth:`~nlp_retrieval.retrievers.link_graph.store.passage_terms.PassageTerms.named`), ``coverage``, ``complement`` and the
chains shares of the query's information (0 to 1): ``chain`` over links of any kind, ``chain_along`` together with a passage
that this one points to, ``chain_against`` together with one that points to it.

They were fitted to 1,018 HotpotQA questions over 31,857 passages with all-MiniLM-L6-v2, and over three haystacks of ten times
as many (``python -m bench.multihop.crowd``), the collection counting as much as the three together; then rounded. That was
before links weighed ``complement``. ``fused`` was chosen in addition, with and without relevant links (``python -m
bench.harmless``). The inner products of another encoder are distributed differently, so tune the weights for another encoder.
"""

_LARGEST = 1_000_000


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weights of all kinds of evidence: those given, and the defaults of the others.

    Raises:
        ConfigurationError: there is no such kind, or a weight is out of range.
    """
    for kind, weight in (weights or {}).items():
        if kind not in DEFAULT_WEIGHTS:
            raise ConfigurationError(f"weights: there is no evidence {kind!r}; {nearest(kind, DEFAULT_WEIGHTS)}")
        if not abs(weight) <= _LARGEST:
            raise ConfigurationError(f"weights: {kind}={weight} is not a number from -{_LARGEST:,} to {_LARGEST:,}")
    return DEFAULT_WEIGHTS | dict(weights or {})


@dataclass(frozen=True)
class LinkedPairs:
    """The pairs of linked candidates, as positions among the candidates, each pair once in either order.

    Args:
        ones: the first of each pair.
        others: the second.
        points: whether a link that has a direction leads from the first to the second.
        pointed: whether one leads from the second to the first.
    """

    ones: Rows
    others: Rows
    points: Mask
    pointed: Mask

    def apart(self, n_candidates: int) -> float:
        """Return the share of the candidates that no link with a direction connects to another."""
        return 1.0 - len(np.unique(self.ones[self.points | self.pointed])) / max(n_candidates, 1)


def links_among(weighted: WeightedGraph, rows: Rows, undirected: Collection[str] = ()) -> LinkedPairs:
    """Return the pairs of linked candidates.

    A link counts if it may be walked in at least one direction.

    Args:
        weighted: the links.
        rows: the candidates.
        undirected: kinds whose links have no direction.
    """
    graph = weighted.graph
    entries, counts = entries_of(graph.offsets, rows)
    neighbours = graph.neighbours[entries]
    order = np.argsort(rows)
    places = np.minimum(np.searchsorted(rows[order], neighbours), max(len(rows) - 1, 0))
    is_open = weighted.type_weights > 0
    is_open |= is_open.reshape(-1, 2)[:, ::-1].ravel()  # types 2 i and 2 i + 1 are one kind, along and against
    types = graph.types[entries]
    inside = (rows[order][places] == neighbours) & is_open[types]
    owner = np.repeat(np.arange(len(rows)), counts)[inside]
    pairs, number = np.unique(owner * len(rows) + order[places[inside]], return_inverse=True)
    directed = np.repeat([kind not in undirected for kind in graph.n_links], 2).astype(bool)[types[inside]]
    along = types[inside] % 2 == 0
    points = np.bincount(number[directed & along], minlength=len(pairs)) > 0
    pointed = np.bincount(number[directed & ~along], minlength=len(pairs)) > 0
    return LinkedPairs(*np.divmod(pairs, max(len(rows), 1)), points, pointed)


def coverage_evidence(covered: NDArray[np.bool_], shares: Scores, pairs: LinkedPairs, foremost: int) -> dict[str, Scores]:
    """Compute the kinds of evidence that the query's terms and the links among candidates give.

    Args:
        covered: ``[candidates, terms]``.
        shares: ``[terms]``, each term's share of the query's information.
        pairs: linked candidates, as :func:`links_among` returns them.
        foremost: position of the candidate that ranks first.
    """
    coverage = (covered * shares).sum(axis=1)
    together = (covered[pairs.ones] | covered[pairs.others]) @ shares
    evidence = {"coverage": coverage}
    everywhere = np.ones(len(pairs.ones), bool)
    for kind, counting in (("chain", everywhere), ("chain_along", pairs.points), ("chain_against", pairs.pointed)):
        evidence[kind] = coverage.copy()
        np.maximum.at(evidence[kind], pairs.ones[counting], together[counting])
    complement = (covered & ~covered[foremost]) @ shares if len(covered) else coverage
    unlinked = np.ones(len(covered), bool)
    unlinked[pairs.others[pairs.ones == foremost]] = False
    complement[unlinked] *= 1.0 - pairs.apart(len(covered))
    return evidence | {"complement": complement}
