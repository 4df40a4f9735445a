"""The composition: process, retrieve, fuse, rerank, cut."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Rows
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Component, codes_in, digest_of_key, with_held
from nlp_retrieval.core.components.registry import ByName, labelled, numbered_names, require_distinct_names, resolve_components
from nlp_retrieval.core.components.trust_rules import PART_RULES, may_set
from nlp_retrieval.core.context import changed_context, encoding_once, record_steps, search_context, search_steps
from nlp_retrieval.core.files.frames import Queries, texts_of
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import Explanation, RetrievalResult
from nlp_retrieval.core.queries import POOL_DEPTH, check_k, check_processed, check_queries, check_results, has_no_words
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.expressions import Expression, FirstCandidates
from nlp_retrieval.core.search.joining import BaseFusion, RawScore, ReciprocalRankFusion, WeightedSum, interleave, weights_for
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever, OpenedRetrievers, current_stages, with_parts
from nlp_retrieval.core.tables import RankedLists
from nlp_retrieval.errors import ConfigurationError, nearest

Scope = Literal["pooled", "per_subquery"]
Depth = Annotated[int, Field(ge=1)] | Literal["all"]
Reranker = BaseReranker | FirstCandidates | ByName


class Searcher(BaseSearcher, Expression):
    """Composes retrievers, and the stages before and after them, into one search.

    It may be written as an expression: see :mod:`nlp_retrieval.core.search.expressions`. Parts may be given by their registry
    names (``["bm25", "faiss"]``), or as ``{"name": "bm25", "k1": 1.2}``.

    Args:
        retrievers: at least one; a mapping gives each a label for its signals (by default its registry name, numbered if two
            share it). A searcher among them is searched with all its stages, for as many results as its depth here.
        processor: turns each query into sub-queries; by default the query is searched unchanged.
        fusion: merges the retrievers' lists; by default raw scores for one retriever, reciprocal ranks for several.
        reranker: reorders the fused candidates against the original query. Of several, each reorders the list of the one
            before. ``OverlapReranker() % 10`` is a reranker with its depth.
        scope: ``pooled`` makes one pool per query. ``per_subquery`` fuses and reranks each sub-query's candidates separately
            against the original query, and interleaves the lists by rank.
        depth: candidates per retriever, after its sub-queries are merged. By default k for one retriever without a reranker,
            else max(k, 100). ``all``: every item that matches the filter and that the retriever finds at all. A mapping sets it
            by label (``{"bm25": 50, "faiss": 200}``), and for rerankers by name: ``{"cross_encoder": 10}`` reranks the first 10
            candidates, and the others follow in their order.
        quota: with scope ``per_subquery``, at most this many results from each sub-query; by default even shares of k,
            with slots left free by short lists filled by the others.

    Examples:
        >>> searcher = Searcher(["bm25"], reranker="overlap", depth=50)
        >>> searcher.index(items, "index")
        IndexReport(path=PosixPath('index'), n_items=3, built=['bm25'], reused=[], seconds=..., resumed=0)
        >>> for hit in searcher.search("what eats krill?", k=2)[0]:
        ...     print(hit.item.item_id, round(hit.score, 3))
        whale 0.033
        krill 0.033
        >>> Searcher.open("index").search("lemmings")[0][0].item.title
        'Arctic fox'
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
        self.retrievers = labelled(resolved["retrievers"], "Searcher: retrievers")
        self.processor: BaseUserQueryProcessor | None = resolved["processor"]
        several = len(self.retrievers) > 1
        self.fusion: BaseFusion = resolved["fusion"] or (ReciprocalRankFusion() if several else RawScore())
        self._fuses = several or not isinstance(self.fusion, RawScore)
        given: list[Any] = resolved["reranker"] if isinstance(resolved["reranker"], list) else [resolved["reranker"]]
        listed = [part.reranker if isinstance(part, FirstCandidates) else part for part in given if part is not None]
        labels = numbered_names(reranker.name for reranker in listed)
        self.rerankers: dict[str, BaseReranker] = dict(zip(labels, listed, strict=True))
        self.reranker: BaseReranker | list[BaseReranker] | None = listed if len(listed) > 1 else next(iter(listed), None)
        firsts = {label: part.n for label, part in zip(labels, given, strict=False) if isinstance(part, FirstCandidates)}
        self.depth = self._depths(depth, firsts)
        self.scope: Scope = scope
        self.quota = quota
        if quota is not None and scope != "per_subquery":
            raise ConfigurationError(f"Searcher: quota={quota} has a meaning only with scope='per_subquery'")
        reserved = {"process", "fuse", "fusion", "items"} if isinstance(resolved["retrievers"], Mapping) else set()
        if twice := self.retrievers.keys() & (reserved | self.rerankers.keys()):
            raise ConfigurationError(f"Searcher: {min(twice)!r} is the name of another stage; give the retriever another label")
        require_distinct_names(self)
        # equal configurations are equal, however they are written
        settled = {"reranker": self.reranker, "depth": self.depth} | ({"fusion": self.fusion} if several else {})
        self._arguments |= {key: value for key, value in settled.items() if key in self._arguments or key == "fusion"}

    def _depths(
        self, depth: Depth | Mapping[str, Depth] | None, firsts: Mapping[str, int]
    ) -> int | Literal["all"] | dict[str, Any] | None:
        """The depth by label; one number if all retrievers have it and no reranker has one."""
        if not isinstance(depth, Mapping):
            if not firsts:
                return depth
            depth = {} if depth is None else dict.fromkeys(self.retrievers, depth)
        for label in depth:
            if label not in self.retrievers and label not in self.rerankers:
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

    def depth_for(self, k: int, label: str | None = None) -> int | Literal["all"]:
        """Return how many candidates are fetched from the retriever with a label for lists of length ``k``."""
        depth = self.depth if not isinstance(self.depth, Mapping) else self.depth.get(label or "")
        is_single = len(self.retrievers) == 1 and not self.rerankers and self.scope == "pooled"
        return depth or (k if is_single else max(k, POOL_DEPTH))

    @property
    def fingerprint(self) -> str:
        parts = [*with_parts(self.retrievers.values()), *filter(None, [self.processor]), *self.rerankers.values()]
        parts += [part for retriever in self.retrievers.values() if not retriever.has_index for part in with_held(retriever)]
        models = [part.identity for part in parts]
        codes = codes_in(self)
        return digest_of_key({"config": self.config, "models": models} | ({"codes": codes} if codes else {})).hex()

    @property
    def stages(self) -> list[str]:
        names = ["process"] if self.processor else []
        names += self.retrievers
        names += ["fuse"] if self._fuses else []
        return [*names, *self.rerankers, "items"]

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
            One list per query, best first; ordinary lists that also become tables.

        Raises:
            QueryError: a query has no text, k is not a positive integer, or the filter does not match these items.
            IndexMissingError: no index was opened.
            ForkError: it was opened before a fork, which one of the engines does not survive.
        """
        (ids, nlqs), cut = texts_of(queries), check_k(k)
        with record_steps(search_steps(nlqs, cut, where)) as steps, encoding_once():
            opened = self.open_retrievers()
            items = opened.generation.items
            allowed = items.allowed(where)
            if allowed is not None and not allowed.any():
                return RankedLists(nlqs, ([] for _ in nlqs), ids)
            batch = self.candidates(opened, nlqs, cut, allowed, subqueries)
            with search_context().stage("items"):
                ranked = RankedLists(nlqs, batch.results(items.items), ids)
            for number, step in enumerate(steps):
                step["results"] = [result.item.item_id for result in ranked[number]]
            return ranked

    def candidates(
        self,
        opened: OpenedRetrievers,
        nlqs: list[str],
        k: int,
        allowed: Mask | None,
        subqueries: Sequence[Sequence[str]] | None = None,
    ) -> Hits:
        """Return the best k candidates of every query: all stages but the last."""
        if subqueries is not None:
            processed = check_processed(subqueries, len(nlqs))
        elif self.processor is not None:
            with search_context().stage("process"):
                processed = current_stages().subqueries(self.processor, nlqs)
        else:
            processed = [[nlq] for nlq in nlqs]
        if self.scope == "pooled":
            return self.ranked(opened, nlqs, processed, k, allowed).head(k)
        counts = [len(subqueries) for subqueries in processed]
        each_alone = [[subquery] for subqueries in processed for subquery in subqueries]
        originals = [nlq for nlq, count in zip(nlqs, counts, strict=True) for _ in range(count)]
        return interleave(self.ranked(opened, originals, each_alone, k, allowed), counts, k, self.quota)

    def ranked(
        self, opened: OpenedRetrievers, nlqs: list[str], processed: list[list[str]], k: int, allowed: Mask | None
    ) -> Hits:
        """Retrieve, fuse and rerank: one list per entry of ``processed``, reranked against its original query."""
        generation, batches = opened.generation, dict[str, Hits]()
        depths = {label: self.depth_for(k, label) for label in opened.retrievers}
        context = search_context()
        for label, wanted in depths.items():
            depth = len(generation.items) if wanted == "all" else wanted
            with context.stage(label):
                retriever = opened.retrievers[label]
                batches[label] = current_stages().candidates(retriever, processed, depth, generation, label, allowed)
        batch = next(iter(batches.values()))
        if self._fuses:
            with context.stage("fuse"):
                batch = self.fusion.fuse(batches)
                if not self.rerankers and self.scope == "pooled":
                    batch = batch.head(k)
        for label, reranker in self.rerankers.items():
            n_rows = len(batch.rows)
            if not n_rows:
                break
            first = self.depth.get(label, n_rows) if isinstance(self.depth, Mapping) else n_rows
            with context.stage(label):
                reordered = current_stages().reranked(reranker, nlqs, batch.head(first), generation, label)
                batch = reordered.followed_by(batch.below(first))
        return batch

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]:
        """Explain why results of :meth:`search` were found: the chain of links, by the label of each retriever that has one."""
        (nlq,) = check_queries(query)
        opened = self.open_retrievers()
        rows = opened.generation.items.rows_of([result.item.item_id for result in check_results(results)])
        return self.reasons(opened, nlq, rows)

    def reasons(self, opened: OpenedRetrievers, nlq: str, rows: Rows) -> list[dict[str, Explanation]]:
        """Return the strongest explanation by each retriever of why the items in these rows were found."""
        explanations: list[dict[str, Explanation]] = [{} for _ in rows]
        if not any(retriever.explains for retriever in opened.retrievers.values()):
            return explanations  # a processor may ask a language model
        subqueries = [nlq] if self.processor is None else current_stages().subqueries(self.processor, [nlq])[0]
        for label, retriever in opened.retrievers.items():
            retriever.check_opened()
            for subquery in subqueries:
                if has_no_words(subquery):
                    continue
                explained = retriever.explain(subquery, rows, opened.generation.items)
                for by_label, explanation in zip(explanations, explained, strict=True):
                    if explanation and (label not in by_label or explanation.strength > by_label[label].strength):
                        by_label[label] = explanation
        return explanations

    @staticmethod
    def expressed(left: Any, operator: str, right: Any) -> Searcher | FirstCandidates:
        """Return what an expression means (see :mod:`nlp_retrieval.core.search.expressions`), or raise a ConfigurationError."""
        meaning = {"%": _limited, "*": _weighted, "+": _fused, "&": _shared, ">>": _followed}[operator]
        return meaning(left, right, f"{_name(left)} {operator} {_name(right)}")


def _as_retrievers(given: Any) -> Any:
    """Retrievers as given, with each searcher among them as a retriever."""
    if isinstance(given, Mapping):
        return dict(zip(given, _as_retrievers(given.values()), strict=True))
    retrievers = []
    for part in given:
        if isinstance(part, BaseSearcher) and type(part) is not Searcher:
            raise ConfigurationError(f"Searcher: retrievers: {part.name!r} cannot be one; of searchers, only a Searcher can")
        retrievers.append(SearcherRetriever(**part._arguments) if isinstance(part, Searcher) else part)
    return retrievers


# A searcher as a retriever of another one.


class SearcherRetriever(BaseRetriever):
    """A searcher among the retrievers of another one; sub-queries of the outer processor are its queries.

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
    _inner: OpenedRetrievers

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
        opened._n_rows = len(generation.items)
        opened._inner = OpenedRetrievers.on(generation, self.searcher.retrievers)
        return opened

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        # it is one stage of the outer search, which notes what finds nothing
        with changed_context(seconds=None, notes_empty=False):
            return self.searcher.candidates(self._inner, queries, k, allowed)

    @property
    def explains(self) -> bool:
        return any(retriever.explains for retriever in self.parts())

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        del items
        reasons = self.searcher.reasons(self._inner, query, rows)
        return [max(by_label.values(), key=lambda reason: reason.strength, default=None) for by_label in reasons]

    def build(self, items: ItemTable, folder: Path) -> None:
        raise NotImplementedError("it has no index of its own")


