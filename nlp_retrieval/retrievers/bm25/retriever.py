"""BM25 without Java, over words of any language and an index that does not fix k1 and b.

The index stores term frequencies and document lengths; scores are computed when it is opened, by Lucene's definition (Kamphuis
et al., ECIR 2020, https://doi.org/10.1007/978-3-030-45442-5_4). So one index serves all values of k1 and b, and after an update
all segments are scored by the statistics of the items that are not deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows, Scores, entries_of, offsets_of, search_parts
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.retrievers.bm25.postings import PostingFiles, build_files, found_in, join_files, open_files
from nlp_retrieval.retrievers.bm25.scoring import Backend, Scorer, bm25_weights, inverse_frequencies, length_norms
from nlp_retrieval.text.words import Accents, Words, language_of

# All segments of an index have one set of statistics: the number of items, their average length, and the number of items that
# contain a term, without deleted items. Each query's terms are added up in their order in the query. So scores equal, to the
# last bit, those of an index built at once from the same items.


class _SegmentPart(NamedTuple):
    """A segment: its scorer, its rows in the index, and its own number of each shared term (None if they are the same)."""

    scorer: Scorer
    rows: slice
    numbers: NDArray[np.int32] | None


class SegmentedScorer:
    """Scores queries against several segments as if they were one."""

    def __init__(self, segments: Sequence[tuple[PostingFiles, Mask | None]], k1: float, b: float, backend: Backend) -> None:
        self.vocabulary = dict(segments[0][0].vocabulary)
        """Numbers of the terms of all segments; the terms of the first keep theirs."""
        self.numbers = [
            np.fromiter((self.vocabulary.setdefault(term, len(self.vocabulary)) for term in opened.vocabulary), np.int64)
            for opened, _ in segments
        ]
        """For each segment the shared numbers of its own terms."""
        n_containing = np.zeros(len(self.vocabulary), np.int64)
        n_items = total = 0
        for (opened, live), numbers in zip(segments, self.numbers, strict=True):
            n_containing[numbers] += found_in(opened.postings.rows, opened.postings.indptr, live)
            lengths = opened.postings.lengths if live is None else opened.postings.lengths[live]
            n_items += len(lengths)
            total += int(lengths.sum(dtype=np.int64))
        self.n_items, self.n_containing = n_items, n_containing
        frequencies = inverse_frequencies(n_containing, n_items)
        mean = max(total / max(n_items, 1), 1.0)
        self._parts: list[_SegmentPart] = []
        first = 0
        for (opened, _), numbers in zip(segments, self.numbers, strict=True):
            rows = slice(first, first + len(opened.postings.lengths))
            norms = length_norms(opened.postings.lengths, mean, k1, b)
            local = np.full(len(n_containing), len(numbers), np.int32)  # terms that the segment lacks: the one without postings
            local[numbers] = np.arange(len(numbers), dtype=np.int32)
            weights = bm25_weights(opened.postings, frequencies[numbers], norms)
            scorer = Scorer(opened.postings.rows, opened.postings.indptr, weights, len(opened.postings.lengths), backend)
            self._parts.append(_SegmentPart(scorer, rows, local if len(segments) > 1 else None))
            first = rows.stop

    def search(
        self, counts: NDArray[np.int32], terms: NDArray[np.int32], k: int, allowed: Mask | None, factors: Scores | None = None
    ) -> Hits:
        """Return the best k matching items per query; ties at the cut go to the lowest rows."""
        parts = [
            (rows, partial(scorer.search, counts, terms if numbers is None else numbers[terms], factors=factors))
            for scorer, rows, numbers in self._parts
        ]
        return search_parts(parts, len(counts), k, allowed)


# Queries expanded by pseudo-relevance feedback: RM3 as in Anserini.
#
# The first hits of a query are assumed to be relevant, and their weightiest terms are added to it. Terms are chosen and
# weighted by the statistics of all items that are not deleted, and ties go to the first in the alphabet; so an updated index
# expands a query like one built at once. Terms of one character, or of more than 20, are not added (in scripts that are split
# into pairs of characters, single ones add nothing).


_SHORTEST, _LONGEST = 2, 20
_COMMON = 0.1  # no term is added that a larger share of the items contains


class Expansion(NamedTuple):
    """How many first hits are fed back, how many of their terms join the query, and its own weight, 0 to 1."""

    documents: int
    terms: int
    original_weight: float


class Weighted(NamedTuple):
    """Distinct terms of a query, and the weight of each."""

    terms: NDArray[np.int32]
    weights: Scores


class QueryExpander:
    """Expands queries by the terms of passages of an opened index; holds 8 bytes for each posting."""

    def __init__(
        self, segments: Sequence[tuple[PostingFiles, Mask | None]], scorer: SegmentedScorer, expansion: Expansion
    ) -> None:
        self._expansion = expansion
        self._n_items, self._n_containing = scorer.n_items, scorer.n_containing
        postings = [opened.postings for opened, _ in segments]
        first_rows = offsets_of([len(one.lengths) for one in postings]).tolist()
        rows = np.concatenate([one.rows + first for one, first in zip(postings, first_rows, strict=False)])
        numbers = [own.astype(np.int32) for own in scorer.numbers]
        terms = [np.repeat(own, np.diff(one.indptr)) for one, own in zip(postings, numbers, strict=True)]
        order = np.argsort(rows, kind="stable")
        self._terms = np.concatenate(terms)[order]
        self._frequencies = np.concatenate([one.frequencies for one in postings])[order]
        self._offsets = offsets_of(np.bincount(rows, minlength=first_rows[-1]))
        names = list(scorer.vocabulary)
        self._ranked = np.array(sorted(range(len(names)), key=names.__getitem__), np.int32)
        self._ranks = np.empty(len(names), np.int64)
        self._ranks[self._ranked] = np.arange(len(names))
        lengths = np.fromiter(map(len, names), np.int64, len(names))
        self._may_join = (lengths >= _SHORTEST) & (lengths <= _LONGEST)

    def expand(self, terms: NDArray[np.int32], rows: Rows, scores: Scores) -> Weighted:
        """Return the terms of a query and of its first hits, weighted, in alphabetical order."""
        if len(rows) == 0:
            return Weighted(np.zeros(0, np.int32), np.zeros(0))
        entries, counts = entries_of(self._offsets, rows)
        documents = np.repeat(np.arange(len(rows)), counts)
        ranks, frequencies = self._ranks[self._terms[entries]], self._frequencies[entries].astype(np.float64)
        terms = terms[self._n_containing[terms] > 0]  # others may occur only in deleted items
        query_ranks, counts = np.unique(self._ranks[terms], return_counts=True)
        added, shares = self._relevance_model(documents, ranks, frequencies, scores)
        weights = shares * (1.0 - self._expansion.original_weight)
        query_weights = self._expansion.original_weight * counts / counts.sum()
        joined, places = np.unique(np.concatenate([query_ranks, added]), return_inverse=True)
        summed = _sums(places, np.concatenate([query_weights, weights]), len(joined))
        has_weight = summed > 0
        return Weighted(self._ranked[joined[has_weight]], summed[has_weight])

    def _relevance_model(self, documents: Rows, ranks: Rows, frequencies: Scores, scores: Scores) -> tuple[Rows, Scores]:
        """Each document's most frequent terms, by their share of these, weighted by its score."""
        numbers = self._ranked[ranks]
        eligible = self._may_join[numbers] & (self._n_containing[numbers] <= _COMMON * self._n_items)
        documents, ranks, frequencies = documents[eligible], ranks[eligible], frequencies[eligible]
        order = np.lexsort((ranks, -frequencies, documents))
        begins = offsets_of(np.bincount(documents, minlength=len(scores)))[documents]  # of a document, in this order
        order = order[np.arange(len(order)) - begins < self._expansion.terms]
        documents, ranks, frequencies = documents[order], ranks[order], frequencies[order]
        shares = frequencies / np.bincount(documents, frequencies, len(scores))[documents] * scores[documents]
        distinct, places = np.unique(ranks, return_inverse=True)
        weights = _sums(places, shares, len(distinct))
        best = np.lexsort((distinct, -weights))[: self._expansion.terms]
        return distinct[best], weights[best] / (weights[best].sum() or 1.0)


