"""BM25 without Java: the tokenisation and the scoring of bm25s, over an index that does not fix k1 and b.

The index stores term frequencies and document lengths; scores are computed when it is opened, as Lucene defines them
(Kamphuis et al., ECIR 2020, https://doi.org/10.1007/978-3-030-45442-5_4). So one index serves all values of k1 and b, and
after an update all segments are scored by the statistics of the items that are not deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.backend import Backend
from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.progress import tracked
from nlp_retrieval.core.search.merge import MergeRule
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.retrievers.bm25s.build import build_files, join_files
from nlp_retrieval.retrievers.bm25s.files import PostingFiles, open_files
from nlp_retrieval.retrievers.bm25s.segments import SegmentedScorer

_BATCH = 4096
_NO_STEMMER = "none"
_STOPWORD_LISTS = ("en", "en_plus", "de", "nl", "fr", "es", "pt", "it", "ru", "sv", "no", "zh", "tr")


class Bm25sRetriever(BaseRetriever):
    """BM25 in pure Python and numpy; with numba installed, large batches are scored by compiled code.

    After updates, statistics cover all segments without deleted items. So scores always equal, to the last bit, those of an
    index built at once from the same items in the same order; joining segments only changes how long a search takes.

    Args:
        k1: how slowly repetitions of a term stop adding to the score.
        b: how much long items are penalised, 0 to 1.
        stemmer: a Snowball stemmer of PyStemmer ("porter", "english", "german", ...), or "none".
        stopwords: a stop word list of bm25s ("en" is Lucene's, "de", "fr", ...), or None for no list.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
        backend: ``numpy``, ``numba``, or ``auto``: numba, once searching has taken longer than compiling would.
    """

    name = "bm25s"
    format_version = 2
    search_only = frozenset({"k1", "b", "merge", "backend"})

    def __init__(
        self,
        k1: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 0.9,
        b: Annotated[float, Field(ge=0, le=1)] = 0.4,
        stemmer: str = "porter",
        stopwords: str | None = "en",
        merge: MergeRule = "alternate",
        backend: Backend = "auto",
    ) -> None:
        self.k1 = k1
        self.b = b
        self.stemmer = stemmer
        self.stopwords = stopwords
        self.merge = merge
        self.backend: Backend = backend

    def build(self, items: ItemTable, folder: Path) -> None:
        analyzer = Analyzer(self.stemmer, self.stopwords)
        batches = tracked("bm25s: indexing", items.texts(_BATCH), len(items))
        analyzed = (analyzer.analyze(texts, grow=True) for texts in batches)
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
        self._analyzer = Analyzer(self.stemmer, self.stopwords, self._scorer.vocabulary)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        counts, terms = self._analyzer.analyze(queries, grow=False)
        return self._scorer.search(counts, terms, k, allowed)


class Analyzer:
    """Turns text into term numbers: lower case, words of at least two characters, no stop words, stemmed.

    Args:
        stemmer: see :class:`Bm25sRetriever`.
        stopwords: see :class:`Bm25sRetriever`.
        vocabulary: term numbers by stem.

    Raises:
        ConfigurationError: there is no such stemmer or stop word list.
    """

    def __init__(self, stemmer: str, stopwords: str | None, vocabulary: dict[str, int] | None = None) -> None:
        import Stemmer
        from bm25s.tokenization import Tokenizer

        known = [*Stemmer.algorithms(), _NO_STEMMER]
        if stemmer not in known:
            raise ConfigurationError(f"bm25s: there is no stemmer {stemmer!r}; {nearest(stemmer, known)}")
        try:
            self._tokenizer = Tokenizer(stopwords=stopwords if stopwords is not None else [])
        except ValueError:
            raise ConfigurationError(f"bm25s: stopwords={stopwords!r}: {nearest(str(stopwords), _STOPWORD_LISTS)}") from None
        self._stop = frozenset(self._tokenizer.stopwords)
        self._stem = Stemmer.Stemmer(stemmer).stemWord if stemmer != _NO_STEMMER else str
        self.vocabulary = vocabulary if vocabulary is not None else {}
        self._of_word: dict[str, int] = {}

    def analyze(self, texts: list[str], *, grow: bool) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many terms each text has, and the numbers of all terms one after another.

        Args:
            texts: what to analyse.
            grow: whether terms that are not in the vocabulary are added to it, or skipped.
        """
        counts = np.zeros(len(texts), np.int32)
        numbers: list[int] = []
        known, split = self._of_word, self._tokenizer.splitter
        for position, text in enumerate(texts):
            before = len(numbers)
            for word in split(text.lower()):
                number = known.get(word)
                if number is None:
                    number = self._number_of(word, grow)
                if number >= 0:
                    numbers.append(number)
            counts[position] = len(numbers) - before
        return counts, np.array(numbers, np.int32)

    def _number_of(self, word: str, grow: bool) -> int:
        if word in self._stop:
            number = -1
        else:
            stem = self._stem(word)
            number = self.vocabulary.setdefault(stem, len(self.vocabulary)) if grow else self.vocabulary.get(stem, -1)
        if len(self._of_word) < _WORDS_REMEMBERED:
            self._of_word[word] = number
        return number


_WORDS_REMEMBERED = 1_000_000
"""How many distinct words of users a long-lived process caches at most."""
