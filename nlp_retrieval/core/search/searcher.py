"""The composition: process, retrieve, fuse, rerank, cut.

A searcher consists of components and adds no scoring of its own. A call of ``search`` uses the same generation of the index
throughout; ``refresh`` switches to a newer one.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Hits, Mask, Rows
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Component, canonical_json, codes_in, with_held
from nlp_retrieval.core.components.registry import ByName, numbered_names, require_distinct_names, resolve_components
from nlp_retrieval.core.components.trust_rules import PART_RULES, may_set
from nlp_retrieval.core.context import SearchContext, changed_context, record_steps, search_context, search_steps
from nlp_retrieval.core.explanation import Explanation, Explanations
from nlp_retrieval.core.files.frames import Queries, texts_of
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.queries import POOL_DEPTH, check_k, check_processed, check_queries, check_results, has_no_words
from nlp_retrieval.core.search.base_searcher import BaseSearcher, OpenedRetrievers, labelled
from nlp_retrieval.core.search.expressions import Expression, FirstCandidates
from nlp_retrieval.core.search.joining import BaseFusion, RawScore, ReciprocalRankFusion, WeightedSum, interleave, weights_for
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.results import RankedLists, to_results
from nlp_retrieval.core.search.retriever import BaseRetriever, current_stages, with_parts
from nlp_retrieval.errors import ConfigurationError, nearest

Scope = Literal["pooled", "per_subquery"]
Depth = Annotated[int, Field(ge=1)] | Literal["all"]
Reranker = BaseReranker | FirstCandidates | ByName


class Searcher(BaseSearcher, Expression):
    """Composes retrievers, and the stages before and after them, into one search.

    It may be written as an expression: see :mod:`nlp_retrieval.core.search.expressions`.

    Args:
        retrievers: at least one; a mapping gives each a label for its signals (by default its registry
            name, numbered if two share it). They and the other parts may be given by their registry names
            (``["bm25", "faiss"]``), or as ``{"name": "bm25", "k1": 1.2}``. A searcher among them is searched with all its
            stages, for as many results as its depth here: with a reranker in it, this scores 100 candidates per query.
        processor: turns each query into sub-queries; by default the query is searched unchanged.
        fusion: merges the retrievers' lists; by default raw scores for one retriever, reciprocal ranks for several.
        reranker: reorders the fused candidates against the original query. Of several, each reorders the list of the one
            before. ``OverlapReranker() % 10`` is a reranker with its depth.
        scope: ``pooled`` makes one pool per query. ``per_subquery`` keeps each sub-query's candidates separate: fused and
            reranked separately against the original query, then interleaved by rank.
        depth: candidates per retriever, after its sub-queries are merged (per sub-query with scope ``per_subquery``). By
            default k for one retriever without a reranker, else max(k, 100). ``all``: every item that matches the filter and
            that the retriever finds at all; a flat dense index finds all of them. A mapping sets it for some of them by label
            (``{"bm25": 50, "faiss": 200}``), and for rerankers by name: ``{"cross_encoder": 10}`` reranks the first 10
            candidates, and the others follow in their order.
        quota: with scope ``per_subquery``, at most this many results from each sub-query; by default even shares of k,
            with slots left free by short lists filled by the others.

    Examples:
        >>> searcher = Searcher(["bm25"], reranker="overlap", depth=50)
        >>> searcher.index(items, "index")
        <3 items in index; built bm25; ... s>
        >>> for hit in searcher.search("what eats krill?", k=2)[0]:
        ...     print(hit.item.item_id, round(hit.score, 3))
        whale 0.033
        krill 0.033
        >>> [hit.item.item_id for hit in searcher.search("krill", where={"year": {"gte": 2020}})[0]]
        ['whale']
        >>> Searcher.open("index").search("lemmings")[0][0].item.title
        'Arctic fox'
        >>> bm25, overlap = Bm25Retriever(), OverlapReranker()
        >>> bm25 % 50 >> overlap % 10 == Searcher([bm25], reranker=overlap, depth={"bm25": 50, "overlap": 10})
        True
    """

    name = "searcher"
    manifest_may_set = PART_RULES | may_set("processor", "scope", "depth", "quota")

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever | Searcher | ByName] | Mapping[str, BaseRetriever | Searcher | ByName],
        processor: BaseUserQueryProcessor | ByName | None = None,
        fusion: BaseFusion | ByName | None = None,
        reranker: Reranker | Sequence[Reranker] | None = None,
        scope: Scope = "pooled",
        depth: Depth | Mapping[str, Depth] | None = None,
        quota: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        parts = {"retrievers": _as_retrievers(retrievers), "processor": processor, "fusion": fusion, "reranker": reranker}
        resolved = resolve_components(self, Searcher, **parts)
        self.retrievers = _labelled(resolved["retrievers"])
        self.processor: BaseUserQueryProcessor | None = resolved["processor"]
        several = len(self.retrievers) > 1
        self.fusion: BaseFusion = resolved["fusion"] or (ReciprocalRankFusion() if several else RawScore())
        if several:
            self._arguments["fusion"] = self.fusion  # the default, spelled out or not, is the same configuration
        given: list[Any] = resolved["reranker"] if isinstance(resolved["reranker"], list) else [resolved["reranker"]]
        listed = [part.reranker if isinstance(part, FirstCandidates) else part for part in given if part is not None]
        self.reranker: BaseReranker | list[BaseReranker] | None = listed if len(listed) > 1 else next(iter(listed), None)
        labels = numbered_names(reranker.name for reranker in listed)
        self.rerankers: dict[str, BaseReranker] = dict(zip(labels, listed, strict=True))
        self.scope: Scope = scope
        firsts = {label: part.n for label, part in zip(labels, given, strict=False) if isinstance(part, FirstCandidates)}
        self.depth = self._settled_depth(depth, firsts)
        settled = {"reranker": self.reranker, "depth": self.depth}
        self._arguments |= {key: value for key, value in settled.items() if key in self._arguments}
        self.quota = quota
        if quota is not None and scope != "per_subquery":
            raise ConfigurationError(f"Searcher: quota={quota} has a meaning only with scope='per_subquery'")
        if both := self.retrievers.keys() & self.rerankers.keys():
            raise ConfigurationError(
                f"Searcher: a retriever and the reranker are both called {min(both)!r}; give the retriever another label"
            )
        require_distinct_names([self])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the whole configuration: equal searchers have equal fingerprints."""
        parts = [*with_parts(self.retrievers.values()), *filter(None, [self.processor]), *self.rerankers.values()]
        parts += [part for retriever in self.retrievers.values() if not retriever.has_index for part in with_held(retriever)]
        models = [part.identity for part in parts]
        codes = codes_in(self)
        whole = {"config": self.config, "models": models} | ({"codes": codes} if codes else {})
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()

    @property
    def stages(self) -> list[str]:
        """Names of the stages, in order, as :func:`nlp_retrieval.core.context.record_stages` reports them."""
        names = ["process"] if self.processor else []
        names += self.retrievers
        names += ["fuse"] if self._fuses else []
        return [*names, *self.rerankers, "items"]

    @property
    def _fuses(self) -> bool:
        return len(self.retrievers) > 1 or not isinstance(self.fusion, RawScore)

    def search(
        self,
        queries: Queries,
        k: int = 10,
        where: Where | None = None,
        subqueries: Sequence[Sequence[str]] | None = None,
    ) -> RankedLists:
        """Search.

        Args:
            queries: texts, :class:`Query` objects, dicts, pairs ``(id, text)``, or a DataFrame with the columns ``qid`` and
                ``query``; a bare string counts as a list of one. The id of a text is its position, from 0.
            k: at most this many results per query.
            where: only items whose metadata match this filter are found: ``{"country": "Japan", "year": {"gte": 2015}}``; see
                :mod:`nlp_retrieval.core.filters`.
            subqueries: the sub-queries to search for per query, instead of those of the processor.

        Returns:
            One list per query, best first; ordinary lists that also have ``to_pandas()``, ``to_polars()``, ``to_arrow()`` and
            ``to_dict()``.

        Raises:
            QueryError: a query has no text, k is not a positive integer, the filter does not match these items, or the
                numbers of queries and of lists of sub-queries differ.
            IndexMissingError: no index was opened.
            ForkError: it was opened before a fork, which one of the engines does not survive.
        """
        (ids, nlqs), cut = texts_of(queries), check_k(k)
        with record_steps(search_steps(nlqs, cut, where)) as steps:
            context, opened = search_context(), self.open_retrievers()
            allowed = opened.generation.items.allowed(where)
            if allowed is not None and not allowed.any():
                return RankedLists(nlqs, ([] for _ in nlqs), ids)
            batch = self._found(context, opened, nlqs, cut, allowed, subqueries)
            with context.stage("items"):
                ranked = RankedLists(nlqs, to_results(batch, opened.generation.items), ids)
            for step, results in zip(steps, ranked, strict=False):
                step["results"] = [result.item.item_id for result in results]
            return ranked

    @property
    def explains(self) -> bool:
        """Return whether one of the retrievers can give reasons why it found an item."""
        return any(retriever.explains for retriever in self.retrievers.values())

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> Explanations:
        """Explain why results were found: the chain of links that led there, by the label of each retriever that has one.

        Args:
            query: the query text.
            results: results of :meth:`search` for this query.

        Returns:
            One mapping per result; empty if no retriever has an explanation.

        Raises:
            QueryError: the query is not a string, or a result is not a result of this index.
            IndexMissingError: no index was opened.
        """
        (nlq,) = check_queries(query)
        opened = self.open_retrievers()
        rows = opened.generation.items.rows_of([result.item.item_id for result in check_results(results)])
        return self._reasons(opened, nlq, rows)

    def _reasons(self, opened: OpenedRetrievers, nlq: str, rows: Rows) -> Explanations:
        subqueries = [nlq]
        if self.processor is not None:
            (subqueries,) = check_processed(self.processor.process([nlq]), 1)
        explanations = Explanations({} for _ in rows)
        for label, retriever in opened.retrievers.items():
            retriever.check_opened()
            for subquery in subqueries:
                if has_no_words(subquery):
                    continue
                for by_label, explanation in zip(
                    explanations, retriever.explain(subquery, rows, opened.generation.items), strict=True
                ):
                    if explanation and (label not in by_label or explanation.strength > by_label[label].strength):
                        by_label[label] = explanation
        return explanations

    @staticmethod
    def expressed(left: Any, operator: str, right: Any) -> Searcher | FirstCandidates:
        """Return what an expression means; see :mod:`nlp_retrieval.core.search.expressions`.

        Args:
            left: the operand before the operator.
            operator: ``%``, ``*``, ``+`` or ``>>``.
            right: the operand after it.

        Raises:
            ConfigurationError: it has no meaning.
        """
        return {"%": _limited, "*": _weighted, "+": _fused, ">>": _followed}[operator](left, right)

    def depth_for(self, k: int, label: str | None = None) -> int | Literal["all"]:
        """Return how many candidates are fetched from a retriever for lists of this length.

        Args:
            k: length of the lists.
            label: the label of the retriever; None for one without a depth of its own.
        """
        depth = self.depth if not isinstance(self.depth, Mapping) else self.depth.get(label or "")
        is_single = len(self.retrievers) == 1 and not self.rerankers and self.scope == "pooled"
        return depth or (k if is_single else max(k, POOL_DEPTH))

    def _settled_depth(
        self, depth: Depth | Mapping[str, Depth] | None, firsts: Mapping[str, int]
    ) -> int | Literal["all"] | dict[str, Any] | None:
        """The depth by label, or one number if all retrievers have it and no reranker has one: equal settings are equal."""
        if not isinstance(depth, Mapping):
            if not firsts:
                return depth
            depth = {} if depth is None else dict.fromkeys(self.retrievers, depth)
        for label in depth:
            if label not in {**self.retrievers, **self.rerankers}:
                cure = nearest(label, [*self.retrievers, *self.rerankers])
                raise ConfigurationError(f"Searcher: depth: there is no retriever or reranker {label!r}; {cure}")
            if label in firsts:
                raise ConfigurationError(
                    f"Searcher: {label!r} has two depths, {depth[label]} and % {firsts[label]}; leave one out"
                )
        by_label = {label: n for label, n in {**depth, **firsts}.items() if label in self.retrievers or n != "all"}
        if by_label.keys() == self.retrievers.keys() and len(set(by_label.values())) == 1:
            return next(iter(by_label.values()))
        return by_label or None

    def _found(
        self,
        context: SearchContext,
        opened: OpenedRetrievers,
        nlqs: list[str],
        k: int,
        allowed: Mask | None,
        subqueries: Sequence[Sequence[str]] | None = None,
    ) -> CandidateBatch:
        """All stages but the last: the best k of every query."""
        with context.stage("process"):
            if subqueries is not None:
                processed = check_processed(subqueries, len(nlqs))
            elif self.processor is not None:
                processed = current_stages(context).subqueries(self.processor, nlqs)
            else:
                processed = [[nlq] for nlq in nlqs]
        if self.scope == "pooled":
            return self._ranked(context, opened, nlqs, processed, k, allowed).head(k)
        counts = [len(subqueries) for subqueries in processed]
        each_alone = [[subquery] for subqueries in processed for subquery in subqueries]
        originals = [nlq for nlq, count in zip(nlqs, counts, strict=True) for _ in range(count)]
        return interleave(self._ranked(context, opened, originals, each_alone, k, allowed), counts, k, self.quota)

    def _ranked(
        self,
        context: SearchContext,
        opened: OpenedRetrievers,
        nlqs: list[str],
        processed: list[list[str]],
        k: int,
        allowed: Mask | None,
    ) -> CandidateBatch:
        """Retrieve, fuse and rerank: one list per entry of ``processed``, reranked against its original query."""
        stages = current_stages(context)
        batches: dict[str, CandidateBatch] = {}
        for label, retriever in opened.retrievers.items():
            wanted = self.depth_for(k, label)
            depth = max(len(opened.generation.items), 1) if wanted == "all" else wanted
            with context.stage(label):
                batches[label] = stages.candidates(retriever, processed, depth, opened.generation, label, allowed)
        batch = next(iter(batches.values()))
        if self._fuses:
            with context.stage("fuse"):
                batch = self.fusion.fuse(batches)
                if not self.rerankers and self.scope == "pooled":
                    batch = batch.head(k)
        for label, reranker in self.rerankers.items():
            if not len(batch.rows):
                break
            with context.stage(label):
                first = self.depth.get(label) if isinstance(self.depth, Mapping) else None
                if first is None:
                    batch = stages.reranked(reranker, nlqs, batch, opened.generation, label)
                else:
                    ranked = stages.reranked(reranker, nlqs, batch.head(first), opened.generation, label)
                    batch = ranked.followed_by(batch.below(first))
        return batch


