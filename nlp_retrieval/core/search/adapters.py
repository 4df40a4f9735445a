"""Retrievers that define ``index`` and ``retrieve`` and nothing else, and rerankers that define ``rerank`` and nothing else.

The three signatures::

    def index(self, items: list[SearchableItem], output_path: Path) -> None
    def retrieve(self, processed_queries: list[list[str]], output_path: Path, k: int) -> list[list[hit]]
    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> list[list[hit]]

A hit is a :class:`RetrievalResult`, an item, the id of one, or a pair of one of these and a score. Each list is best first;
without scores, the score is 1 / rank.
"""

from __future__ import annotations

import copy
import inspect
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, cast
from weakref import WeakValueDictionary, finalize

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch, Hits, Mask, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import canonical_json, is_abstract, take_name
from nlp_retrieval.core.index.generation import Generation, SegmentFolder
from nlp_retrieval.core.index.items import ItemsDigest, ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError, EngineError, RetrievalWarning

_SIGNATURES = {
    "index": ("items", "output_path"),
    "retrieve": ("processed_queries", "output_path", "k"),
    "rerank": ("nlqs", "results", "k"),
}
_HIT = "a hit is a RetrievalResult, an item, the id of one, or a pair of one of these and a score"


def _check_signature(cls: type, method: str) -> None:
    parameters = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    wanted, written = _SIGNATURES[method], tuple(parameter.name for parameter in parameters)
    required = {parameter.name for parameter in parameters if parameter.default is parameter.empty and parameter.kind < 2}
    if written[: len(wanted)] != wanted or not required <= {*wanted}:
        raise ConfigurationError(
            f"{cls.__name__}.{method}({', '.join(written)}): define {method}(self, {', '.join(wanted)}); further parameters "
            "need a default"
        )


class _Hit(NamedTuple):
    item_id: str
    score: float | None
    signals: Mapping[str, float]


def _lists_of(returned: object, n_queries: int, said: str) -> list[list[_Hit]]:
    if not isinstance(returned, list | tuple) or len(returned) != n_queries:
        shown = f"{len(returned)} lists" if isinstance(returned, list | tuple) else type(returned).__name__
        raise EngineError(f"{said} returned {shown} for {n_queries} queries; return one list of hits for each")
    return [_read_list(hits, said) for hits in returned]


def _read_list(returned: object, said: str) -> list[_Hit]:
    if not isinstance(returned, list | tuple):
        raise EngineError(f"{said} returned {returned!r:.80} for a query; return a list of hits, best first: {_HIT}")
    hits = [_read_hit(entry, said) for entry in returned]
    if 0 < sum(hit.score is None for hit in hits) < len(hits):
        raise EngineError(f"{said} returned a list in which only some hits have a score; give one to each, or to none")
    return hits


def _read_hit(entry: object, said: str) -> _Hit:
    match entry:
        case RetrievalResult():
            return _Hit(entry.item.item_id, entry.score, entry.signals)
        case SearchableItem():
            return _Hit(entry.item_id, None, {})
        case str():
            return _Hit(entry, None, {})
        case (found, Real() as score):
            return _read_hit(found, said)._replace(score=float(score))
    raise EngineError(f"{said} returned {entry!r:.80} ({type(entry).__name__}) as a hit; {_HIT}")


def is_adapted(component: object) -> bool:
    """Return whether a retriever defines ``index`` and ``retrieve`` alone, or a reranker ``rerank`` alone."""
    adapted = AdaptedRetriever.search_batch, AdaptedReranker.rerank_batch
    return any(getattr(type(component), method.__name__, None) is method for method in adapted)


# Retrievers.


def adapt_retriever(cls: Any) -> None:
    """Give a class that overrides ``retrieve`` and has no engine the methods of one.

    Raises:
        ConfigurationError: a method has another signature.
    """
    if is_abstract(cls, "build", "search_batch"):
        for method in ("build", "extend", "load_segments", "open", "search_batch"):
            setattr(cls, method, getattr(AdaptedRetriever, method))
        if is_abstract(cls, "load"):
            cls.load = AdaptedRetriever.load
        take_name(cls)
    if cls.search_batch is AdaptedRetriever.search_batch:
        _check_signature(cls, "retrieve")
        if cls.index is not BaseRetriever.index:
            _check_signature(cls, "index")


