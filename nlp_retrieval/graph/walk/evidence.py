"""The evidence for a candidate of a multi-hop search, as columns whose weighted sum is its score.

The walk over the links says what is near the seeds; it does not say whether a passage, together with those it is linked
to, answers the query. ``chain`` does: how much of the query's information a passage covers together with its best linked
neighbour among the candidates. ``complement`` is what it adds to the foremost candidate. Both are needed where one
passage alone cannot cover a query, which is what multi-hop means.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.graph.store.link_graph import WeightedGraph

FLOOR = 1e-7
"""Smaller shares of the walk count as this one."""

DEFAULT_WEIGHTS: dict[str, float] = {
    "pagerank": 1.5,
    "seeds": -0.2,
    "similarity": 7.5,
    "titles": 2.5,
    "coverage": 0.0,
    "chain": 9.0,
    "complement": 8.0,
    "links": -0.7,
}
"""The weight of each kind of evidence in the score.

``pagerank`` and ``seeds`` are natural logarithms of shares (of the walk, and of its restarts), ``similarity`` is the
encoder's inner product with the query, ``titles`` how certainly the query names the passage (0 to 1), ``coverage``,
``chain`` and ``complement`` shares of the query's information (0 to 1), ``links`` the logarithm of 1 + the number of
candidates that the passage is linked to.

They were fitted by ``nlp-retrieval tune`` to 1,018 HotpotQA questions over 31,857 passages with all-MiniLM-L6-v2, and
rounded. The inner products of another encoder are distributed differently, so with another encoder it pays to tune.
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


def links_among(weighted: WeightedGraph, rows: Rows) -> tuple[Rows, Rows]:
    """Return the pairs of linked candidates, as positions in ``rows``, each pair once in either order.

    A link counts if it may be walked in at least one direction.
    """
    graph = weighted.graph
    entries, counts = entries_of(graph.offsets, rows)
    neighbours = graph.neighbours[entries]
    order = np.argsort(rows)
    places = np.minimum(np.searchsorted(rows[order], neighbours), max(len(rows) - 1, 0))
    is_open = weighted.type_weights > 0
    is_open |= is_open.reshape(-1, 2)[:, ::-1].ravel()  # types 2 i and 2 i + 1 are one kind, along and against
    inside = (rows[order][places] == neighbours) & is_open[graph.types[entries]]
    owner = np.repeat(np.arange(len(rows)), counts)[inside]
    pairs = np.unique(owner * len(rows) + order[places[inside]])
    return np.divmod(pairs, max(len(rows), 1))


def coverage_evidence(covered: NDArray[np.bool_], shares: Scores, pairs: tuple[Rows, Rows], foremost: int) -> dict[str, Scores]:
    """Compute the kinds of evidence that the query's terms and the links among candidates give.

    Args:
        covered: ``[candidates, terms]``.
        shares: ``[terms]``, each term's share of the query's information.
        pairs: linked candidates, as :func:`links_among` returns them.
        foremost: position of the candidate that ranks first.
    """
    informed = covered * shares
    coverage = informed.sum(axis=1)
    linking, linked = pairs
    chain = coverage.copy()
    np.maximum.at(chain, linking, (covered[linking] | covered[linked]) @ shares)
    complement = (covered & ~covered[foremost]) @ shares if len(covered) else coverage
    links = np.log1p(np.bincount(linking, minlength=len(covered)))
    return {"coverage": coverage, "chain": chain, "complement": complement, "links": links}