def _labelled(retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever]) -> dict[str, BaseRetriever]:
    if isinstance(retrievers, Mapping) and (reserved := {"process", "fuse", "fusion", "items"} & set(retrievers)):
        raise ConfigurationError(f"Searcher: {min(reserved)!r} is a stage's name; choose another label")
    return labelled(retrievers, "Searcher: retrievers")


def _as_retrievers(retrievers: Any) -> Any:
    """The retrievers as given, with each searcher among them as a retriever."""
    if isinstance(retrievers, Mapping):
        return {label: _as_retriever(given) for label, given in retrievers.items()}
    return [_as_retriever(given) for given in retrievers]


def _as_retriever(given: Any) -> Any:
    if type(given) is Searcher:
        return SearcherRetriever(**given._arguments)
    if isinstance(given, BaseSearcher):
        raise ConfigurationError(
            f"Searcher: retrievers: {given.name!r} cannot be among them; of searchers, only 'searcher' can"
        )
    return given


# A searcher as a retriever of another one.


class SearcherRetriever(BaseRetriever):
    """A searcher among the retrievers of another one. It has no index of its own: its retrievers' are used.

    Every search costs what it costs there, for as many results as the outer searcher's depth; sub-queries of the outer
    processor are its queries.

    Args:
        retrievers: as of :class:`Searcher`.
        processor: as of :class:`Searcher`.
        fusion: as of :class:`Searcher`.
        reranker: as of :class:`Searcher`.
        scope: as of :class:`Searcher`.
        depth: as of :class:`Searcher`.
        quota: as of :class:`Searcher`.
    """

    name = "searcher"
    has_index = False
    search_only = frozenset({"retrievers", "processor", "fusion", "reranker", "scope", "depth", "quota"})
    manifest_may_set = Searcher.manifest_may_set

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever | Searcher | ByName] | Mapping[str, BaseRetriever | Searcher | ByName],
        processor: BaseUserQueryProcessor | ByName | None = None,
        fusion: BaseFusion | ByName | None = None,
        reranker: Reranker | Sequence[Reranker] | None = None,
        scope: Scope = "pooled",
        depth: Depth | Mapping[str, Depth] | None = None,
        quota: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.searcher = Searcher(retrievers, processor, fusion, reranker, scope, depth, quota)
        self._arguments |= self.searcher._arguments  # one configuration, however it is written

    def __repr__(self) -> str:
        return repr(self.searcher)

    def parts(self) -> Sequence[BaseRetriever]:
        return list(self.searcher.retrievers.values())

    def open(self, generation: Generation) -> Self:
        opened = copy.copy(self)
        opened.searcher = copy.copy(self.searcher)
        opened.searcher._opened = self.searcher.opened_on(generation)
        return opened

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        # it is one stage of the outer search, which notes what finds nothing
        with changed_context(seconds=None, notes_empty=False) as context:
            batch = self.searcher._found(context, self.searcher.open_retrievers(), queries, k, allowed)
        return Hits(batch.offsets, batch.rows, batch.scores, batch.signals)

    def check_opened(self) -> None:
        for retriever in self.searcher.open_retrievers().retrievers.values():
            retriever.check_opened()

    @property
    def explains(self) -> bool:
        return self.searcher.explains

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        del items
        reasons = self.searcher._reasons(self.searcher.open_retrievers(), query, rows)
        return [max(by_label.values(), key=lambda reason: reason.strength, default=None) for by_label in reasons]

    def build(self, items: ItemTable, folder: Path) -> None:
        raise NotImplementedError("it has no index of its own")

    def load(self, folder: Path) -> None:
        raise NotImplementedError("it has no index of its own")


