"""Adapters of retrievers that define ``index`` and ``retrieve``, and of rerankers that define ``rerank``, and nothing else.

The base classes use them for a subclass that overrides these methods and lacks the engine's own. Called directly, the methods
do what their author wrote; in a searcher, the adapter calls them. The rules:

- What a parameter gets is said by its name (``query``, ``queries`` or ``processed_queries``; ``items``; ``output_path``;
  ``k`` or ``top_k``; ``results``), or by its annotation: ``str`` is one query, ``list[str]`` are several. Others need a
  default.
- They return hits, best first: :class:`RetrievalResult` objects, items, ids, positions in the list that they got, dicts with an
  id, or pairs of one of these and a score, of which a higher one is better. Without scores, the score is 1 / rank.
"""

from __future__ import annotations

import inspect
import shutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch, Hits, Mask, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import canonical_json, is_abstract, take_name
from nlp_retrieval.core.files.records import ID_NAMES
from nlp_retrieval.core.index.generation import Generation, SegmentFolder
from nlp_retrieval.core.index.items import ItemsDigest, ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, EngineError, RetrievalWarning

# The parameters of a method, by their names: what each of them gets.

Role = Literal["query", "queries", "subqueries", "items", "folder", "k", "results"]

_NAMES: dict[str, Role] = {
    **dict.fromkeys(("query", "question", "claim", "nlq", "prompt", "text"), "query"),
    **dict.fromkeys(("queries", "questions", "claims", "nlqs", "prompts", "texts"), "queries"),
    **dict.fromkeys(("processed_queries", "processed", "subqueries", "sub_queries"), "subqueries"),
    **dict.fromkeys(("output_path", "index_path", "path", "folder", "output_dir", "index_dir", "directory"), "folder"),
    **dict.fromkeys(("k", "top_k", "topk", "n", "limit"), "k"),
}
_ITEM_NAMES: dict[str, Role] = dict.fromkeys(("items", "documents", "docs", "corpus", "passages", "chunks", "data"), "items")
_RESULT_NAMES: dict[str, Role] = dict.fromkeys(
    ("results", "candidates", "hits", "documents", "docs", "passages", "retrieved", "items"), "results"
)
_NEEDED = {"index": ("items",), "retrieve": ("query", "queries", "subqueries"), "rerank": ("results",)}
_ADVICE = {
    "index": "items or output_path",
    "retrieve": "query, queries (several), processed_queries (several, each a list), output_path or k",
    "rerank": "query, nlqs (several), results or k",
}


class _Method:
    """A method of somebody's class, and what its parameters get.

    Raises:
        ConfigurationError: a parameter without a default has an unknown name, or one that is needed is missing.
    """

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name
        known = _NAMES | {"index": _ITEM_NAMES, "rerank": _RESULT_NAMES}.get(name, {})
        self.roles: dict[str, Role] = {}
        self.wants = ""
        self.is_text: set[str] = set()
        for parameter in list(inspect.signature(getattr(owner, name)).parameters.values())[1:]:
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            role, (depth, inside) = known.get(parameter.name), _inside(parameter.annotation)
            if role is None and parameter.default is not parameter.empty:
                continue
            if role is None and inside == "str" and name != "index" and self.asks is None:
                role = "query"
            if role is None:
                raise ConfigurationError(
                    f"{self}: it is not known what to pass as {parameter.name!r}; call it {_ADVICE[name]}, or give it a default"
                )
            if role in ("query", "queries", "subqueries") and inside == "str":
                role = ("query", "queries", "subqueries")[min(depth, 2)]
            self.roles[parameter.name] = role
            if role == "items":
                self.wants = inside
            if role == "folder" and (depth, inside) == (0, "str"):
                self.is_text.add(parameter.name)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ConfigurationError(f"{self}: its parameter {parameter.name!r} must be passable by name; drop the '/'")
        if not set(_NEEDED[name]) & set(self.roles.values()):
            raise ConfigurationError(f"{self} has no parameter for {_NEEDED[name][0]}; call it {_ADVICE[name]}")

    def __str__(self) -> str:
        parameters = list(inspect.signature(getattr(self.owner, self.name)).parameters)[1:]
        return f"{self.owner.__name__}.{self.name}({', '.join(parameters)})"

    @property
    def asks(self) -> Role | None:
        """How queries are passed: one at a time, as a list, or each as a list of sub-queries; None: not at all."""
        return next((role for role in self.roles.values() if role in ("query", "queries", "subqueries")), None)

    def __call__(self, component: object, **given: Any) -> Any:
        """Call it with values by role; an error of its own says what it was called with."""
        arguments = {name: given[role] for name, role in self.roles.items() if role in given}
        for name in self.is_text & arguments.keys():
            arguments[name] = str(arguments[name])
        try:
            return getattr(component, self.name)(**arguments)
        except RecursionError:
            raise EngineError(
                f"{self} calls itself without end; if it calls super().{self.name}(), leave that out: the base class calls "
                f"{self.name}() itself"
            ) from None
        except EngineError:
            raise
        except Exception as error:
            shown = ", ".join(f"{name}={_shown(value)}" for name, value in arguments.items())
            error.add_note(f"raised by {self.owner.__name__}.{self.name}({shown})")
            raise


