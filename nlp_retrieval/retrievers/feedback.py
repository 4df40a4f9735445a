"""Pseudo-relevance feedback: common features of a query's first hits find further ones."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows, Scores, scaled, top_k
from nlp_retrieval.core.components.registry import ByName, labelled, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.context import add_note, stage
from nlp_retrieval.core.files.columns import check_numbers, mapped, read_texts
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.retrievers.faiss.exact import products_of
from nlp_retrieval.retrievers.link_graph.graph import live_of
from nlp_retrieval.retrievers.link_graph.tables import PassageTerms, Terms, hash_of, places_in
from nlp_retrieval.retrievers.vectors import VectorRetriever
from nlp_retrieval.text.surfaces import MOST_WORDS, spans_of, words_of

# The subject of each passage, and its neighbours in its document: metadata say both. A passage without a document has no
# neighbours. Neighbours are adjacent in the order of their positions; a deleted passage is nobody's neighbour.

_STEP = 1024
_NAMES = "subjects.json"
_COLUMNS: dict[str, type[np.generic]] = {"subjects": np.int64, "documents": np.int64, "positions": np.float64}


def write_places(items: ItemTable, folder: Path, subject: str | None, document: str, position: str) -> None:
    """Write the places of all items into an existing folder, as four files."""
    columns = {name: np.zeros(len(items), dtype) for name, dtype in _COLUMNS.items()}
    columns["subjects"][:] = -1
    names: dict[str, int] = {}
    with progress("reading places", len(items)) as advance:
        for row, item in enumerate(items.stream({document, position} | ({subject} if subject else set()))):
            named = item.metadata.get(subject) if subject else None
            if isinstance(named, str) and named.strip():
                columns["subjects"][row] = names.setdefault(named, len(names))
            place, whole = item.metadata.get(position), item.metadata.get(document)
            if whole is not None and isinstance(place, int | float) and math.isfinite(place):
                columns["documents"][row] = (hash_of(json.dumps(whole, sort_keys=True)) >> 1) or 1
                columns["positions"][row] = place
            if row % _STEP == _STEP - 1:
                advance(_STEP)
    if subject and not names:
        add_note(f"feedback: none of these items has a text as its {subject!r}; correct subject=, or leave it out")
    (folder / _NAMES).write_text(json.dumps(list(names), ensure_ascii=False), "utf-8")
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column, allow_pickle=False)


class PassagePlaces(NamedTuple):
    """The places of all passages of an index."""

    names: tuple[str, ...]
    """Of the subjects, each once."""
    subjects: Rows
    """``[passages]``, the number of each passage's subject; -1 if it has none."""
    ordered: Rows
    """Rows of the passages that have a document, document by document, in order of position."""
    documents: NDArray[np.int64]
    """``[ordered]``, equal for passages of one document."""
    place: Rows
    """``[passages]``, position of each in ``ordered``; -1 if it is not there."""

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder], live: Mask) -> PassagePlaces:
        """Open the files of :func:`write_places` for all segments."""
        numbers: dict[str, int] = {}
        parts: dict[str, list[NDArray[Any]]] = {name: [np.zeros(0, dtype)] for name, dtype in _COLUMNS.items()}
        for segment in segments:
            columns = {name: mapped(segment.folder / f"{name}.npy", dtype, (len(segment),)) for name, dtype in _COLUMNS.items()}
            names = read_texts(segment.folder / _NAMES)
            check_numbers(segment.folder / "subjects.npy", columns["subjects"] + 1, len(names) + 1)
            shared = np.array([*(numbers.setdefault(name, len(numbers)) for name in names), -1], np.int64)
            columns["subjects"] = shared[columns["subjects"]]  # -1 is the last
            for name, column in columns.items():
                parts[name].append(column)
        subjects, document, position = (np.concatenate(part) for part in parts.values())
        rows = np.flatnonzero(live & (document != 0))
        ordered = rows[np.lexsort((rows, position[rows], document[rows]))]
        places = np.full(len(document), -1, np.int64)
        places[ordered] = np.arange(len(ordered))
        return cls(tuple(numbers), subjects, ordered, document[ordered], places)

    def neighbours(self, rows: Rows, distance: int) -> Rows:
        """Return the passage at a distance in the same document, ``[rows]``; -1 if there is none."""
        rows_beside = np.full(len(rows), -1, np.int64)
        places = self.place[rows]
        target = places + distance
        inside = np.flatnonzero((places >= 0) & (target >= 0) & (target < len(self.ordered)))
        same = inside[self.documents[places[inside]] == self.documents[target[inside]]]
        rows_beside[same] = self.ordered[target[same]]
        return rows_beside