# Expressions: the searcher that two operands and an operator between them mean.


class _Term(NamedTuple):
    """A retriever in a sum, with its label, depth and weight if it has one."""

    label: str
    retriever: BaseRetriever | Searcher
    depth: Any = None
    weight: float | None = None


def _limited(x: Any, n: Any, where: str) -> Searcher | FirstCandidates:
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ConfigurationError(f"{where}: a number of candidates is an integer from 1, as in {_name(x)} % 50")
    if isinstance(x, BaseReranker):
        return FirstCandidates(x, int(n))
    searcher = _searcher(x, where)
    if len(searcher.retrievers) > 1 or searcher.rerankers or searcher.scope != "pooled":
        return Searcher([searcher], depth=int(n))
    depth = searcher.depth_for(int(n))  # at most n of the depth that it has
    return Searcher(**searcher._arguments | {"depth": int(n) if depth == "all" else min(depth, int(n))})


def _weighted(weight: Any, x: Any, where: str) -> Searcher:
    is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    if not is_number or not 0 < weight < math.inf:
        raise ConfigurationError(f"{where}: a weight is a number above 0, as in 0.7 * {_name(x)}; leave out what has none")
    searcher = _searcher(x, where)
    terms = _terms(searcher)
    if any(term.weight is None for term in terms):
        (term,) = terms if len(terms) == 1 else [_Term("", searcher)]
        terms = [term._replace(weight=1.0)]
    return _sum([term._replace(weight=float(weight) * (term.weight or 0.0)) for term in terms])