# Functions in an expression.


class FunctionProcessor(BaseUserQueryProcessor):
    """A function before ``>>``: it takes a query, and returns the sub-query, or a list of sub-queries."""

    name = "function"
    only_in_memory = True
    function: Callable[[str], str | list[str]]

    def __init__(self, function: str) -> None:
        del function

    def extra_state(self) -> dict[str, Any]:
        return {"function": self.function}

    def process(self, nlqs: list[str]) -> list[list[str]]:
        made = map(self.function, nlqs)
        return [[one] if isinstance(one, str) else one for one in made]


class FunctionReranker(BaseReranker):
    """A function after ``>>``: it takes a query and its results, and returns them in another order."""

    name = "function"
    only_in_memory = True
    function: Callable[[str, list[RetrievalResult]], list[RetrievalResult]]

    def __init__(self, function: str) -> None:
        del function

    def extra_state(self) -> dict[str, Any]:
        return {"function": self.function}

    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> list[list[RetrievalResult]]:
        ordered = [self.function(query, hits) for query, hits in zip(nlqs, results, strict=True)]
        return [hits[:k] if isinstance(hits, list) else hits for hits in ordered]  # anything else is an error later


_function_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _of_function(cls: type[FunctionProcessor] | type[FunctionReranker], x: Any) -> Any:
    if not callable(x) or isinstance(x, type | Component | Expression):
        return x
    named = f"{getattr(x, '__qualname__', type(x).__name__)} {uuid4().hex[:12]}"
    with suppress(TypeError):  # str.lower cannot be held weakly, and gets another name each time
        named = _function_names.setdefault(x, named)
    made = cls(named)
    made.function = x
    return made