def _inside(annotation: object) -> tuple[int, str]:
    """Return how many lists an annotation nests, and the name of what is in them: 1 and ``str`` for ``list[str]``."""
    inner = (annotation.__name__ if annotation in (str, dict) else str(annotation)).lower()
    depth = 0
    while inner.partition("[")[0].rpartition(".")[2] in ("list", "sequence", "iterable", "tuple") and "[" in inner:
        depth, inner = depth + 1, inner.partition("[")[2]
    return depth, inner.partition("[")[0].rstrip("], .").rpartition(".")[2]


def _shown(value: object) -> str:
    if isinstance(value, list) and value and not isinstance(value[0], str):
        kinds = type(value[0]).__name__ if not isinstance(value[0], list) else f"list of {_shown(value[0])}"
        return f"[{len(value)} {kinds}]"
    return f"{value!r:.80}"


# What they return: ranked hits in any of these forms.

_FORMS = (
    "a hit is a RetrievalResult, an item, an id, a position (an integer), a dict with an id and perhaps a score, or a pair of "
    "one of these and its score"
)
_ID_KEYS = ("item_id", "id", "_id", "doc_id", "docno", "docid", *ID_NAMES)


class _Hit(NamedTuple):
    key: str | int
    score: float | None
    signals: Mapping[str, float]


def _read_hit(entry: Any, said: str) -> _Hit:
    """Read one hit; its key is an id, or a position."""
    match entry:
        case RetrievalResult():
            return _Hit(entry.item.item_id, entry.score, entry.signals)
        case SearchableItem():
            return _Hit(entry.item_id, None, {})
        case str():
            return _Hit(entry, None, {})
        case Mapping():
            found = [key for key in _ID_KEYS if key in entry]
            held = entry.get("item")
            if not found and held is None:
                raise EngineError(f"{said} a dict without an id (it has {', '.join(map(repr, entry)) or 'no keys'}); {_FORMS}")
            inner = _read_hit(entry[found[0]] if found else held, said)
            return inner if entry.get("score") is None else _Hit(inner.key, _number(entry["score"], said), inner.signals)
        case tuple() | list() if len(entry) == 2:
            inner = _read_hit(entry[0], said)
            return _Hit(inner.key, _number(entry[1], said), inner.signals)
        case _ if hasattr(entry, "__index__") and not isinstance(entry, bool | np.bool_):
            return _Hit(int(entry), None, {})
    raise EngineError(f"{said} {entry!r:.80} ({type(entry).__name__}) as a hit; {_FORMS}")


def _number(value: Any, said: str) -> float:
    try:
        if not isinstance(value, str | bool):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise EngineError(f"{said} {value!r:.60} ({type(value).__name__}) as a score, which is no number; {_FORMS}")


def _read_list(returned: Any, said: str) -> list[_Hit]:
    """Read the hits of one query; all of them have a score, or none has."""
    if isinstance(returned, np.ndarray):
        returned = returned.tolist()
    if (
        isinstance(returned, Mapping)
        and all(isinstance(key, str) for key in returned)
        and not {*_ID_KEYS, "item"} & {*returned}
    ):
        returned = sorted(returned.items(), key=lambda pair: -_number(pair[1], said))  # scores by id, in no order
    if isinstance(returned, str | bytes | Mapping) or not isinstance(returned, Iterable):
        shown = "None" if returned is None else f"{returned!r:.80} ({type(returned).__name__})"
        raise EngineError(f"{said} {shown} for a query; return a list of hits, best first: {_FORMS}")
    hits = [_read_hit(entry, said) for entry in returned]
    if 0 < sum(hit.score is None for hit in hits) < len(hits):
        raise EngineError(f"{said} a list in which only some hits have a score; give one to each, or to none")
    return hits


