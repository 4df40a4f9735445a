"""The interface of rerankers, and the shared parts of pointwise ones.

A pointwise reranker implements ``score_pairs``. The base class turns candidates into distinct pairs, batches them by
length, blends with the incoming ranking, and keeps the signals.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Rows, Scores, offsets_of, reciprocal_ranks
from nlp_retrieval.core.components.component import Component, FunctionComponent, is_abstract
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import use_one_thread_after_fork
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.queries import check_k, check_queries, check_results
from nlp_retrieval.core.search.expressions import Expression
from nlp_retrieval.core.search.joining import FusionPool, normalized
from nlp_retrieval.errors import ConfigurationError, EngineError, QueryError

Blend = Literal["replace", "rank", "score"]

_LARGEST = float(np.finfo(np.float32).max)


class BaseReranker(Component, Expression, ABC):
    """Reorders candidates against the original query.

    ``blend`` says how the incoming ranking is used: ``"replace"`` it, fuse with it by ``"rank"`` (reciprocal ranks) or
    by ``"score"`` (min-max normalised, added); a reranker offers it as a parameter of that name. By ``"rank"``, candidates
    that a reranker scores equally share the mean of their ranks (Kendall, Biometrika 1945): it has no preference among them,
    and the incoming ranking decides.

    A reranker defines ``score_pairs``. A subclass that defines ``rerank(self, nlqs, results, k)`` alone works too; its lists
    are best first, and their hits are results, items or ids, alone or in pairs with scores.
    """

    kind: ClassVar[str] = "rerankers"

    is_adapted: ClassVar[bool] = False
    """True if it defines ``rerank`` alone."""

    blend: Blend = "replace"
    batch_size: int = 256

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.rerank is not BaseReranker.rerank and is_abstract(cls, "score_pairs"):
            others = (base for base in cls.__bases__ if base is not BaseReranker)
            cls.__bases__ = (*others, AdaptedReranker)
        if cls.is_adapted:
            check_signature(cls, "rerank", "nlqs", "results", "k")

    @classmethod
    def of_value(cls, value: object) -> Component | None:
        """Return a function, which takes a query and its results and returns them in another order, as a reranker."""
        return FunctionReranker.of(value)

    @abstractmethod
    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        """Score pairs of a query and an item.

        Args:
            queries: ``[pairs]``.
            items: ``[pairs]``.

        Returns:
            Columns ``[pairs]``: ``"score"``, higher is better, and optionally its parts. Each becomes a signal,
            ``<label>.<column>``.
        """

    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> list[list[RetrievalResult]]:
        """Reorder the results of each query, and cut them to the best k; a QueryError if the lists do not match the queries."""
        queries, depth = check_queries(nlqs), check_k(k)
        lists = [check_results(hits) for hits in results] if isinstance(results, Sequence) else []
        if len(lists) != len(queries):
            raise QueryError(f"{len(lists)} result lists are given for {len(queries)} queries")
        flat = [result for hits in lists for result in hits]
        keys = dict.fromkeys(key for result in flat for key in result.signals)
        batch = Hits(
            offsets_of([len(hits) for hits in lists]),
            np.arange(len(flat)),
            np.array([result.score for result in flat], np.float64),
            {key: np.array([result.signals.get(key, np.nan) for result in flat]) for key in keys},
        )
        ranked = self.rerank_batch(queries, batch, [result.item for result in flat]).head(depth)
        return ranked.results(lambda rows: [flat[row].item for row in rows.tolist()])

    def rerank_batch(self, queries: Sequence[str], batch: Hits, items: list[SearchableItem], label: str | None = None) -> Hits:
        """Reorder the candidates of a batch, one list per query, given their items."""
        if len(items) == 0:
            return batch
        return self.reordered(batch, self.scored([queries[owner] for owner in batch.owner.tolist()], items), label)

    def rerank_rows(self, queries: Sequence[str], batch: Hits, items: ItemTable, label: str | None = None) -> Hits:
        """Reorder candidates given by their rows in the index; a reranker that keeps texts by row overrides it."""
        return self.rerank_batch(queries, batch, items.items(batch.rows), label)

    def scored(self, queries: list[str], items: list[SearchableItem]) -> dict[str, Scores]:
        """Score pairs, one query with one object once, and return the columns."""
        use_one_thread_after_fork()
        number_of: dict[tuple[str, int], int] = {}
        pairs = zip(queries, items, strict=True)
        numbers = [number_of.setdefault((query, id(item)), len(number_of)) for query, item in pairs]
        first = np.unique(numbers, return_index=True)[1].tolist()
        # pairs of similar length together: a model pads each batch to its longest
        order = sorted(first, key=lambda pair: -len(items[pair].content))
        columns: dict[str, Scores] = {}
        batches = [order[begin : begin + self.batch_size] for begin in range(0, len(order), self.batch_size)]
        for chosen in tracked(f"{self.name}: scoring pairs", batches, len(order)):
            scored = self.score_pairs([queries[pair] for pair in chosen], [items[pair] for pair in chosen])
            for key, values in self.checked_columns(scored, len(chosen)).items():
                columns.setdefault(key, np.zeros(len(items)))[chosen] = values
        places = [first[number] for number in numbers]
        return {key: column[places] for key, column in columns.items()}

    def checked_columns(self, scored: object, n_pairs: int) -> dict[str, Scores]:
        """Return a reranker's output for this many pairs or candidates as columns of finite numbers; else an EngineError."""
        if not isinstance(scored, Mapping) or "score" not in scored:
            shown = f"columns {list(scored)}" if isinstance(scored, Mapping) else type(scored).__name__
            raise EngineError(f'{self!r} returned {shown} and no column "score"; return {{"score": scores}}')
        columns = {key: np.asarray(values) for key, values in scored.items()}
        for key, column in columns.items():
            is_one_each = column.shape == (n_pairs,) and column.dtype.kind in "fiub"
            if not is_one_each or not (np.abs(column.astype(np.float64)) <= _LARGEST).all():
                shown = f"{column}" if is_one_each else f"an array {list(column.shape)} of {column.dtype}"
                raise EngineError(
                    f"{self!r} returned {shown:.200} as {key!r} for {n_pairs} pairs; expected one finite number of 32 bits each"
                )
        return {key: column.astype(np.float64) for key, column in columns.items()}

    def reordered(self, batch: Hits, columns: Mapping[str, Scores], label: str | None = None) -> Hits:
        """Reorder candidates by columns as :meth:`scored` returns them, which become signals under the label."""
        signals = {f"{label or self.name}.{key}": column for key, column in columns.items()}
        return batch.with_scores(self._blended(batch, columns["score"]), signals)

    def _blended(self, batch: Hits, scores: Scores) -> Scores:
        if self.blend == "replace":
            return scores
        ranks = _shared_ranks(batch, scores)
        if self.blend == "rank":
            return reciprocal_ranks(batch.ranks) + reciprocal_ranks(ranks)
        both, places = np.stack([batch.scores, scores], axis=1), np.stack([batch.ranks, ranks], axis=1)
        blended: Scores = normalized(FusionPool(["incoming", "own"], batch.owner, both, places), "minmax").sum(axis=1)
        return blended