def _fused(x: Any, y: Any, where: str) -> Searcher:
    terms = [*_terms(_searcher(x, where)), *_terms(_searcher(y, where))]
    without = [_name(term.retriever) for term in terms if term.weight is None]
    if 0 < len(without) < len(terms):
        cure = "give one to each part, as in 0.7 * a + 0.3 * b (a sum takes one as a whole: 0.7 * (a + b)), or to none"
        raise ConfigurationError(f"{where}: {', '.join(without)} has no weight and the rest has; {cure}")
    return _sum(terms)


def _shared(x: Any, y: Any, where: str) -> Searcher:
    parts = [_searcher(part, where) for part in (x, y)]
    terms = [term for part in parts for term in (_terms(part) if len(part.retrievers) == 1 else [_Term("", part)])]
    if any(term.weight is not None for term in terms):
        raise ConfigurationError(f"{where}: what both find is fused by rank, without weights; leave them out")
    return Searcher(**_sum(terms)._arguments | {"fusion": ReciprocalRankFusion(found_by=2)})


def _followed(x: Any, y: Any, where: str) -> Searcher:
    x, y = BaseUserQueryProcessor.of_value(x) or x, BaseReranker.of_value(y) or y
    if isinstance(y, BaseReranker | FirstCandidates):
        searcher = _searcher(x, where)
        return Searcher(**searcher._arguments | {"reranker": [*searcher.rerankers.values(), y]})
    searcher = _searcher(y, where)
    if searcher.processor is not None or not isinstance(x, BaseUserQueryProcessor):
        raise ConfigurationError(f"{where}: before >> comes one processor, or after it a reranker; a + b fuses two lists")
    return Searcher(**searcher._arguments | {"processor": x})