def _lists_of(returned: Any, n_queries: int, method: _Method) -> list[list[_Hit]]:
    """Read the lists of several queries."""
    said = f"{method} returned"
    if not isinstance(returned, Sequence | np.ndarray) or isinstance(returned, str):
        raise EngineError(f"{said} {type(returned).__name__} for {n_queries} queries; return one list of hits for each")
    if len(returned) != n_queries:
        one = _looks_like_hits(returned)
        cure = f"; call the parameter 'query' to be asked one query at a time, which returns one list ({_FORMS})" if one else ""
        raise EngineError(f"{said} {len(returned)} lists for {n_queries} queries; one for each is expected{cure}")
    return [_read_list(hits, said) for hits in returned]


def _looks_like_hits(returned: Any) -> bool:
    return any(isinstance(entry, RetrievalResult | SearchableItem | str | Mapping | tuple) for entry in returned[:1])


# Retrievers.

_MARK = "indexed_in_memory.json"
"""The only file of an index that its author keeps in the object: the fingerprint of its items, which are indexed again."""

_OF_THE_BASE = frozenset({"score", "rank"})
"""Names of signals that the base class sets."""


def adapt_retriever(cls: Any, base: Any) -> None:
    """Give a class that overrides ``retrieve`` and has no engine the methods of one.

    Raises:
        ConfigurationError: a parameter of its methods is unknown.
    """
    if is_abstract(cls, "build", "search_batch"):
        for method in ("build", "extend", "load_segments", "open", "search_batch"):
            setattr(cls, method, getattr(AdaptedRetriever, method))
        if is_abstract(cls, "load"):
            cls.load = AdaptedRetriever.load
        cls._base = base
        take_name(cls)
    if cls.search_batch is AdaptedRetriever.search_batch:
        _method(cls, "retrieve")
        if cls.index is not base.index:
            _method(cls, "index")


_methods: WeakKeyDictionary[type, dict[str, _Method]] = WeakKeyDictionary()


def _method(cls: type, name: str) -> _Method:
    known = _methods.setdefault(cls, {})
    if name not in known:
        known[name] = _Method(cls, name)
    return known[name]


@dataclass
class AdaptedIndex:
    """An object of the author's class that has indexed items.

    Args:
        retriever: the object.
        folder: that its ``retrieve`` gets.
        ids: id of each item, in the order in which ``index`` got them.
        holds: whether the object holds a part of the index.
    """

    retriever: Any
    folder: Path
    ids: list[str]
    holds: bool = False
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._position_of = {item_id: position for position, item_id in enumerate(self.ids)}

    def search(self, queries: list[str], k: int, allowed: Mask | None, rows_there: Rows) -> Hits:
        """Return the best ``k`` hits of each query; more are asked for until ties and the filter leave no doubt.

        Args: as of ``search_batch``, and ``rows_there``, ``[items]``, the row of each item.

        Raises:
            EngineError: what the author's ``retrieve`` returned is not valid.
        """
        method = _method(type(self.retriever), "retrieve")
        found: dict[int, tuple[Rows, Scores, list[Mapping[str, float]]]] = {}
        n_items = len(self.ids)
        pending, depth = (list(range(len(queries))) if n_items else []), min(k + 1, n_items)
        while pending:
            with self.lock:
                lists = self._ask(method, [queries[number] for number in pending], depth)
            unsure = []
            for number, hits in zip(pending, lists, strict=True):
                rows = rows_there[np.array([self._position(hit.key, method) for hit in hits], np.int64)]
                scores = _descending(hits, method)
                kept = np.arange(len(rows)) if allowed is None else np.flatnonzero(allowed[rows])
                best = kept[np.lexsort((rows[kept], -scores[kept]))[:k]]
                is_whole = len(rows) != depth or depth >= n_items
                if not is_whole and (len(kept) < k or scores[best[-1]] <= scores[-1]):
                    unsure.append(number)
                found[number] = rows[best], scores[best], [hits[position].signals for position in best.tolist()]
            pending, depth = unsure, min(4 * depth, n_items)
        results = [found[number] for number in sorted(found)] or [(np.zeros(0, np.int64), np.zeros(0), []) for _ in queries]
        ranked = Hits.from_lists([(rows, scores) for rows, scores, _ in results])
        signals = [signal for _, _, listed in results for signal in listed]
        keys = dict.fromkeys(key for signal in signals for key in signal if key not in _OF_THE_BASE)
        columns = {key: np.array([signal.get(key, np.nan) for signal in signals], np.float64) for key in keys}
        return Hits(ranked.offsets, ranked.rows, ranked.scores, columns)

    def _ask(self, method: _Method, queries: list[str], k: int) -> list[list[_Hit]]:
        given: dict[str, Any] = {"folder": self.folder, "k": k}
        if method.asks == "query":
            return [_read_list(method(self.retriever, query=query, **given), f"{method} returned") for query in queries]
        returned = method(self.retriever, queries=list(queries), subqueries=[[query] for query in queries], **given)
        if isinstance(returned, Hits):
            pairs = list(zip(returned.rows.tolist(), returned.scores.tolist(), strict=True))
            returned = [pairs[begin:end] for begin, end in pairwise(returned.offsets.tolist())]
        return _lists_of(returned, len(queries), method)

    def _position(self, key: str | int, method: _Method) -> int:
        if isinstance(key, int):
            if not 0 <= key < len(self.ids):
                raise EngineError(f"{method} returned the position {key}; index() got {len(self.ids)} items, numbered from 0")
            return key
        if key not in self._position_of:
            raise EngineError(f"{method} returned {key!r:.80}, which is the id of no item that index() got; {_FORMS}")
        return self._position_of[key]