# Expressions: the searcher that two operands and an operator between them mean.


class _Term(NamedTuple):
    """A retriever in a sum, with its label, depth and weight if it has one."""

    label: str
    retriever: BaseRetriever | Searcher
    depth: Any = None
    weight: float | None = None


def _limited(x: Any, n: Any) -> Searcher | FirstCandidates:
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ConfigurationError(f"{_name(x)} % {_name(n)}: a number of candidates is an integer from 1, as in {_name(x)} % 50")
    if isinstance(x, FirstCandidates):
        raise ConfigurationError(f"{x.name} % {n}: two depths for one reranker; write {x.reranker.name} % {min(x.n, n)}")
    if _is_reranker(x):
        return FirstCandidates(x, int(n))
    searcher = _searcher(x, f"% {n}")
    if len(searcher.retrievers) > 1 or searcher.rerankers or searcher.scope != "pooled":
        return Searcher([searcher], depth=int(n))
    depth = searcher.depth_for(int(n))  # at most n of the depth that it has
    return _changed(searcher, depth=int(n) if depth == "all" else min(depth, int(n)))


def _weighted(weight: Any, x: Any) -> Searcher:
    if isinstance(weight, Expression | Component):
        raise ConfigurationError(
            f"{_name(x)} * {_name(weight)}: a weight is a number; write a + b to fuse, or 0.7 * a + 0.3 * b to weight them"
        )
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not 0 < weight < math.inf:
        raise ConfigurationError(
            f"{_name(weight)} * {_name(x)}: a weight is a number above 0, as in 0.7 * {_name(x)}; leave out what has none"
        )
    if _is_reranker(x):
        raise ConfigurationError(
            f"{_name(weight)} * {_name(x)}: only what retrieves has a weight; a reranker is blended with the list before it by "
            "its parameter blend"
        )
    searcher = _searcher(x, f"{_name(weight)} *")
    terms = _terms(searcher)
    if any(term.weight is None for term in terms):
        (term,) = terms if len(terms) == 1 else [_Term("", searcher)]
        terms = [term._replace(weight=1.0)]
    return _sum([term._replace(weight=float(weight) * (term.weight or 0.0)) for term in terms])