@dataclass
class AdaptedIndex:
    """An object of the author's class that has indexed items.

    Args:
        retriever: the object.
        folder: that its ``retrieve`` gets.
        row_of: the row of each item, by its id.
    """

    retriever: Any
    folder: Path
    row_of: dict[str, int]
    lock: Lock = field(default_factory=Lock)

    def search(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Return the best ``k`` hits of each query; more are asked for until ties and the filter leave no doubt."""
        found: list[tuple[Rows, Scores, list[Mapping[str, float]]]] = [(np.zeros(0, np.int64), np.zeros(0), [])] * len(queries)
        n_items, said = len(self.row_of), f"{type(self.retriever).__name__}.retrieve"
        pending, depth = (list(range(len(queries))) if n_items else []), min(k + 1, n_items)
        while pending:
            with self.lock:
                lists = self.retriever.retrieve([[queries[number]] for number in pending], self.folder, depth)
            unsure = []
            for number, hits in zip(pending, _lists_of(lists, len(pending), said), strict=True):
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

    def _rows(self, hits: list[_Hit], said: str) -> Rows:
        if unknown := [hit.item_id for hit in hits if hit.item_id not in self.row_of]:
            raise EngineError(f"{said} returned {unknown[0]!r:.80}, which is the id of no item that index() got; {_HIT}")
        return np.array([self.row_of[hit.item_id] for hit in hits], np.int64)


def _descending(hits: Sequence[_Hit], said: str) -> Scores:
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


class AdaptedRetriever(BaseRetriever):
    """The methods of an engine, for a class that defines ``index`` and ``retrieve``, or ``retrieve`` alone.

    Each index has an object of its own, made with the retriever's arguments. Another process, which does not have the object,
    opens the index by the class's method ``load(folder)``; if there is none, or items were added, it indexes the items again.
    """

    _folders: Sequence[SegmentFolder] = ()
    _adapted: AdaptedIndex | None = None

    def build(self, items: ItemTable, folder: Path) -> None:
        """Let ``index`` write the index, and keep the object."""
        digest = ItemsDigest()
        self._adapted = _indexed(self, list(digest.passing(items.stream())), items, folder)
        if not any(folder.iterdir()):
            if _loads(self):
                raise EngineError(
                    f"{type(self).__name__}.index() wrote nothing that load() could open; write files into output_path, or "
                    "leave load() out, and the items are indexed again when the index is opened"
                )
            (folder / "in_memory.json").write_text("{}", "utf-8")
        _in_memory[_key(self, digest.hexdigest())] = self._adapted

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write nothing: an index of several segments is made again from all items."""

    def load(self, folder: Path) -> None:
        """Do nothing; :meth:`open` has the items too."""

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        """Remember the folders for :meth:`open`."""
        self._folders = segments

    def open(self, generation: Generation) -> Any:
        """Return a copy that searches a generation: by its files, by an object of this process, or by indexing again."""
        opened, items = BaseRetriever.open(self, generation), generation.items
        folder, key = opened._folders[0].folder, _key(self, generation.manifest.corpus.fingerprint)
        known = _in_memory.get(key)
        if _loads(self) and len(opened._folders) == 1:
            engine = copy.deepcopy(self)
            engine.load(folder)
            known = AdaptedIndex(engine, folder, {item.item_id: row for row, item in enumerate(items.stream(keys=()))})
        elif known is None:
            temporary = Path(mkdtemp(prefix="nlp_retrieval-"))
            known = _in_memory[key] = _indexed(self, list(items.stream_live()), items, temporary)
            finalize(known, shutil.rmtree, temporary, ignore_errors=True)
            if type(self).index is not BaseRetriever.index:
                cure = "call compact()" if _loads(self) else "define load(folder), which opens what index() wrote"
                message = f"{self.name} has indexed {len(known.row_of):,} items again to open its index; {cure}"
                warnings.warn(message, RetrievalWarning, stacklevel=2)
        elif not known.folder.exists():  # it was built there, and published elsewhere
            known.folder = folder
        opened._adapted = known
        return opened

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Ask ``retrieve``."""
        return cast(AdaptedIndex, self._adapted).search(queries, k, allowed)


_in_memory: WeakValueDictionary[tuple[type, str, str], AdaptedIndex] = WeakValueDictionary()
"""The indexes of this process, by class, settings and items."""


def _key(retriever: Any, corpus: str) -> tuple[type, str, str]:
    return type(retriever), canonical_json(retriever.config), corpus


def _loads(retriever: Any) -> bool:
    return type(retriever).load is not AdaptedRetriever.load


def _indexed(retriever: Any, listed: list[SearchableItem], items: ItemTable, folder: Path) -> AdaptedIndex:
    engine = copy.deepcopy(retriever)
    rows = np.arange(len(items)) if items.live is None else np.flatnonzero(items.live)
    row_of = dict(zip((item.item_id for item in listed), rows.tolist(), strict=True))
    if type(engine).index is not BaseRetriever.index:
        engine.index(listed, folder)
    return AdaptedIndex(engine, folder, row_of)


# Rerankers.


def adapt_reranker(cls: Any) -> None:
    """Give a class that overrides ``rerank`` and has no ``score_pairs`` the methods of a reranker of whole lists.

    Raises:
        ConfigurationError: ``rerank`` has another signature.
    """
    if is_abstract(cls, "score_pairs"):
        cls.score_pairs, cls.rerank_batch = AdaptedReranker.score_pairs, AdaptedReranker.rerank_batch
        take_name(cls)
    if cls.rerank_batch is AdaptedReranker.rerank_batch:
        _check_signature(cls, "rerank")


class AdaptedReranker(BaseReranker):
    """The methods of a reranker, for a class that defines ``rerank`` alone.

    The order that it returns counts: where its scores say otherwise, as those of the retriever do, the score is 1 / rank. What
    it leaves out is left out.
    """

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, Scores]:
        """Raise an error: lists are reranked as a whole."""
        del queries, items
        raise EngineError(
            f"{type(self).__name__} defines rerank alone, which gets whole lists; define score_pairs to score pairs"
        )

    def rerank_batch(
        self, queries: Sequence[str], batch: CandidateBatch, items: list[SearchableItem], label: str | None = None
    ) -> CandidateBatch:
        """Ask ``rerank``; see the base."""
        columns = {key: column.tolist() for key, column in batch.signals.items()}
        results = [
            RetrievalResult.trusted(
                item, score, {key: column[at] for key, column in columns.items() if np.isfinite(column[at])}
            )
            for at, (item, score) in enumerate(zip(items, batch.scores.tolist(), strict=True))
        ]
        spans = [(number, begin, end) for number, (begin, end) in enumerate(pairwise(batch.offsets.tolist())) if begin < end]
        said = f"{type(self).__name__}.rerank"
        asked = [queries[number] for number, _, _ in spans], [results[begin:end] for _, begin, end in spans]
        returned = self.rerank(*asked, max(map(len, asked[1]))) if spans else []
        counts, positions, scores = np.zeros(batch.n_lists, np.int64), list[int](), list[float]()
        for (number, begin, _), hits, reranked in zip(spans, asked[1], _lists_of(returned, len(spans), said), strict=True):
            places = _places(reranked, hits, said)
            counts[number] = len(places)
            positions += [begin + place for place in places]
            scores += _scores_in_order(reranked, batch.rows[[begin + place for place in places]])
        taken = batch.take(np.array(positions, np.int64), offsets_of(counts))
        return self.reordered(taken, {"score": np.array(scores, np.float64)}, label)


def _places(reranked: Sequence[_Hit], results: Sequence[RetrievalResult], said: str) -> list[int]:
    """Return the place of each hit in the list that was reranked."""
    place_of = {result.item.item_id: place for place, result in enumerate(results)}
    if unknown := [hit.item_id for hit in reranked if hit.item_id not in place_of]:
        raise EngineError(f"{said} returned {unknown[0]!r:.80}, which is none of the {len(results)} results that it got")
    places = [place_of[hit.item_id] for hit in reranked]
    if len(set(places)) < len(places):
        raise EngineError(f"{said} returned a result twice for one query")
    return places


def _scores_in_order(reranked: Sequence[_Hit], rows: Rows) -> list[float]:
    ranks = [1.0 / rank for rank in range(1, len(reranked) + 1)]
    scores = [rank if hit.score is None else hit.score for hit, rank in zip(reranked, ranks, strict=True)]
    order = [(-score, row) for score, row in zip(scores, rows.tolist(), strict=True)]
    return scores if order == sorted(order) else ranks