# The similarity of passages to a query and to the passages fed back, on one scale.
#
# There are three similarities: to the vector of the query; to the mean vector of the passages fed back, minus the mean of each
# one's subject, so that content counts and not the subject; and to their weightiest terms. Each is standardised by its mean and
# deviation over a fixed sample of the index, so that scores do not depend on a filter.

SAMPLED = 2048
"""Size of the sample of passages, evenly spaced, over which similarities are standardised."""

_OF_A_SUBJECT = 256
_AT_ONCE = 4096
_TINY = np.finfo(np.float64).tiny


def evenly(rows: Rows, n: int) -> Rows:
    """Return at most n of some rows, evenly spaced, the first and the last among them."""
    return rows if len(rows) <= n else rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]


class Feedback(NamedTuple):
    """What the passages fed back for one query, best first, have in common."""

    rows: Rows
    vector: Vectors
    """Their mean, of length 1; zeros without feedback."""
    terms: Terms
    """Their weightiest terms, ascending."""
    shares: Scores
    """Each term's part of the score of a passage that has it: its weight (all have length 1) times its information."""


class Similarities:
    """Compares the passages of an index with queries and with feedback."""

    def __init__(
        self, vectors_of: Callable[[Rows], Vectors], dimension: int, terms: PassageTerms, subjects: Rows, live: Mask
    ) -> None:
        self._vectors_of = vectors_of
        self._terms = terms
        self._subjects = subjects
        self._lengths = np.full(len(live), np.nan)
        rows = np.flatnonzero(live)
        n_subjects = int(subjects.max(initial=-1)) + 1
        self._means = np.zeros((n_subjects + 1, dimension), np.float32)  # the last belongs to passages without a subject
        order = rows[np.argsort(subjects[rows], kind="stable")]
        bounds = np.searchsorted(subjects[order], np.arange(-1, n_subjects + 1))
        for number, (begin, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True), start=-1):
            if end > begin:
                self._means[number] = vectors_of(evenly(order[begin:end], _OF_A_SUBJECT)).mean(axis=0)
        self._sample = evenly(rows, SAMPLED)
        self._sampled_vectors = vectors_of(self._sample) if len(rows) else np.zeros((0, dimension), np.float32)
        self._sampled_own = self._centred_vectors(self._sample)
        hashes, counts = terms.of_rows(self._sample)
        order = np.argsort(hashes, kind="stable")
        self._sampled_terms = hashes[order]
        self._sampled_owners = np.repeat(np.arange(len(self._sample)), counts)[order]

    def fed_back(self, rows: Rows, n_terms: int) -> Feedback:
        """Return the common features of some passages."""
        mean = self._centred_vectors(rows).mean(axis=0) if len(rows) else np.zeros(self._means.shape[1], np.float32)
        length = float(np.sqrt(np.square(mean).sum()))
        hashes, counts = self._terms.of_rows(rows)
        terms, number = np.unique(hashes, return_inverse=True)
        information = self._terms.information_of(terms)
        lengths = np.maximum(np.repeat(self._lengths_of(rows), counts), _TINY)
        weights = np.bincount(number, information[number] / lengths, len(terms))
        strongest = np.sort(np.argsort(-weights, kind="stable")[:n_terms])
        weights = weights[strongest]
        norm = float(np.sqrt(np.square(weights).sum())) or 1.0
        shares = weights / norm * information[strongest]
        return Feedback(rows, (mean / length if length else mean).astype(np.float32), terms[strongest], shares)

    def of_rows(self, vector: Vectors, feedback: Feedback, rows: Rows) -> tuple[Scores, Scores, Scores]:
        """Return the standardised similarities of passages to a query's vector, and to vector and terms of its feedback."""
        return (
            _by_vectors(vector, self._vectors_of, rows, self._sampled_vectors),
            _by_vectors(feedback.vector, self._centred_vectors, rows, self._sampled_own),
            _standardised(self._by_terms(feedback, rows), self._sampled_by_terms(feedback)),
        )

    def _centred_vectors(self, rows: Rows) -> Vectors:
        """The vectors of passages without the means of their subjects, of length 1."""
        centred = self._vectors_of(rows) - self._means[self._subjects[rows]]
        lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        return np.asarray(centred / np.maximum(lengths, np.float32(1e-9))[:, None], np.float32)

    def _by_terms(self, feedback: Feedback, rows: Rows) -> Scores:
        """The cosine of each passage's terms and those of the feedback, ``[rows]``."""
        terms, scores = feedback.terms, np.zeros(len(rows))
        for begin in range(0, len(rows), _AT_ONCE):
            part = rows[begin : begin + _AT_ONCE]
            hashes, counts = self._terms.of_rows(part)
            places = places_in(terms, hashes)
            hit = np.flatnonzero(places >= 0)
            owner = np.repeat(np.arange(len(part)), counts)[hit]
            scores[begin : begin + len(part)] = np.bincount(owner, feedback.shares[places[hit]], len(part))
        return scores / np.maximum(self._lengths_of(rows), _TINY)

    def _sampled_by_terms(self, feedback: Feedback) -> Scores:
        """The same for the sample, whose passages are stored by term."""
        begins = np.searchsorted(self._sampled_terms, feedback.terms)
        counts = np.searchsorted(self._sampled_terms, feedback.terms, side="right") - begins
        entries = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        scores = np.bincount(self._sampled_owners[entries], np.repeat(feedback.shares, counts), len(self._sample))
        return scores / np.maximum(self._lengths_of(self._sample), _TINY)

    def _lengths_of(self, rows: Rows) -> Scores:
        """The length of each passage's vector of terms; computed once."""
        missing = np.unique(rows[np.isnan(self._lengths[rows])])
        for begin in range(0, len(missing), _AT_ONCE):
            part = missing[begin : begin + _AT_ONCE]
            hashes, counts = self._terms.of_rows(part)
            terms, number = np.unique(hashes, return_inverse=True)
            squares = self._terms.information_of(terms)[number] ** 2
            self._lengths[part] = np.sqrt(np.bincount(np.repeat(np.arange(len(part)), counts), squares, len(part)))
        return self._lengths[rows]


