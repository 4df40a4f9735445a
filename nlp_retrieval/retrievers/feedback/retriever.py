"""Retrieval with pseudo-relevance feedback over vectors and terms, for the same questions asked of many subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.core.components.registry import ByName, with_parts_made
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.explanation import Explanation, name_of
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.measure import stage
from nlp_retrieval.core.ranking import best_of, scaled
from nlp_retrieval.core.search.composition import labelled
from nlp_retrieval.core.search.joining.merge import MergeRule
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, EngineError
from nlp_retrieval.retrievers.feedback.places import PassagePlaces, write_places
from nlp_retrieval.retrievers.feedback.scoring import Feedback, Similarities
from nlp_retrieval.retrievers.feedback.subjects import NamedSubjects
from nlp_retrieval.retrievers.link_graph.store.added_links import live_of
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.retrievers.vectors import VectorRetriever

_DECIMALS = 6  # further ones are noise of rounding, which must not break ties
_REACH = 2

Weight = Annotated[float, Field(ge=0, le=1000)]


class FeedbackRetriever(BaseRetriever):
    """Finds passages that are like the query, and like the best first hits for it in the whole index.

    The score of a passage is its similarity to the query's vector, plus ``vector_weight`` times that to the mean vector of
    the passages fed back (Rocchio, 1971; with dense vectors Li et al., 2023, https://arxiv.org/abs/2108.11044), plus
    ``term_weight`` times that to their weightiest terms (as RM3 expands a query: Abdul-Jaleel et al., 2004), each standardised
    over a sample of the index; then ``neighbour_weight`` times the scores of the passages beside it in its document.

    It is made for questions that are asked of many subjects: of every country, company or drug. With ``subject``, names of
    subjects in a query are read as "the country", which passages are compared with, and passages of a named subject go
    first. Feedback comes from the whole index, whatever the filter: how other countries' plans speak of finance finds where
    this one does. So a filter hides passages from results, but does not keep them from shaping the order of the others; index
    apart what one group of readers may not even indirectly learn of another's.

    Args:
        seeds: the retrievers whose first hits are fed back, their scores min-max normalised and added; at least one of them
            is faiss or pgvector; the vectors of the first such are compared.
        subject: metadata field that says what a passage is about, such as "country".
        document: metadata field that says which document a passage is part of.
        position: metadata field with a passage's place in its document, a number.
        passages: so many are fed back.
        depth: of the seeds' lists from which they are taken.
        terms: so many of their terms count.
        vector_weight: how much their mean vector counts, compared with 1 for the query's.
        term_weight: how much their terms count.
        neighbour_weight: how much the passages next to one count, and half as much those after these; 0 for not at all.
        named_weight: how far passages of a subject that the query names are put before others; scores lie within some tens,
            so that by default they all come first. 0 for not at all.
        pool: up to so many passages that the filter leaves are all compared; of more, those that one of the searches finds
            among its first.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
    """

    name = "feedback"
    manifest_may_set = may_set(
        *("seeds", "subject", "document", "position", "passages", "depth", "terms", "vector_weight", "term_weight"),
        *("neighbour_weight", "named_weight", "pool", "merge"),
    )
    format_version = 2
    search_only = frozenset(
        "seeds passages depth terms vector_weight term_weight neighbour_weight named_weight pool merge".split()
    )

    def __init__(
        self,
        seeds: Sequence[BaseRetriever | ByName] | Mapping[str, BaseRetriever | ByName],
        subject: str | None = None,
        document: str = "document",
        position: str = "position",
        passages: Annotated[int, Field(ge=1, le=1000)] = 15,
        depth: Annotated[int, Field(ge=1)] = 100,
        terms: Annotated[int, Field(ge=1, le=10_000)] = 30,
        vector_weight: Weight = 1.0,
        term_weight: Weight = 1.0,
        neighbour_weight: Annotated[float, Field(ge=0, le=1)] = 0.3,
        named_weight: Weight = 100.0,
        pool: Annotated[int, Field(ge=1)] = 2000,
        merge: MergeRule = "alternate",
    ) -> None:
        self.seeds = labelled(with_parts_made(self, FeedbackRetriever, seeds=seeds)["seeds"], "feedback: seeds")
        self.subject = subject
        self.document = document
        self.position = position
        self.passages = passages
        self.depth = depth
        self.terms = terms
        self.vector_weight = vector_weight
        self.term_weight = term_weight
        self.neighbour_weight = neighbour_weight
        self.named_weight = named_weight
        self.pool = pool
        self.merge = merge
        if not any(isinstance(seed, VectorRetriever) for seed in self.seeds.values()):
            found = ", ".join(seed.name for seed in self.seeds.values())
            raise ConfigurationError(f"feedback: none of its seeds ({found}) has vectors to compare; add faiss or pgvector")

    def parts(self) -> list[BaseRetriever]:
        return list(self.seeds.values())

    def build(self, items: ItemTable, folder: Path) -> None:
        PassageTerms.write(folder, items)
        write_places(items, folder, self.subject, self.document, self.position)

    def load(self, folder: Path) -> None:
        raise EngineError(f"{self.name} opens all segments at once: {folder}")

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        live = live_of(segments)
        self._rows = np.flatnonzero(live)
        self._n_rows = len(live)
        self._places = PassagePlaces.open_all(segments, live)
        self._named = NamedSubjects(self._places.names, self.subject) if self.subject else None
        self._open_seeds = dict(zip(self.seeds, self._opened_parts, strict=True))
        dense = next(seed for seed in self._opened_parts if isinstance(seed, VectorRetriever))
        self._dense = dense
        terms = PassageTerms.open_all(segments)
        self._similarities = Similarities(dense.vectors_of, dense.dimension, terms, self._places.subjects, live)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        lists: list[tuple[Rows, Scores]] = []
        signals: dict[str, list[Scores]] = {key: [] for key in ("query", "vector", "terms", "neighbours", "named")}
        for asked in self._asked(queries):
            with stage(f"{self.name}.compare"):
                rows = self._candidates(asked, k, allowed)
                columns = self._columns(asked, rows)
                scores = sum(columns.values(), np.zeros(len(rows))).round(_DECIMALS)
                best, found = best_of(rows, scores, k)
            lists.append((best, found))
            places = np.searchsorted(rows, best)
            for key, column in columns.items():
                signals[key].append(column[places])
        joined = {key: np.concatenate([np.zeros(0), *parts]) for key, parts in signals.items()}
        return replace(Hits.from_lists(lists), signals=joined)

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        (asked,) = self._asked([query])
        if len(asked.feedback.rows) == 0 or len(rows) == 0:
            return [None] * len(rows)
        near, likeness = self._similarities.nearest(asked.feedback, rows)
        places = {row: place for place, row in enumerate(asked.feedback.rows.tolist(), 1)}
        told: list[Explanation | None] = []
        for item, other, row, like, alike in zip(
            items.items(rows), items.items(near), rows.tolist(), likeness.tolist(), near.tolist(), strict=True
        ):
            own = f"it is number {places[row]} of the passages fed back" if row in places else ""
            if not np.isfinite(like):
                told.append(Explanation(item, own, (), 1.0))
                continue
            reason = f'it says what "{name_of(other)}" says (cosine {like:.2f}), number {places[alike]} of those fed back'
            told.append(Explanation(item, "; ".join(filter(None, [own, reason])), (), max(like, 0.0)))
        return told

    def _asked(self, queries: list[str]) -> list[_Asked]:
        read = [(query, np.zeros(0, np.int64)) if self._named is None else self._named.read(query) for query in queries]
        texts = [text for text, _ in read]
        distinct = list(dict.fromkeys(texts))
        with stage(f"{self.name}.encode"):
            vectors = dict(zip(distinct, self._dense.encode(distinct), strict=True))
        with stage(f"{self.name}.seeds"):
            depth = min(self.depth, max(len(self._rows), 1))
            found = [seed.find(distinct, depth, self._n_rows) for seed in self._open_seeds.values()]
        with stage(f"{self.name}.feedback"):
            feedback = {
                text: self._similarities.fed_back(_first([hits.of(number) for hits in found], self.passages), self.terms)
                for number, text in enumerate(distinct)
            }
        seeds = {text: [hits.of(number)[0] for hits in found] for number, text in enumerate(distinct)}
        return [_Asked(vectors[text], feedback[text], named, seeds[text]) for text, named in read]

    def _candidates(self, asked: _Asked, k: int, allowed: Mask | None) -> Rows:
        """Rows to compare, ascending: all that may be found where they are few."""
        rows = self._rows if allowed is None else np.flatnonzero(allowed)
        most = max(self.pool, k)
        if len(rows) <= most:
            return rows
        vectors = np.stack([asked.vector, asked.feedback.vector])
        hits = self._dense.search_vectors(vectors, most, allowed if allowed is not None else self._live)
        given = [part if allowed is None else part[allowed[part]] for part in asked.seeds]
        named = np.zeros(0, np.int64)
        if len(asked.named):
            named = rows[np.isin(self._places.subjects[rows], asked.named)]
        return np.unique(np.concatenate([hits.rows, *given, named]))

    def _columns(self, asked: _Asked, rows: Rows) -> dict[str, Scores]:
        """The parts of the scores of some rows."""
        around = {distance: self._places.neighbours(rows, distance) for distance in _distances(self.neighbour_weight)}
        wanted = np.unique(np.concatenate([rows, *around.values()]))
        wanted = wanted[wanted >= 0]
        compared = self._similarities
        parts = {
            "query": compared.with_query(asked.vector, wanted),
            "vector": self.vector_weight * compared.with_vector(asked.feedback, wanted),
            "terms": self.term_weight * compared.with_terms(asked.feedback, wanted),
        }
        whole = sum(parts.values(), np.zeros(len(wanted)))
        beside = np.zeros(len(rows))
        for distance, near in around.items():
            there = np.flatnonzero(near >= 0)
            beside[there] += self.neighbour_weight / abs(distance) * whole[np.searchsorted(wanted, near[there])]
        places = np.searchsorted(wanted, rows)
        named: Scores = self.named_weight * np.isin(self._places.subjects[rows], asked.named).astype(np.float64)
        return {key: column[places] for key, column in parts.items()} | {"neighbours": beside, "named": named}


@dataclass(frozen=True, eq=False)
class _Asked:
    """A query: its vector, what is fed back for it, the subjects that it names, and the hits of each seed."""

    vector: Vectors
    feedback: Feedback
    named: Rows
    seeds: list[Rows]


def _distances(weight: float) -> list[int]:
    return [sign * distance for distance in range(1, _REACH + 1) for sign in (-1, 1)] if weight else []


def _first(hits: list[tuple[Rows, Scores]], n: int) -> Rows:
    """The n rows with the highest sums of min-max normalised scores, best first; ties by row."""
    rows = np.concatenate([np.zeros(0, np.int64), *(found for found, _ in hits)])
    distinct, number = np.unique(rows, return_inverse=True)
    values = np.concatenate([np.zeros(0), *(scaled(scores) for _, scores in hits)])
    return best_of(distinct, np.bincount(number, values, len(distinct)).astype(np.float64), n)[0]