def _fused(x: Any, y: Any) -> Searcher:
    where = f"{_name(x)} + {_name(y)}"
    if any(map(_is_reranker, (x, y))):
        reranker = _name(x if _is_reranker(x) else y)
        raise ConfigurationError(
            f"{where}: what retrieves is fused, and a reranker follows; write x >> {reranker}, or x >> a >> b for two of them"
        )
    terms = [*_terms(_searcher(x, where)), *_terms(_searcher(y, where))]
    if any(term.weight is None for term in terms) and any(term.weight is not None for term in terms):
        without = ", ".join(_name(term.retriever) for term in terms if term.weight is None)
        raise ConfigurationError(
            f"{where}: {without} has no weight and the rest has; give one to each part, as in 0.7 * a + 0.3 * b, or to none "
            "(a sum takes one as a whole: 0.7 * (a + b) + 0.3 * c)"
        )
    return _sum(terms)


def _followed(x: Any, y: Any) -> Searcher:
    x = _of_function(FunctionProcessor, x)
    y = _of_function(FunctionReranker, y)
    where = f"{_name(x)} >> {_name(y)}"
    if isinstance(y, BaseUserQueryProcessor):
        raise ConfigurationError(f"{where}: a processor comes first; write {_name(y)} >> {_name(x)}")
    if _is_reranker(y):
        if _is_reranker(x) or isinstance(x, BaseUserQueryProcessor):
            raise ConfigurationError(
                f"{where}: there is nothing to rerank; begin with what retrieves, as in bm25 >> {_name(y)}"
            )
        searcher = _searcher(x, where)
        return _changed(searcher, reranker=[*searcher.rerankers.values(), y])
    if not isinstance(x, BaseUserQueryProcessor):
        raise ConfigurationError(f"{where}: after >> comes a reranker; write a + b to fuse the lists of two retrievers")
    searcher = _searcher(y, where)
    if searcher.processor is not None:
        raise ConfigurationError(
            f"{where}: {_name(y)} has the processor {searcher.processor.name} already; join the two by Chain([a, b])"
        )
    return _changed(searcher, processor=x)