def _by_vectors(vector: Vectors, vectors_of: Callable[[Rows], Vectors], rows: Rows, sample: Vectors) -> Scores:
    products = products_of(vector[None], vectors_of, np.zeros(len(rows), np.int64), rows).astype(np.float64)
    # not by BLAS, whose threads wait for one another longer than this takes
    return _standardised(products, np.einsum("ij,j->i", sample, vector).astype(np.float64))


def _standardised(values: Scores, sample: Scores) -> Scores:
    if len(sample) == 0:
        return values
    standardised: Scores = (values - float(sample.mean())) / (float(sample.std()) or 1.0)
    return standardised


# The subjects that a query names, and the question without them.
#
# "What is Japan's target?" becomes "What is the country's target?" before it is compared with passages, so that a name does not
# attract passages that merely repeat it.

_THE = re.compile(r"\bthe\s+$", re.IGNORECASE)


class NamedSubjects:
    """Finds the names of subjects in queries, as whole words, without case and accents; of overlapping ones the longest."""

    def __init__(self, names: Sequence[str], field: str) -> None:
        self._field = field.replace("_", " ")
        self._numbers: dict[tuple[str, ...], list[int]] = {}
        for number, name in enumerate(names):
            words = words_of(name)
            if 1 <= len(words) <= MOST_WORDS:
                self._numbers.setdefault(words, []).append(number)

    def read(self, query: str) -> tuple[str, Rows]:
        """Return the query with "the country" for each name of a country, and the numbers of the subjects named."""
        words, spans = words_of(query), spans_of(query)
        if len(words) != len(spans):  # normalisation splits or drops words; nothing can be replaced safely
            return query, np.zeros(0, np.int64)
        parts: list[str] = []
        subjects: set[int] = set()
        begin = at = 0
        while at < len(words):
            longest = min(MOST_WORDS, len(words) - at)
            length = next((n for n in range(longest, 0, -1) if words[at : at + n] in self._numbers), 0)
            if not length:
                at += 1
                continue
            subjects.update(self._numbers[words[at : at + length]])
            parts.append(_THE.sub("", query[begin : spans[at][0]]) + f"the {self._field}")
            begin = spans[at + length - 1][1]
            at += length
        return "".join([*parts, query[begin:]]), np.array(sorted(subjects), np.int64)


