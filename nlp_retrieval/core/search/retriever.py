"""The interface of retrievers, and the code that all engines share.

An engine implements three methods: ``build`` writes its own index into an empty folder, ``load`` opens it, ``search_batch``
finds rows. The base class manages the index directory, flattens the sub-queries of a whole batch, drops repeats, merges
the sub-queries of each query, and checks the engine's output. Most engines need nothing else.
"""

from __future__ import annotations

import copy
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar, NamedTuple, NoReturn, Self, cast
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows, merge_subqueries, search_parts
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Component, digest_of_key, is_abstract
from nlp_retrieval.core.components.registry import require_distinct_names
from nlp_retrieval.core.context import add_note, encoding_once, search_context
from nlp_retrieval.core.files.frames import Items
from nlp_retrieval.core.files.opening import explain_file_limit
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.build import Builder, IndexReport, build_index
from nlp_retrieval.core.index.generation import Generation, SegmentFolder, index_directory, open_generation
from nlp_retrieval.core.index.items import ItemsDigest, ItemTable
from nlp_retrieval.core.models import Explanation, RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock, forked, use_one_thread_after_fork
from nlp_retrieval.core.queries import check_k, check_processed, has_no_words
from nlp_retrieval.core.search.expressions import Expression
from nlp_retrieval.core.search.reranker import BaseReranker, Found, check_signature, read_lists
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexMismatchError, IndexMissingError

# The steps of a search that take time, which a caller may replace: a caller that searches with many configurations keeps their
# results (:mod:`nlp_retrieval.benchmarks.shared_stages`). Fusing, interleaving and cutting are always done again.

Encode = Callable[[list[str]], NDArray[Any]]


class Stages:
    """Runs each step on request."""

    def opened(self, retriever: BaseRetriever, generation: Generation) -> BaseRetriever:
        """Return a copy of a retriever that searches this generation."""
        return retriever.open(generation)

    def subqueries(self, processor: BaseUserQueryProcessor, nlqs: list[str]) -> list[list[str]]:
        """Return the sub-queries of each query."""
        use_one_thread_after_fork()
        return check_processed(processor.process(nlqs), len(nlqs), f"{processor.name}: ")

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> Hits:
        """Return the hits of a retriever."""
        del generation
        return retriever.candidates(processed, depth, label, allowed)

    def encoded(self, encoder: Component, queries: list[str], encode: Encode) -> NDArray[Any]:
        """Return a vector per query, reused if this search has already encoded the same queries with this encoder."""
        encoded: list[tuple[object, list[str], NDArray[Any]]] | None = search_context().encoded
        known = [] if encoded is None else encoded
        for other, texts, vectors in known:
            if other is encoder and texts == queries:
                return vectors
        vectors = encode(queries)
        known.append((encoder, list(queries), vectors))
        return vectors

    def reranked(self, reranker: BaseReranker, nlqs: Sequence[str], batch: Hits, generation: Generation, label: str) -> Hits:
        """Return candidates in a reranker's order."""
        return reranker.rerank_rows(nlqs, batch, generation.items, label)


_COMPUTED = Stages()


def current_stages() -> Stages:
    """Return the stages of the running search."""
    stages = search_context().stages
    return stages if isinstance(stages, Stages) else _COMPUTED