def _terms(searcher: Searcher) -> list[_Term]:
    """The parts of a sum; a searcher that is more than a sum is one part."""
    fusion, labels = searcher.fusion, list(searcher.retrievers)
    given = fusion.weights if isinstance(fusion, WeightedSum) and fusion.normalization == "minmax" else None
    weights: list[float] | list[None] = [None] * len(labels)
    if given is not None:
        weights = weights_for(given, labels).tolist()
    is_sum = given is not None or fusion == (RawScore() if len(labels) == 1 else ReciprocalRankFusion())
    if not is_sum or len(weights) != len(labels) or searcher.processor or searcher.rerankers or searcher.scope != "pooled":
        return [_Term("", searcher)]
    named = isinstance(searcher._arguments["retrievers"], Mapping)
    depth = searcher.depth if isinstance(searcher.depth, Mapping) else dict.fromkeys(labels, searcher.depth)
    return [
        _Term(label if named else "", retriever, depth.get(label), weight)
        for (label, retriever), weight in zip(searcher.retrievers.items(), weights, strict=True)
    ]


def _sum(terms: list[_Term]) -> Searcher:
    usual = numbered_names([term.retriever.name for term in terms])
    labels = numbered_names([term.label or term.retriever.name for term in terms])
    retrievers = [term.retriever for term in terms]
    weights = [term.weight for term in terms if term.weight is not None]
    return Searcher(
        retrievers if labels == usual else dict(zip(labels, retrievers, strict=True)),
        fusion=WeightedSum(weights) if weights else None,
        depth={label: term.depth for label, term in zip(labels, terms, strict=True) if term.depth is not None},
    )


def _changed(searcher: Searcher, **changes: Any) -> Searcher:
    return Searcher(**(searcher._arguments | changes))


def _searcher(x: Any, where: str) -> Searcher:
    if type(x) is Searcher:
        return x
    if isinstance(x, BaseRetriever):
        return Searcher([x])
    if isinstance(x, BaseUserQueryProcessor):
        raise ConfigurationError(f"{where}: a processor comes before what it searches; write {x.name} >> (...)")
    cure = "of searchers, only a Searcher can" if isinstance(x, Component) else "write a retriever or a searcher"
    raise ConfigurationError(f"{where}: {_name(x)} cannot be a part of an expression; {cure}")


def _is_reranker(x: Any) -> bool:
    return isinstance(x, BaseReranker | FirstCandidates)


def _name(x: Any) -> str:
    """An operand, for messages."""
    if type(x) is Searcher:
        return " + ".join(x.retrievers) if len(x.retrievers) == 1 else f"({' + '.join(x.retrievers)})"
    return x.name if isinstance(x, Component | FirstCandidates) else repr(x)