def _sums(places: Rows, values: Scores, n: int) -> Scores:
    return np.bincount(places, values, n).astype(np.float64, copy=False)


# Texts as the numbers of their terms.

_WORDS_REMEMBERED = 1_000_000
"""Distinct words of users that a long-lived process caches at most."""

_NO_TERM = -1


class Analyzer:
    """Turns passages, or queries to an index of them, into term numbers."""

    def __init__(self, words: Words, vocabulary: dict[str, int] | None = None) -> None:
        self._words = words
        self._of_passages = vocabulary is None
        self.vocabulary = {} if vocabulary is None else vocabulary
        self._number_of = _NumberOfWord(words, self.vocabulary, grow=self._of_passages).__getitem__

    def analyze(self, texts: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many terms each text has, and the numbers of all terms one after another."""
        lengths = np.zeros(len(texts), np.int64)
        numbers: list[int] = []
        for position, text in enumerate(texts):
            words = self._words.split(text, passage=self._of_passages)
            numbers += map(self._number_of, words)
            lengths[position] = len(words)
        terms = np.array(numbers, np.int32)
        is_term = terms != _NO_TERM
        owners = np.repeat(np.arange(len(texts)), lengths)[is_term]
        return np.bincount(owners, minlength=len(texts)).astype(np.int32), terms[is_term]


class _NumberOfWord(dict[str, int]):
    """The number of the term of each word, looked up when the word first occurs; -1 for a stop word or unknown term."""

    def __init__(self, words: Words, vocabulary: dict[str, int], *, grow: bool) -> None:
        super().__init__()
        self._words, self._vocabulary, self._grow = words, vocabulary, grow

    def __missing__(self, word: str) -> int:
        term = self._words.term(word)
        if term is None:
            number = _NO_TERM
        elif self._grow:
            number = self._vocabulary.setdefault(term, len(self._vocabulary))
        else:
            number = self._vocabulary.get(term, _NO_TERM)
        if len(self) < _WORDS_REMEMBERED:
            self[word] = number
        return number


_BATCH = 4096


class Bm25Retriever(BaseRetriever):
    """BM25 in pure Python and numpy; with numba installed, large batches are scored by compiled code.

    After updates, statistics cover all segments without deleted items. So scores always equal, to the last bit, those of an
    index built at once from the same items in the same order; joining segments only changes how long a search takes.

    Args:
        k1: saturation of term frequency; with a higher value, repetitions of a term count longer.
        b: penalty for long items, 0 to 1.
        language: brings stemmer and stop words: "en", "de", "zh", ..., or "any" for neither; see docs/LANGUAGES.md.
        stemmer: a Snowball stemmer of PyStemmer ("porter", "english", "german", ...), "none", or "auto" for the language's.
        stopwords: a stop word list of bm25 ("en" is Lucene's, "de", "fr", ...), None for no list, or "auto".
        pattern: an RE2 pattern of words, instead of runs of letters and digits. It is matched against the lower-cased text,
            between spaces. Needs the extra ``signals``.
        accents: "keep" them, or "fold" them, so that "cafe" finds "café".
        feedback: "rm3" to expand queries by the terms of their first hits, as Anserini does (Abdul-Jaleel et al., TREC 2004);
            None for no expansion. A filter applies to results, not to feedback.
        fb_docs: number of hits that are fed back.
        fb_terms: number of their terms added to the query.
        original_query_weight: weight of the query against these terms, 0 to 1.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
        backend: ``numpy``, ``numba``, or ``auto``: numba, once searching has taken longer than compiling would.

    Raises:
        ConfigurationError: the language is unknown, or the pattern does not compile.

    Examples:
        >>> searcher = Searcher([Bm25Retriever(k1=1.2, b=0.75, language="en")])
        >>> report = searcher.index(items, "index")
        >>> [hit.item.item_id for hit in searcher.search("hunting in snow")[0]]
        ['fox']
    """

    name = "bm25"
    manifest_may_set = may_set(
        *("k1", "b", "language", "stemmer", "stopwords", "pattern", "accents"),
        *("feedback", "fb_docs", "fb_terms", "original_query_weight", "merge", "backend"),
    )
    by_words = True
    format_version = 5
    search_only = frozenset({"k1", "b", "feedback", "fb_docs", "fb_terms", "original_query_weight", "merge", "backend"})

    _expander: QueryExpander | None = None

    def __init__(
        self,
        k1: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 0.9,
        b: Annotated[float, Field(ge=0, le=1)] = 0.4,
        language: str = "en",
        stemmer: str = "auto",
        stopwords: str | None = "auto",
        pattern: Annotated[str, Field(min_length=1)] | None = None,
        accents: Accents = "keep",
        feedback: Literal["rm3"] | None = None,
        fb_docs: Annotated[int, Field(ge=1, le=1000)] = 10,
        fb_terms: Annotated[int, Field(ge=1, le=10_000)] = 10,
        original_query_weight: Annotated[float, Field(ge=0, le=1)] = 0.5,
        merge: MergeRule = "alternate",
        backend: Backend = "auto",
    ) -> None:
        self.k1 = k1
        self.b = b
        self.language = language
        self.stemmer, self.stopwords = language_of(language, stemmer, stopwords)
        self.pattern = pattern
        self.accents: Accents = accents
        self.feedback = None if feedback is None else Expansion(fb_docs, fb_terms, original_query_weight)
        self.merge = merge
        self.backend: Backend = backend

    def index_identity(self) -> Config:
        """Settings that determine the index: a stemmer and stop words count the same, given or by the language."""
        return super().index_identity() | {"stemmer": self.stemmer, "stopwords": self.stopwords}

    def build(self, items: ItemTable, folder: Path) -> None:
        analyzer = Analyzer(self._words())
        batches = tracked("bm25: indexing", items.texts(_BATCH), len(items))
        analyzed = (analyzer.analyze(texts) for texts in batches)
        build_files(folder, analyzed, analyzer.vocabulary, len(items))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Merge the postings of segments into the same files that :meth:`build` would write."""
        del items
        join_files(folder, [(open_files(segment.folder, len(segment)), segment.live) for segment in segments])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        opened = [(open_files(segment.folder, len(segment)), segment.live) for segment in segments]
        self._scorer = SegmentedScorer(opened, self.k1, self.b, self.backend)
        self._analyzer = Analyzer(self._words(), self._scorer.vocabulary)
        if self.feedback is not None:
            self._expander = QueryExpander(opened, self._scorer, self.feedback)

    def ignored(self, query: str) -> str | None:
        """Return the reason why a query of stop words is ignored, and how to index them; None for other queries."""
        words = self._words()
        if self.stopwords is None or any(words.term(word) is not None for word in words.split(query)):
            return None
        return f"stop words alone, which an index with stopwords={self.stopwords!r} leaves out, and one with null keeps"

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        counts, terms = self._analyzer.analyze(queries)
        if self._expander is None or self.feedback is None:
            return self._scorer.search(counts, terms, k, allowed)
        expanded = self._expanded(self._expander, self.feedback, counts, terms)
        counts = np.array([len(query.terms) for query in expanded], np.int32)
        joined = np.concatenate([np.zeros(0, np.int32), *(query.terms for query in expanded)])
        factors = np.concatenate([np.zeros(0), *(query.weights for query in expanded)])
        return self._scorer.search(counts, joined, k, allowed, factors)

    def _expanded(
        self, expander: QueryExpander, feedback: Expansion, counts: NDArray[np.int32], terms: NDArray[np.int32]
    ) -> list[Weighted]:
        first = self._scorer.search(counts, terms, feedback.documents, self._live)
        of_query, of_hits = offsets_of(counts), first.offsets
        return [
            expander.expand(terms[begin:end], first.rows[start:stop], first.scores[start:stop])
            for begin, end, start, stop in zip(of_query, of_query[1:], of_hits, of_hits[1:], strict=False)
        ]

    def _words(self) -> Words:
        return Words(self.language, self.stemmer, self.stopwords, self.pattern, self.accents)