def _descending(hits: Sequence[_Hit], method: _Method) -> Scores:
    """The scores of hits; 1 / rank where they have none."""
    if not hits or hits[0].score is None:
        return 1.0 / np.arange(1.0, len(hits) + 1.0)
    scores = np.array([hit.score for hit in hits], np.float64)
    if len(rising := np.flatnonzero(scores[1:] > scores[:-1])):
        first, then = scores[rising[0]], scores[rising[0] + 1]
        raise EngineError(
            f"{method} returned a hit with the score {first:g} before one with {then:g}; hits come best first, and a higher "
            "score is better: sort them, and negate distances"
        )
    return scores


class AdaptedRetriever:
    """The methods of an engine, for a class that defines ``index`` and ``retrieve``, or ``retrieve`` alone.

    Each index has an object of its own, made with the retriever's arguments. What ``index`` writes into the folder that it gets
    is the index. If it writes nothing there, or keeps something in the object, then the items are indexed again where an index
    is opened by another process, with a warning; unless the class has a method ``load(folder)``, which opens what ``index``, or
    a method ``save(folder)``, wrote. Items that were added are indexed together with all others.
    """

    _base: Any
    _folders: Sequence[SegmentFolder] = ()
    _adapted: tuple[AdaptedIndex, Rows] | None = None
    _built: AdaptedIndex | None = None

    def build(self, items: ItemTable, folder: Path) -> None:
        """Let ``index`` write the index, and keep what it wrote."""
        index = _indexed(self, items)
        written = list(index.folder.iterdir())
        is_flat = all(file.is_file() and not file.is_symlink() for file in written)
        loads = _loads(type(self))
        if loads and not (written and is_flat):
            wrong = "wrote a subfolder or a link; only files can be kept" if written else "wrote nothing that load() could open"
            raise EngineError(
                f"{type(self).__name__}: index(){' and save()' if hasattr(self, 'save') else ''} {wrong}. Write files into the "
                "folder; or leave load() out, and the items are indexed again when the index is opened"
            )
        if loads or (written and is_flat and not index.holds):
            for file in written:
                shutil.copyfile(file, folder / file.name)
        else:
            (folder / _MARK).write_text("{}", "utf-8")
            self._built = index  # for opening it here

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write nothing: an index of several segments is made again from all items."""
        del items, segments, everything
        (folder / _MARK).write_text("{}", "utf-8")

    def load(self, folder: Path) -> None:
        """Do nothing; :meth:`open` has the items too."""
        del folder

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        """Remember the folders for :meth:`open`."""
        self._folders = segments

    def open(self, generation: Generation) -> Any:
        """Return a copy that searches a generation."""
        opened = self._base.open(self, generation)
        opened._adapted = _opened(opened, generation.items)
        return opened

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Ask ``retrieve``."""
        if self._adapted is None:
            raise EngineError(f"{type(self).__name__} has no opened index")
        index, rows = self._adapted
        return index.search(queries, k, allowed, rows)