class BaseRetriever(Builder, Expression, ABC):
    """Finds items for queries.

    ``merge`` says how the sub-queries of one query are merged (:mod:`nlp_retrieval.core.candidates`); an engine
    offers it as a parameter of that name.

    An engine defines ``build``, ``load`` and ``search_batch``. A subclass that defines ``index(self, items, output_path)`` and
    ``retrieve(self, processed_queries, output_path, k)`` alone works too; sub-queries of a query come together, as the
    processor made them, and lists are as those of ``rerank`` in :class:`BaseReranker`.
    """

    kind: ClassVar[str] = "retrievers"

    merge: MergeRule = "alternate"

    survives_fork: ClassVar[bool] = True
    """True if an opened index can be searched in a forked child: not with threads, connections or virtual machines."""

    by_words: ClassVar[bool] = False
    """True if items are found only by their words: then items without text are never found and need no filter."""

    is_adapted: ClassVar[bool] = False
    """True if it defines ``index`` and ``retrieve`` alone."""

    has_index: ClassVar[bool] = True
    """False if it searches with its parts alone, and an index holds nothing of its own."""

    _process: int = 0
    _n_rows: int = 0
    _opened: tuple[Generation, BaseRetriever] | None = None
    _opened_parts: tuple[BaseRetriever, ...] = ()
    _live: Mask | None = None
    _segments: tuple[tuple[SegmentFolder, BaseRetriever], ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.retrieve is not BaseRetriever.retrieve and is_abstract(cls, "build", "search_batch"):
            others = (base for base in cls.__bases__ if base is not BaseRetriever)
            cls.__bases__ = (*others, AdaptedRetriever)
        if cls.is_adapted:
            check_signature(cls, "index", "items", "output_path")
            check_signature(cls, "retrieve", "processed_queries", "output_path", "k")

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if cls.has_index and cls.load is BaseRetriever.load and cls.load_segments is BaseRetriever.load_segments:
            raise ConfigurationError(f"{cls.__name__} defines neither load nor load_segments, to open its index; define one")
        return super().__new__(cls, *args, **kwargs)

    def load(self, folder: Path) -> None:
        """Open the output of ``build`` for searching. Called once, on a copy of this retriever that serves one index."""
        raise NotImplementedError

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        if self.parts() and type(self).load_segments is BaseRetriever.load_segments:
            raise ConfigurationError(
                f"{self.name} searches with other retrievers, whose rows are numbered across the whole index; "
                "override load_segments, so that items can be added to its index"
            )
        del segments, everything
        self.build(items, folder)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        """Open all segments of an index. By default each is opened by :meth:`load`, and their lists are merged by score.

        Called once, on a copy of this retriever. Engines whose scores depend on the whole collection override it.
        """
        if len(segments) == 1:
            self.load(segments[0].folder)
            return
        engines = [copy.copy(self) for _ in segments]
        for segment, engine in zip(segments, engines, strict=True):
            engine.load(segment.folder)
        self._segments = tuple(zip(segments, engines, strict=True))

    @abstractmethod
    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Search for distinct queries that have a letter or a digit; safe to call from several threads.

        Args:
            queries: the query texts. They may consist of stop words alone.
            k: at most this many hits per query. No padding with items that do not match; where scores tie at the cut,
                the lowest rows stay.
            allowed: ``[items]``; only rows where it is True may be returned. None allows all.
        """

    def ignored(self, query: str) -> str | None:
        """Return why an index (or all parts) has none of a query's words, and which setting keeps them; None if it may."""
        notes = [part.ignored(query) for part in self.parts()]
        return None if None in notes or not notes else notes[0]

    def parts(self) -> Sequence[BaseRetriever]:
        """The retrievers that this one searches with, each with its own, possibly shared index; opened in ``_opened_parts``."""
        return ()

    def find(self, queries: list[str], k: int, allowed: Mask | None = None) -> Hits:
        """Search all segments of an opened index for items that are not deleted and have words, and check what is found."""
        self.check_opened()
        if self._live is not None:
            allowed = self._live if allowed is None else allowed & self._live
        if self._segments:
            parts = [(segment.rows, partial(engine.search_batch, queries)) for segment, engine in self._segments]
            hits = search_parts(parts, len(queries), k, allowed)
        else:
            hits = self.search_batch(queries, k, allowed)
        if not isinstance(hits, Hits):
            raise EngineError(f"{self!r} returned {type(hits).__name__} and no Hits; see Hits.from_lists")
        return hits.checked(len(queries), self._n_rows, k, self, allowed)

    def check_opened(self) -> None:
        """Raise a ForkError if the index was opened before a fork, which the engine does not survive."""
        if self._process != os.getpid():
            use_one_thread_after_fork()
            if not self.survives_fork:
                raise forked(f"{self.name}'s index", self._process)

    @property
    def explains(self) -> bool:
        """Return whether :meth:`explain` is available."""
        return type(self).explain is not BaseRetriever.explain

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        """Explain why an opened retriever found the items in these rows; None for an item without an explanation."""
        del query, items
        return [None] * len(rows)

    def index(self, items: Items, output_path: str | Path, *, replace: bool = False) -> IndexReport:
        """Index items into a directory, which retrievers of the same items share; see :meth:`BaseSearcher.index`."""
        require_distinct_names(self)
        return build_index(items, output_path, with_parts([self]), replace=replace)

    def retrieve(
        self,
        processed_queries: Sequence[Sequence[str]],
        output_path: str | Path,
        k: int,
        where: Where | None = None,
    ) -> list[list[RetrievalResult]]:
        """Search an index directory for the sub-queries of each query; see :meth:`Searcher.search`."""
        processed, depth = check_processed(processed_queries), check_k(k)
        generation, opened = self._current(index_directory(output_path).absolute())
        allowed = generation.items.allowed(where)
        with encoding_once():
            batch = opened.candidates(processed, depth, allowed=allowed)
        return batch.results(generation.items.items)

    def search(self, *_: object, **__: object) -> NoReturn:
        """Raise a ConfigurationError that says what searches: a retriever alone finds rows."""
        raise ConfigurationError(
            f"a retriever is searched by a Searcher: Searcher([{self!r}]).index(items, path), or .open(path), then .search(...)"
        )

    def open(self, generation: Generation) -> Self:
        """Return a copy of this retriever, and of its parts, that searches this generation, or raise an IndexStateError."""
        opened, record = copy.copy(self), generation.manifest.retriever(self.identity)
        if record is None:
            raise self._no_index_of(generation)
        segments = generation.checked_segments(record)
        use_one_thread_after_fork()
        opened._process = os.getpid()
        opened._opened = None  # otherwise copies would keep all earlier generations open
        opened._opened_parts = tuple(part.open(generation) for part in self.parts())
        opened._n_rows = len(generation.items)
        opened._live = generation.items.live if self.by_words else generation.items.findable
        opened._segments = ()
        with explain_file_limit(generation.path):
            opened.load_segments(segments)
        return opened

    def _no_index_of(self, generation: Generation) -> IndexMissingError | IndexMismatchError:
        """The error about an index without this retriever: how the most similar one there differs."""
        records, wanted = generation.manifest.retrievers, without_secrets(self.identity)
        alike = [record.identity for record in records if record.identity.get("name") == wanted["name"]]
        if not alike:
            indexed = ", ".join(sorted({str(record.config["name"]) for record in records})) or "none"
            return IndexMissingError(
                f"{generation.path} holds no index of {self.name!r} (retrievers there: {indexed}); index with it first: what "
                "is there already will not be built again"
            )
        fewest = min((_differences(identity, wanted) for identity in alike), key=len)
        return IndexMismatchError(
            f"the {self.name} index at {generation.path} was built with another configuration, or by another version "
            f"({'; '.join(fewest)}); search with what was indexed, or index again with this one as well"
        )

    def candidates(self, processed: list[list[str]], k: int, label: str | None = None, allowed: Mask | None = None) -> Hits:
        """Search with an opened copy, and merge the sub-queries of every query into lists of at most ``k``.

        Signals are named after the label, by default the registry name.
        """
        unrepeated = (list(dict.fromkeys(subqueries)) for subqueries in processed)  # a repeated sub-query counts once
        asked = list(map(self._searches, unrepeated))
        flat = [text for of_query in asked for text in of_query]
        distinct = {text: place for place, text in enumerate(dict.fromkeys(filter(None, flat)))}
        depth = min(k, self._n_rows)
        hits = self.find(list(distinct), depth, allowed) if distinct else Hits.from_lists([])
        # sub-queries without words share one empty list after those that were searched
        hits = replace(hits, offsets=np.append(hits.offsets, hits.offsets[-1]))
        places = np.fromiter((distinct.get(text, len(distinct)) for text in flat), np.int64, len(flat))
        counts = np.fromiter(map(len, asked), np.int64, len(asked))
        batch = merge_subqueries(hits, places, counts, self.merge, label or self.name, depth)
        empty = np.flatnonzero(np.diff(batch.offsets) == 0).tolist()
        if empty and search_context().notes_empty:
            self._note_empty([processed[number] for number in empty], len(processed))
        return batch

    def _note_empty(self, empty: list[list[str]], n_queries: int) -> None:
        """Note how many queries found nothing, and count the reasons, with the first query for each reason."""
        counted: dict[str, list[str]] = {}
        for subqueries in empty:
            asked = [subquery for subquery in subqueries if not has_no_words(subquery)]
            notes = list(map(self.ignored, asked))
            reason = "empty or without a letter or digit"
            if notes:
                reason = "no item that may be found matches" if None in notes else str(notes[0])
            counted.setdefault(reason, []).append(repr((asked or subqueries)[0][:60]) if subqueries else "no sub-queries")
        reasons = "; ".join(f"{len(noted)}: {reason} (the first: {noted[0]})" for reason, noted in counted.items())
        add_note(f"{self.name} found nothing for {len(empty)} of {n_queries} queries: {reasons}")

    def _searches(self, subqueries: list[str]) -> list[Any]:
        """What is searched for one query: its sub-queries, with an empty text for each that has no word."""
        return ["" if has_no_words(subquery) else subquery for subquery in subqueries]

    def _current(self, path: Path) -> tuple[Generation, BaseRetriever]:
        """The newest generation at a path, and this retriever opened on it; kept until it is superseded."""
        with self._index_lock:
            held = self._opened
            if held is not None and held[0].path == path and held[0].is_current():
                return held
            generation = open_generation(path)
            self._opened = (generation, self.open(generation))
            return self._opened


class OpenedRetrievers(NamedTuple):
    """Retrievers opened on one generation of an index."""

    generation: Generation
    retrievers: dict[str, BaseRetriever]

    @classmethod
    def on(cls, generation: Generation, retrievers: Mapping[str, BaseRetriever]) -> OpenedRetrievers:
        """Open retrievers on a generation."""
        stages = current_stages()
        return cls(generation, {label: stages.opened(each, generation) for label, each in retrievers.items()})


# Retrievers that define ``index`` and ``retrieve`` alone.


@dataclass
class AdaptedIndex:
    """An object of the author's class that has indexed items."""

    retriever: Any
    folder: Path
    row_of: dict[str, int]
    lock: Lock = field(default_factory=Lock)

    def search(self, groups: list[list[str]], k: int, allowed: Mask | None) -> Hits:
        """Return the best ``k`` hits of each group of sub-queries; more are asked for until ties and filter leave no doubt."""
        answers: list[Found] = [(np.zeros(0, np.int64), np.zeros(0))] * len(groups)
        n_items, said = len(self.row_of), f"{type(self.retriever).__name__}.retrieve"
        pending, depth = (list(range(len(groups))) if n_items else []), min(k + 1, n_items)
        while pending:
            with self.lock:
                returned = self.retriever.retrieve([groups[number] for number in pending], self.folder, depth)
            lists = read_lists(returned, [self.row_of] * len(pending), said)
            unsure = []
            for number, (rows, scores) in zip(pending, lists, strict=True):
                if len(rising := np.flatnonzero(scores[1:] > scores[:-1])):
                    first, then = scores[rising[0] : rising[0] + 2]
                    raise EngineError(
                        f"{said} returned a hit with the score {first:g} before one with {then:g}; hits come best first, and a "
                        "higher score is better: sort them, and negate distances"
                    )
                kept = np.arange(len(rows)) if allowed is None else np.flatnonzero(allowed[rows])
                best = kept[np.lexsort((rows[kept], -scores[kept]))[:k]]
                answers[number] = rows[best], scores[best]
                if len(rows) == depth < n_items and (len(kept) < k or scores[best[-1]] <= scores[-1]):
                    unsure.append(number)
            pending, depth = unsure, min(4 * depth, n_items)
        return Hits.from_lists(answers)


class AdaptedRetriever(BaseRetriever):
    """Becomes the base of a class that defines ``index`` and ``retrieve``, or ``retrieve`` alone, and makes an engine of it.

    Where the class defines ``load``, it opens what ``index`` wrote; else the process that indexed keeps it in memory, and
    another one indexes the items when it opens the index.
    """

    is_adapted = True

    _indexed: tuple[str, AdaptedIndex] | None = None
    """What was opened last, and the fingerprint of its items."""
    _folders: Sequence[SegmentFolder] = ()

    def build(self, items: ItemTable, folder: Path) -> None:
        digest = ItemsDigest()
        listed = list(digest.passing(items.stream()))
        self._indexed = digest.hexdigest(), self._index_of(listed, items, folder)
        if not any(folder.iterdir()):
            (folder / "in_memory.json").write_text("{}", "utf-8")

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write nothing: :meth:`open` indexes all items again."""

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._folders = segments

    def open(self, generation: Generation) -> Self:
        opened, items, corpus = super().open(generation), generation.items, generation.manifest.corpus.fingerprint
        if type(self).load is not BaseRetriever.load and len(opened._folders) == 1:
            engine, folder = copy.deepcopy(self), opened._folders[0].folder
            engine.load(folder)
            rows = {item.item_id: row for row, item in enumerate(items.stream(keys=()))}
            opened._indexed = corpus, AdaptedIndex(engine, folder, rows)
        elif self._indexed is None or self._indexed[0] != corpus:
            folder = Path(mkdtemp(prefix="nlp_retrieval-"))
            index = self._index_of(list(items.stream_live()), items, folder)
            finalize(index, shutil.rmtree, folder, ignore_errors=True)
            self._indexed = opened._indexed = corpus, index
        elif not self._indexed[1].folder.exists():  # it was built there, and published elsewhere
            self._indexed[1].folder = opened._folders[0].folder
        return opened

    def _index_of(self, listed: list[SearchableItem], items: ItemTable, folder: Path) -> AdaptedIndex:
        engine: Any = copy.deepcopy(self)
        rows = np.arange(len(items)) if items.live is None else np.flatnonzero(items.live)
        if type(self).index is not BaseRetriever.index:
            engine.index(listed, folder)
        return AdaptedIndex(engine, folder, dict(zip((item.item_id for item in listed), rows.tolist(), strict=True)))

    def _searches(self, subqueries: list[str]) -> list[tuple[str, ...]]:
        """``retrieve`` gets the sub-queries of each query together, and merges them itself."""
        return [tuple(subquery for subquery in subqueries if not has_no_words(subquery))]

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Ask ``retrieve``, for groups of sub-queries, or for queries of one sub-query each."""
        _, index = cast(tuple[str, AdaptedIndex], self._indexed)
        return index.search([[query] if isinstance(query, str) else list(query) for query in queries], k, allowed)


def _differences(indexed: object, given: object, place: str = "") -> list[str]:
    """What differs between two configurations, by parameter: ``encoder.model: ...``."""
    if not (isinstance(indexed, dict) and isinstance(given, dict)):
        return [] if indexed == given else [f"{place.lstrip('.')}: indexed with {indexed!r}, now {given!r}"]
    keys = sorted(indexed.keys() | given.keys())
    return [difference for key in keys for difference in _differences(indexed.get(key), given.get(key), f"{place}.{key}")]


def with_parts(retrievers: Iterable[BaseRetriever]) -> list[BaseRetriever]:
    """These retrievers and all their parts, parts first, each index once."""
    by_identity: dict[bytes, BaseRetriever] = {}
    for retriever in retrievers:
        for needed in [*with_parts(retriever.parts()), *([retriever] if retriever.has_index else [])]:
            by_identity.setdefault(digest_of_key(needed.identity), needed)
    return list(by_identity.values())