_DECIMALS = 6  # further digits are rounding noise, which must not break ties
_REACH = 2
_OF_NAMED = 100.0  # added to the scores of passages of a named subject; scores lie within some tens

Weight = Annotated[float, Field(ge=0, le=1000)]


class FeedbackRetriever(BaseRetriever):
    """Finds passages that resemble the query and its best first hits in the whole index.

    The score of a passage is its similarity to the query's vector, plus ``vector_weight`` times that to the mean vector of the
    passages fed back (Rocchio, 1971; with dense vectors Li et al., 2023, https://arxiv.org/abs/2108.11044), plus
    ``term_weight`` times that to their weightiest terms (as RM3 expands a query: Abdul-Jaleel et al., 2004), each standardised
    over a sample of the index; then ``neighbour_weight`` times the scores of its neighbours in its document.

    It is meant for questions that are asked of many subjects: of every country, company or drug. With ``subject``, names of
    subjects in a query are replaced by "the country" for comparing passages, and passages of a named subject come first.
    Feedback comes from the whole index, whatever the filter: the wording of other countries' plans on finance helps to find
    this one's. So a filter hides passages from results, but they still influence the order of the others; use separate indexes
    if one group of readers must not learn anything of another's passages, even indirectly.

    Args:
        seeds: the retrievers whose first hits are fed back, their scores min-max normalised and added; at least one of them
            must be faiss or pgvector; the vectors of the first of these are compared.
        subject: metadata field with the subject of a passage, such as "country".
        document: metadata field with the document of a passage.
        position: metadata field with a passage's place in its document, a number.
        passages: number of passages fed back.
        depth: of the seeds' lists that they are taken from.
        terms: number of their terms that count.
        vector_weight: weight of their mean vector, compared with 1 for the query's.
        term_weight: weight of their terms.
        neighbour_weight: weight of the passages next to one; those after them have half of it; 0 for none.
        pool: up to this many allowed passages are all compared; of more, those among the first hits of one of the searches.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([FeedbackRetriever(["bm25", "faiss"], passages=10)])
        Searcher(retrievers=[FeedbackRetriever(seeds=[Bm25Retriever(), FaissRetriever()], passages=10)])
    """

    name = "feedback"
    manifest_may_set = may_set(
        *("seeds", "subject", "document", "position", "passages", "depth", "terms", "vector_weight", "term_weight"),
        *("neighbour_weight", "pool", "merge"),
    )
    format_version = 3
    search_only = frozenset("seeds passages depth terms vector_weight term_weight neighbour_weight pool merge".split())

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
        pool: Annotated[int, Field(ge=1)] = 2000,
        merge: MergeRule = "alternate",
    ) -> None:
        self.seeds = labelled(resolve_components(self, FeedbackRetriever, seeds=seeds)["seeds"], "feedback: seeds")
        self.subject = subject
        self.document = document
        self.position = position
        self.passages = passages
        self.depth = depth
        self.terms = terms
        self.vector_weight = vector_weight
        self.term_weight = term_weight
        self.neighbour_weight = neighbour_weight
        self.pool = pool
        self.merge = merge
        if not any(isinstance(seed, VectorRetriever) for seed in self.seeds.values()):
            names = ", ".join(seed.name for seed in self.seeds.values())
            raise ConfigurationError(f"feedback: none of its seeds ({names}) has vectors to compare; add faiss or pgvector")

    def parts(self) -> list[BaseRetriever]:
        return list(self.seeds.values())

    def build(self, items: ItemTable, folder: Path) -> None:
        PassageTerms.of(items).write(folder)
        write_places(items, folder, self.subject, self.document, self.position)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        live = live_of(segments)
        self._rows = np.flatnonzero(live)
        self._places = PassagePlaces.open_all(segments, live)
        self._named = NamedSubjects(self._places.names, self.subject) if self.subject else None
        dense = next(seed for seed in self._opened_parts if isinstance(seed, VectorRetriever))
        self._dense = dense
        terms = PassageTerms.open_all(segments)
        self._similarities = Similarities(dense.vectors_of, dense.dimension, terms, self._places.subjects, live)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        lists: list[tuple[Rows, Scores]] = []
        signals: dict[str, list[Scores]] = {key: [] for key in ("query", "vector", "terms", "neighbours", "named")}
        for question in self._questions(queries):
            with stage(f"{self.name}.compare"):
                rows = self._candidates(question, k, allowed)
                columns = self._columns(question, rows)
                scores = sum(columns.values(), np.zeros(len(rows))).round(_DECIMALS)
                best, best_scores = top_k(rows, scores, k)
            lists.append((best, best_scores))
            places = np.searchsorted(rows, best)
            for key, column in columns.items():
                signals[key].append(column[places])
        joined = {key: np.concatenate([np.zeros(0), *parts]) for key, parts in signals.items()}
        return replace(Hits.from_lists(lists), signals=joined)

    def _questions(self, queries: list[str]) -> list[_Question]:
        none = np.zeros(0, np.int64)
        parsed = [(query, none) if self._named is None else self._named.read(query) for query in queries]
        texts = list(dict.fromkeys(text for text, _ in parsed))
        with stage(f"{self.name}.encode"):
            vectors = self._dense.encode(texts)
        with stage(f"{self.name}.seeds"):
            depth = min(self.depth, max(len(self._rows), 1))
            hits_of_seeds = [seed.find(texts, depth) for seed in self._opened_parts]
        questions = {}
        with stage(f"{self.name}.feedback"):
            for number, text in enumerate(texts):
                hits = [hits_of_seed.of(number) for hits_of_seed in hits_of_seeds]
                feedback = self._similarities.fed_back(_top_rows(hits, self.passages), self.terms)
                questions[text] = _Question(vectors[number], feedback, none, [rows for rows, _ in hits])
        return [questions[text]._replace(named=named) for text, named in parsed]

    def _candidates(self, question: _Question, k: int, allowed: Mask | None) -> Rows:
        """Rows to compare, ascending: all allowed rows if they are few."""
        rows = self._rows if allowed is None else np.flatnonzero(allowed)
        most = max(self.pool, k)
        if len(rows) <= most:
            return rows
        vectors = np.stack([question.vector, question.feedback.vector])
        hits = self._dense.search_vectors(vectors, most, allowed if allowed is not None else self._live)
        seed_rows = [part if allowed is None else part[allowed[part]] for part in question.seeds]
        named = rows[np.isin(self._places.subjects[rows], question.named)]
        return np.unique(np.concatenate([hits.rows, *seed_rows, named]))

    def _columns(self, question: _Question, rows: Rows) -> dict[str, Scores]:
        distances = [sign * distance for distance in range(1, _REACH + 1) for sign in (-1, 1)] if self.neighbour_weight else []
        around = {distance: self._places.neighbours(rows, distance) for distance in distances}
        wanted = np.unique(np.concatenate([rows, *around.values()]))
        wanted = wanted[wanted >= 0]
        by_query, by_vector, by_terms = self._similarities.of_rows(question.vector, question.feedback, wanted)
        parts = {"query": by_query, "vector": self.vector_weight * by_vector, "terms": self.term_weight * by_terms}
        totals = sum(parts.values(), np.zeros(len(wanted)))
        of_neighbours = np.zeros(len(rows))
        for distance, near in around.items():
            has_one = np.flatnonzero(near >= 0)
            of_one = totals[np.searchsorted(wanted, near[has_one])]
            of_neighbours[has_one] += self.neighbour_weight / abs(distance) * of_one
        places = np.searchsorted(wanted, rows)
        named: Scores = _OF_NAMED * np.isin(self._places.subjects[rows], question.named).astype(np.float64)
        return {key: column[places] for key, column in parts.items()} | {"neighbours": of_neighbours, "named": named}


class _Question(NamedTuple):
    """A query: its vector, its feedback, the subjects that it names, and the hits of each seed."""

    vector: Vectors
    feedback: Feedback
    named: Rows
    seeds: list[Rows]


def _top_rows(hits: list[tuple[Rows, Scores]], n: int) -> Rows:
    """The n rows with the highest sums of min-max normalised scores, best first; ties by row."""
    rows = np.concatenate([np.zeros(0, np.int64), *(best for best, _ in hits)])
    distinct, number = np.unique(rows, return_inverse=True)
    values = np.concatenate([np.zeros(0), *(scaled(scores) for _, scores in hits)])
    return top_k(distinct, np.bincount(number, values, len(distinct)).astype(np.float64), n)[0]