def _shared_ranks(batch: Hits, scores: Scores) -> Scores:
    """``[candidates]``: the rank of each in its list by these scores, from 1; equal scores share the mean of their ranks."""
    order = np.lexsort((-scores, batch.owner))
    owner, ordered = batch.owner[order], scores[order]
    new = np.concatenate([[True], (owner[1:] != owner[:-1]) | (ordered[1:] != ordered[:-1])])
    group = np.cumsum(new) - 1
    positions = np.arange(1.0, len(scores) + 1.0) - batch.offsets[owner]
    means = np.bincount(group, positions) / np.bincount(group)
    ranks = np.empty(len(scores))
    ranks[order] = means[group]
    return ranks


# Rerankers that define ``rerank`` alone, and what retrievers that define ``index`` and ``retrieve`` alone share with them. Each
# list that they return is best first; without scores, the score is 1 / rank. A result's signals are not kept.

_HIT = "a hit is a RetrievalResult, an item, the id of one, or a pair of one of these and a score"
Found = tuple[Rows, Scores]


def check_signature(cls: type, method: str, *wanted: str) -> None:
    """Raise a ConfigurationError unless a method has these parameters; further ones need a default."""
    given = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    written = [parameter.name for parameter in given]
    needed = [p.name for p in given if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if written[: len(wanted)] != [*wanted] or not {*needed} <= {*wanted}:
        raise ConfigurationError(
            f"{cls.__name__}.{method}({', '.join(written)}): define {method}(self, {', '.join(wanted)}); further parameters "
            "need a default"
        )


def read_lists(returned: object, row_of: Sequence[Mapping[str, int]], said: str) -> list[Found]:
    """Read what ``said`` returned: the rows of each query's hits, by ``row_of``, and their scores, 1 / rank if it gave none."""
    if not isinstance(returned, list | tuple) or len(returned) != len(row_of):
        shown = f"{len(returned)} lists" if isinstance(returned, list | tuple) else type(returned).__name__
        raise EngineError(f"{said} returned {shown} for {len(row_of)} queries; return one list of hits for each")
    return [_read_list(hits, rows, said) for hits, rows in zip(returned, row_of, strict=True)]


def _read_list(returned: object, row_of: Mapping[str, int], said: str) -> Found:
    if not isinstance(returned, list | tuple):
        raise EngineError(f"{said} returned {returned!r:.80} for a query; return a list of hits, best first: {_HIT}")
    hits = [_read_hit(entry, said) for entry in returned]
    if unknown := [item_id for item_id, _ in hits if item_id not in row_of]:
        raise EngineError(f"{said} returned {unknown[0]!r:.80}, the id of none of the {len(row_of)} items that it got")
    given = [score for _, score in hits if score is not None]
    if given and len(given) < len(hits):
        raise EngineError(f"{said} returned a list in which only some hits have a score; give one to each, or to none")
    scores = np.array(given, np.float64) if given else 1.0 / np.arange(1.0, len(hits) + 1.0)
    if not np.isfinite(scores).all():
        wrong = scores[~np.isfinite(scores)][0]
        raise EngineError(f"{said} returned a hit whose score is {wrong:g}; a score is a finite number")
    return np.array([row_of[item_id] for item_id, _ in hits], np.int64), scores


def _read_hit(entry: object, said: str) -> tuple[str, float | None]:
    match entry:
        case RetrievalResult():
            return entry.item.item_id, entry.score
        case SearchableItem():
            return entry.item_id, None
        case str():
            return entry, None
        case (item, Real() as score):
            return _read_hit(item, said)[0], float(score)
    raise EngineError(f"{said} returned {entry!r:.80} ({type(entry).__name__}) as a hit; {_HIT}")


class AdaptedReranker(BaseReranker):
    """Becomes the base of a class that defines ``rerank`` alone; its order counts, and its scores where they agree with it."""

    is_adapted = True
    said = ""
    """What a message calls it: by default the method that its author wrote."""

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, Scores]:
        del queries, items
        raise EngineError(
            f"{type(self).__name__} defines rerank alone, which gets whole lists; define score_pairs to score pairs"
        )

    def rerank_batch(self, queries: Sequence[str], batch: Hits, items: list[SearchableItem], label: str | None = None) -> Hits:
        results = batch.results(lambda _: items)
        asked = [number for number, hits in enumerate(results) if hits]
        if not asked:
            return batch
        said, lists = self.said or f"{type(self).__name__}.rerank", [results[number] for number in asked]
        returned = self.rerank([queries[number] for number in asked], lists, max(map(len, lists)))
        places_of = [{hit.item.item_id: int(batch.offsets[n]) + at for at, hit in enumerate(results[n])} for n in asked]
        counts, positions, scores = np.zeros(batch.n_lists, np.int64), list[Rows](), list[Scores]()
        for number, (places, given) in zip(asked, read_lists(returned, places_of, said), strict=True):
            if len(np.unique(places)) < len(places):
                raise EngineError(f"{said} returned a result twice for one query")
            is_sorted = (np.lexsort((batch.rows[places], -given)) == np.arange(len(places))).all()
            counts[number] = len(places)
            positions.append(places)
            scores.append(given if is_sorted else 1.0 / np.arange(1.0, len(places) + 1.0))
        chosen = batch.take(np.concatenate(positions), offsets_of(counts))
        return self.reordered(chosen, {"score": np.concatenate(scores)}, label)


class FunctionReranker(FunctionComponent, BaseReranker):
    """A function of a query and its results, which returns them in another order."""

    takes = ("a query", "its results")
    said = "the reranking function"

    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> list[list[RetrievalResult]]:
        del k
        return [self.function(query, hits) for query, hits in zip(nlqs, results, strict=True)]
