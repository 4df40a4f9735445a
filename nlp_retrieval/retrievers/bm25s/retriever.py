"""BM25 without Java: the scoring of bm25s, over words of any language and an index that does not fix k1 and b.

The index stores term frequencies and document lengths; scores are computed when it is opened, by Lucene's definition (Kamphuis
et al., ECIR 2020, https://doi.org/10.1007/978-3-030-45442-5_4). So one index serves all values of k1 and b, and after an update
all segments are scored by the statistics of the items that are not deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.backend import Backend
from nlp_retrieval.core.candidates import Hits, Mask, Rows, offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.explanation import Explanation, TermScore
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.retrievers.bm25s.build import build_files, join_files
from nlp_retrieval.retrievers.bm25s.expansion import Expansion, ExpansionRule, QueryExpander, Weighted
from nlp_retrieval.retrievers.bm25s.files import PostingFiles, open_files
from nlp_retrieval.retrievers.bm25s.segments import SegmentedScorer
from nlp_retrieval.text.words import Accents, Segmenter, Words, language_of, segmenter_fingerprint

# Texts as the numbers of their terms.

_WORDS_REMEMBERED = 1_000_000
"""Distinct words of users that a long-lived process caches at most."""

_NO_TERM = -1


class Analyzer:
    """Turns passages, or queries to an index of them, into term numbers.

    Args:
        words: splits texts, and maps words to terms.
        vocabulary: numbers by term, for queries; None for passages, whose terms make a vocabulary.
    """

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
_FED_BACK = {"rm3": 10, "bo1": 3}


class Bm25sRetriever(BaseRetriever):
    """BM25 in pure Python and numpy; with numba installed, large batches are scored by compiled code.

    After updates, statistics cover all segments without deleted items. So scores always equal, to the last bit, those of an
    index built at once from the same items in the same order; joining segments only changes how long a search takes.

    Args:
        k1: saturation of term frequency; with a higher value, repetitions of a term count longer.
        b: penalty for long items, 0 to 1.
        language: brings stemmer and stop words: "en", "de", "zh", ..., or "any" for neither; see docs/LANGUAGES.md.
        stemmer: a Snowball stemmer of PyStemmer ("porter", "english", "german", ...), "none", or "auto" for the language's.
        stopwords: a stop word list of bm25s ("en" is Lucene's, "de", "fr", ...), None for no list, or "auto".
        pattern: an RE2 pattern of words, instead of runs of letters and digits. It is matched against the lower-cased text,
            between spaces. Needs the extra ``signals``.
        accents: "keep" them, or "fold" them, so that "cafe" finds "café".
        segmenter: "jieba" splits Chinese by its dictionary (jieba-rs), None into pairs of characters. Not with a pattern. Needs
            the extra ``chinese``.
        feedback: expand queries by the terms of their first hits: "rm3" as in Anserini (Abdul-Jaleel et al., TREC 2004), or
            "bo1" as in Terrier (Amati, 2003); None for no expansion. A filter applies to results, not to feedback.
        fb_docs: number of hits that are fed back; by default 10 for "rm3" and 3 for "bo1".
        fb_terms: number of their terms added to the query.
        original_query_weight: for "rm3", weight of the query against these terms, 0 to 1.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
        backend: ``numpy``, ``numba``, or ``auto``: numba, once searching has taken longer than compiling would.

    Raises:
        ConfigurationError: the language is unknown, or pattern and segmenter are both given.
    """

    name = "bm25s"
    manifest_may_set = may_set(
        *("k1", "b", "language", "stemmer", "stopwords", "pattern", "accents", "segmenter"),
        *("feedback", "fb_docs", "fb_terms", "original_query_weight", "merge", "backend"),
    )
    by_words = True
    format_version = 4
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
        segmenter: Segmenter | None = None,
        feedback: ExpansionRule | None = None,
        fb_docs: Annotated[int, Field(ge=1, le=1000)] | None = None,
        fb_terms: Annotated[int, Field(ge=1, le=10_000)] = 10,
        original_query_weight: Annotated[float, Field(ge=0, le=1)] = 0.5,
        merge: MergeRule = "alternate",
        backend: Backend = "auto",
    ) -> None:
        if segmenter is not None and pattern is not None:
            raise ConfigurationError("Bm25sRetriever: pattern and segmenter both say what a word is; pass one of them")
        self.k1 = k1
        self.b = b
        self.language = language
        self.stemmer, self.stopwords = language_of(language, stemmer, stopwords)
        self.pattern = pattern
        self.accents: Accents = accents
        self.segmenter: Segmenter | None = segmenter
        self.feedback = (
            None if feedback is None else Expansion(feedback, fb_docs or _FED_BACK[feedback], fb_terms, original_query_weight)
        )
        self.merge = merge
        self.backend: Backend = backend

    def index_identity(self) -> Config:
        """Settings that determine the index: a stemmer and stop words count the same, given or by the language."""
        identity = super().index_identity() | {"stemmer": self.stemmer, "stopwords": self.stopwords}
        del identity["segmenter"]
        return identity if self.segmenter is None else identity | {"segmenter": segmenter_fingerprint(self.segmenter)}

    def build(self, items: ItemTable, folder: Path) -> None:
        analyzer = Analyzer(self._words())
        batches = tracked("bm25s: indexing", items.texts(_BATCH), len(items))
        analyzed = (analyzer.analyze(texts) for texts in batches)
        build_files(folder, analyzed, analyzer.vocabulary, len(items))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Merge the postings of segments into the same files that :meth:`build` would write."""
        del items
        join_files(folder, [(open_files(segment.folder, len(segment)), segment.live) for segment in segments])

    def load(self, folder: Path) -> None:
        self._open([(open_files(folder), None)])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._open([(open_files(segment.folder, len(segment)), segment.live) for segment in segments])

    def _open(self, segments: Sequence[tuple[PostingFiles, Mask | None]]) -> None:
        self._scorer = SegmentedScorer(segments, self.k1, self.b, self.backend)
        self._analyzer = Analyzer(self._words(), self._scorer.vocabulary)
        if self.feedback is not None:
            self._expander = QueryExpander(segments, self._scorer, self.feedback)

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

    @property
    def explains(self) -> bool:
        """Return whether an explanation has more than the query words of a passage."""
        return self.feedback is not None

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        """Explain which terms feedback added to a query, with what weight, and what each adds to the score of an item."""
        if self._expander is None or self.feedback is None:
            return [None] * len(rows)
        ((terms, weights, fed_back),) = self._expanded(self._expander, self.feedback, *self._analyzer.analyze([query]))
        names = list(self._scorer.vocabulary)
        told: list[Explanation | None] = []
        for item, row in zip(items.items(rows), rows.tolist(), strict=True):
            held = self._scorer.weights_in(row, terms)
            parts = zip(terms.tolist(), weights.tolist(), held.tolist(), fed_back.tolist(), strict=True)
            told.append(Explanation.by_terms(self.name, item, [TermScore(names[term], *rest) for term, *rest in parts]))
        return told

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
        return Words(self.language, self.stemmer, self.stopwords, self.pattern, self.accents, self.segmenter)