def _terms(searcher: Searcher) -> list[_Term]:
    """The parts of a sum; a searcher that is more than a sum is one part."""
    fusion, labels, weights = searcher.fusion, list(searcher.retrievers), dict[str, float]()
    is_sum = fusion == (RawScore() if len(labels) == 1 else ReciprocalRankFusion())
    if isinstance(fusion, WeightedSum) and fusion.weights is not None:
        weights = dict(zip(labels, weights_for(fusion.weights, labels).tolist(), strict=True))
        is_sum = True
    if not is_sum or searcher.processor or searcher.rerankers or searcher.scope != "pooled":
        return [_Term("", searcher)]
    named = isinstance(searcher._arguments["retrievers"], Mapping)
    depth = searcher.depth if isinstance(searcher.depth, Mapping) else dict.fromkeys(labels, searcher.depth)
    return [
        _Term(label if named else "", retriever, depth.get(label), weights.get(label))
        for label, retriever in searcher.retrievers.items()
    ]


def _sum(terms: list[_Term]) -> Searcher:
    usual = numbered_names(term.retriever.name for term in terms)
    labels = numbered_names(term.label or term.retriever.name for term in terms)
    retrievers = [term.retriever for term in terms]
    weights = [term.weight for term in terms if term.weight is not None]
    return Searcher(
        retrievers if labels == usual else dict(zip(labels, retrievers, strict=True)),
        fusion=WeightedSum(weights) if weights else None,
        depth={label: term.depth for label, term in zip(labels, terms, strict=True) if term.depth is not None},
    )


def _searcher(x: Any, where: str) -> Searcher:
    if type(x) is Searcher:
        return x
    if isinstance(x, BaseRetriever):
        return Searcher([x])
    raise ConfigurationError(
        f"{where}: {_name(x)} cannot stand there; write a retriever or a Searcher, in parentheses if a reranker follows with >>"
    )


def _name(x: Any) -> str:
    """An operand, for messages."""
    if type(x) is Searcher:
        return " + ".join(x.retrievers) if len(x.retrievers) == 1 else f"({' + '.join(x.retrievers)})"
    if isinstance(x, type):
        return f"{x.__name__} without ()"
    return x.name if isinstance(x, Component) else repr(x)