def is_adapted(component: object) -> bool:
    """Return whether a retriever defines ``index`` and ``retrieve`` alone, or a reranker ``rerank`` alone."""
    methods = vars(AdaptedRetriever) | vars(AdaptedReranker)
    return any(getattr(type(component), name, None) is methods[name] for name in ("search_batch", "rerank_batch"))


def _loads(cls: Any) -> bool:
    """Return whether a class has its own way to open what it wrote."""
    return cls.load is not AdaptedRetriever.load


def _new(retriever: Any) -> Any:
    """Return an object with the same arguments, which holds no index."""
    made = type(retriever)(**retriever._arguments)
    vars(made).update(retriever._kept())
    return made


_in_memory: WeakValueDictionary[tuple[type, str, str], AdaptedIndex] = WeakValueDictionary()
"""The indexes of this process, by class, settings and items."""


def _indexed(retriever: Any, items: ItemTable) -> AdaptedIndex:
    """Index the items that are not deleted; or return what this process made of the same items."""
    digest = ItemsDigest()
    listed = list(digest.passing(items.stream_live()))
    key = type(retriever), canonical_json(retriever.config), digest.hexdigest()
    if (known := _in_memory.get(key)) is not None:
        return known
    engine, folder = _new(retriever), Path(mkdtemp(prefix="nlp_retrieval-"))
    finalize(engine, shutil.rmtree, folder, ignore_errors=True)
    before = _contents(engine)
    if type(retriever).index is not retriever._base.index:
        method = _method(type(retriever), "index")
        method(engine, items=_as_annotated(listed, method), folder=folder)
    if _loads(type(retriever)) and callable(getattr(engine, "save", None)):
        engine.save(folder)
    index = AdaptedIndex(engine, folder, [item.item_id for item in listed], _contents(engine) != before)
    _in_memory[key] = index
    return index


def _as_annotated(items: list[SearchableItem], method: _Method) -> list[Any]:
    """Items as ``index`` declares them: as texts for ``list[str]``, as dicts for ``list[dict]``, else as they are."""
    if method.wants == "str":
        return [item.text for item in items]
    if method.wants in ("dict", "mapping"):
        return [item.metadata | {"id": item.item_id, "title": item.title, "text": item.content} for item in items]
    return list(items)


def _contents(component: object) -> dict[str, tuple[int, int]]:
    """The attributes of an object: which value each is, and how many entries it has."""
    sized = (list, dict, set)
    return {name: (id(value), len(value) if isinstance(value, sized) else 0) for name, value in vars(component).items()}


def _opened(retriever: Any, items: ItemTable) -> tuple[AdaptedIndex, Rows]:
    """Open an index from its files; or from its items, where it has none."""
    segments = retriever._folders
    if len(segments) == 1 and not (segments[0].folder / _MARK).exists():
        engine, folder = _new(retriever), segments[0].folder
        if _loads(type(retriever)):
            engine.load(folder)
        ids = [item.item_id for item in items.stream(keys=())]
        return AdaptedIndex(engine, folder, ids), np.arange(len(ids))
    known = list(_in_memory.values())
    index = _indexed(retriever, items)
    if not any(index is one for one in known) and type(retriever).index is not retriever._base.index:
        why = "items were added to its index" if len(segments) > 1 else "what index() makes is not all in the folder it gets"
        cure = "compact() joins them" if len(segments) > 1 else "write all of it there, or define load(folder)"
        message = f"{retriever.name} has indexed {len(index.ids):,} items again, because {why}; {cure}"
        warnings.warn(message, RetrievalWarning, stacklevel=2)
    return index, np.arange(len(items)) if items.live is None else np.flatnonzero(items.live)


# Rerankers.


def adapt_reranker(cls: Any) -> None:
    """Give a class that overrides ``rerank`` and has no ``score_pairs`` the methods of a reranker of whole lists.

    Raises:
        ConfigurationError: a parameter of ``rerank`` is unknown.
    """
    if is_abstract(cls, "score_pairs"):
        cls.score_pairs, cls.rerank_batch = AdaptedReranker.score_pairs, AdaptedReranker.rerank_batch
        take_name(cls)
    if cls.rerank_batch is AdaptedReranker.rerank_batch and _method(cls, "rerank").asks is None:
        raise ConfigurationError(f"{_method(cls, 'rerank')} has no parameter for the query; call it {_ADVICE['rerank']}")


