"""Retrievers that define ``index`` and ``retrieve`` and nothing else, and rerankers that define ``rerank`` and nothing else.

The three signatures::

    def index(self, items: list[SearchableItem], output_path: Path) -> None
    def retrieve(self, processed_queries: list[list[str]], output_path: Path, k: int) -> list[list[hit]]
    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> list[list[hit]]

The sub-queries of a query come together, as the processor made them. A hit is a :class:`RetrievalResult`, an item, the id of
one, or a pair of one of these and a score. Each list is best first; without scores, the score is 1 / rank.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, EngineError

_SIGNATURES = {
    "index": ("items", "output_path"),
    "retrieve": ("processed_queries", "output_path", "k"),
    "rerank": ("nlqs", "results", "k"),
}
_HIT = "a hit is a RetrievalResult, an item, the id of one, or a pair of one of these and a score"


def check_signature(cls: type, method: str) -> None:
    """Raise a ConfigurationError unless a method has its signature; further parameters need a default."""
    parameters = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    wanted, written = _SIGNATURES[method], tuple(parameter.name for parameter in parameters)
    ones = [parameter for parameter in parameters if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
    required = {parameter.name for parameter in ones if parameter.default is parameter.empty}
    if written[: len(wanted)] != wanted or not required <= {*wanted}:
        raise ConfigurationError(
            f"{cls.__name__}.{method}({', '.join(written)}): define {method}(self, {', '.join(wanted)}); further parameters "
            "need a default"
        )


class AdaptedHit(NamedTuple):
    """A hit in any of its forms."""

    item_id: str
    score: float | None
    signals: Mapping[str, float]


def lists_of(returned: object, n_queries: int, said: str) -> list[list[AdaptedHit]]:
    """Read what a method returned: one list of hits for each query. Errors begin with ``said``, the method's name."""
    if not isinstance(returned, list | tuple) or len(returned) != n_queries:
        shown = f"{len(returned)} lists" if isinstance(returned, list | tuple) else type(returned).__name__
        raise EngineError(f"{said} returned {shown} for {n_queries} queries; return one list of hits for each")
    return [_read_list(hits, said) for hits in returned]


def _read_list(returned: object, said: str) -> list[AdaptedHit]:
    if not isinstance(returned, list | tuple):
        raise EngineError(f"{said} returned {returned!r:.80} for a query; return a list of hits, best first: {_HIT}")
    hits = [_read_hit(entry, said) for entry in returned]
    if 0 < sum(hit.score is None for hit in hits) < len(hits):
        raise EngineError(f"{said} returned a list in which only some hits have a score; give one to each, or to none")
    return hits


def _read_hit(entry: object, said: str) -> AdaptedHit:
    match entry:
        case RetrievalResult():
            return AdaptedHit(entry.item.item_id, entry.score, entry.signals)
        case SearchableItem():
            return AdaptedHit(entry.item_id, None, {})
        case str():
            return AdaptedHit(entry, None, {})
        case (found, Real() as score):
            return _read_hit(found, said)._replace(score=float(score))
    raise EngineError(f"{said} returned {entry!r:.80} ({type(entry).__name__}) as a hit; {_HIT}")


# Retrievers.


@dataclass
class AdaptedIndex:
    """An object of the author's class that has indexed items."""

    retriever: Any
    folder: Path
    row_of: dict[str, int]
    lock: Lock = field(default_factory=Lock)

    def search(self, queries: list[list[str]], k: int, allowed: Mask | None) -> Hits:
        """Return the best ``k`` hits of each group of sub-queries; more are asked for until ties and filter leave no doubt."""
        found: list[tuple[Rows, Scores, list[Mapping[str, float]]]] = [(np.zeros(0, np.int64), np.zeros(0), [])] * len(queries)
        n_items, said = len(self.row_of), f"{type(self.retriever).__name__}.retrieve"
        pending, depth = (list(range(len(queries))) if n_items else []), min(k + 1, n_items)
        while pending:
            with self.lock:
                lists = self.retriever.retrieve([queries[number] for number in pending], self.folder, depth)
            unsure = []
            for number, hits in zip(pending, lists_of(lists, len(pending), said), strict=True):
                rows, scores = self._rows(hits, said), _descending(hits, said)
                kept = np.arange(len(rows)) if allowed is None else np.flatnonzero(allowed[rows])
                best = kept[np.lexsort((rows[kept], -scores[kept]))[:k]]
                found[number] = rows[best], scores[best], [hits[position].signals for position in best.tolist()]
                is_whole = len(rows) != depth or depth >= n_items
                if not is_whole and (len(kept) < k or scores[best[-1]] <= scores[-1]):
                    unsure.append(number)
            pending, depth = unsure, min(4 * depth, n_items)
        ranked = Hits.from_lists([(rows, scores) for rows, scores, _ in found])
        signals = [signal for _, _, listed in found for signal in listed]
        keys = dict.fromkeys(key for signal in signals for key in signal)
        columns = {key: np.array([signal.get(key, np.nan) for signal in signals], np.float64) for key in keys}
        return Hits(ranked.offsets, ranked.rows, ranked.scores, columns)

    def _rows(self, hits: list[AdaptedHit], said: str) -> Rows:
        if unknown := [hit.item_id for hit in hits if hit.item_id not in self.row_of]:
            raise EngineError(f"{said} returned {unknown[0]!r:.80}, which is the id of no item that index() got; {_HIT}")
        return np.array([self.row_of[hit.item_id] for hit in hits], np.int64)


def _descending(hits: Sequence[AdaptedHit], said: str) -> Scores:
    """The scores of hits; 1 / rank where they have none."""
    if not hits or hits[0].score is None:
        return 1.0 / np.arange(1.0, len(hits) + 1.0)
    scores = np.array([hit.score for hit in hits], np.float64)
    if len(rising := np.flatnonzero(scores[1:] > scores[:-1])):
        first, then = scores[rising[0]], scores[rising[0] + 1]
        raise EngineError(
            f"{said} returned a hit with the score {first:g} before one with {then:g}; hits come best first, and a higher "
            "score is better: sort them, and negate distances"
        )
    return scores


# Rerankers.


def places_of(reranked: Sequence[AdaptedHit], results: Sequence[RetrievalResult], said: str) -> list[int]:
    """Return the place of each hit in the list that was reranked."""
    place_of = {result.item.item_id: place for place, result in enumerate(results)}
    if unknown := [hit.item_id for hit in reranked if hit.item_id not in place_of]:
        raise EngineError(f"{said} returned {unknown[0]!r:.80}, which is none of the {len(results)} results that it got")
    places = [place_of[hit.item_id] for hit in reranked]
    if len(set(places)) < len(places):
        raise EngineError(f"{said} returned a result twice for one query")
    return places


def scores_in_order(reranked: Sequence[AdaptedHit], rows: Rows) -> list[float]:
    """The scores of hits; 1 / rank where there are none, or where they say otherwise than the order."""
    ranks = [1.0 / rank for rank in range(1, len(reranked) + 1)]
    scores = [rank if hit.score is None else hit.score for hit, rank in zip(reranked, ranks, strict=True)]
    order = [(-score, row) for score, row in zip(scores, rows.tolist(), strict=True)]
    return scores if order == sorted(order) else ranks