class AdaptedReranker:
    """The methods of a reranker, for a class that defines ``rerank`` alone.

    The order that it returns counts: where its scores say otherwise, as those of the retriever do, the score is 1 / rank. It
    may also return a list of floats, the scores of the results that it got. What it leaves out is left out.
    """

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, Scores]:
        """Raise an error: lists are reranked as a whole."""
        del queries, items
        raise EngineError(
            f"{type(self).__name__} defines rerank alone, which gets whole lists; define score_pairs to score pairs"
        )

    def rerank_batch(
        self: Any, queries: Sequence[str], batch: CandidateBatch, items: list[SearchableItem], label: str | None = None
    ) -> CandidateBatch:
        """Ask ``rerank``; see the base."""
        columns = {key: column.tolist() for key, column in batch.signals.items()}
        results = [
            RetrievalResult.trusted(
                item, score, {key: column[at] for key, column in columns.items() if np.isfinite(column[at])}
            )
            for at, (item, score) in enumerate(zip(items, batch.scores.tolist(), strict=True))
        ]
        spans = [(number, *span) for number, span in enumerate(pairwise(batch.offsets.tolist())) if span[0] < span[1]]
        lists = [results[begin:end] for _, begin, end in spans]
        counts, positions, scores = np.zeros(batch.n_lists, np.int64), list[int](), list[float]()
        for (number, begin, _), hits, reranked in zip(
            spans, lists, _reranked(self, [queries[number] for number, *_ in spans], lists), strict=True
        ):
            places, own = _places(reranked, hits, batch.rows[begin:], _method(type(self), "rerank"))
            counts[number] = len(places)
            positions += [begin + place for place in places]
            scores += own
        taken = batch.take(np.array(positions, np.int64), offsets_of(counts))
        ranked: CandidateBatch = self.reordered(taken, {"score": np.array(scores, np.float64)}, label)
        return ranked


def _reranked(reranker: Any, queries: list[str], lists: list[list[RetrievalResult]]) -> list[list[_Hit]]:
    """Ask ``rerank`` about each list, or about all at once."""
    method = _method(type(reranker), "rerank")
    said = f"{method} returned"
    if method.asks == "query":
        return [
            _read_scores(method(reranker, query=query, results=list(hits), k=len(hits)), hits, said)
            for query, hits in zip(queries, lists, strict=True)
        ]
    if not lists:
        return []
    texts = {"queries": queries, "subqueries": [[query] for query in queries]}
    returned = method(reranker, **texts, results=[list(hits) for hits in lists], k=max(map(len, lists)))
    if not isinstance(returned, Sequence | np.ndarray) or isinstance(returned, str) or len(returned) != len(lists):
        return _lists_of(returned, len(lists), method)  # raises the error
    return [_read_scores(hits, own, said) for hits, own in zip(returned, lists, strict=True)]


def _read_scores(returned: Any, results: Sequence[RetrievalResult], said: str) -> list[_Hit]:
    """Read hits; or floats, the scores of the results in their order."""
    values = returned.tolist() if isinstance(returned, np.ndarray) else returned
    if not (isinstance(values, list | tuple) and values and all(isinstance(value, float | np.floating) for value in values)):
        return _read_list(returned, said)
    if len(values) != len(results):
        raise EngineError(f"{said} {len(values)} scores for {len(results)} results; one for each is expected")
    order = sorted(range(len(values)), key=lambda place: -values[place])
    return [_Hit(place, float(values[place]), {}) for place in order]


def _places(
    reranked: Sequence[_Hit], results: Sequence[RetrievalResult], rows: Rows, method: _Method
) -> tuple[list[int], list[float]]:
    """Return the place of each hit in the list that was reranked, and its score."""
    place_of = {result.item.item_id: place for place, result in enumerate(results)}
    places: list[int] = []
    for hit in reranked:
        place = hit.key if isinstance(hit.key, int) else place_of.get(hit.key, -1)
        if not 0 <= place < len(results):
            raise EngineError(f"{method} returned {hit.key!r:.80}, which is none of the {len(results)} results that it got")
        places.append(place)
    if len(set(places)) < len(places):
        raise EngineError(f"{method} returned a result twice for one query")
    scores = [1.0 / rank if hit.score is None else hit.score for rank, hit in enumerate(reranked, start=1)]
    order = [(-score, int(rows[place])) for score, place in zip(scores, places, strict=True)]
    return places, scores if order == sorted(order) else [1.0 / rank for rank in range(1, len(places) + 1)]
