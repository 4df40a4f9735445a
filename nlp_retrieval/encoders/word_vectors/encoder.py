"""Vectors of texts as the mean of the vectors of their words, the rarer ones counting more."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.checksums import state_of
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.word_vectors.files import WordVectors, fingerprint_of, read_word_vectors
from nlp_retrieval.errors import ModelError, RetrievalWarning
from nlp_retrieval.text.stems import Stems, stems_of_language

__all__ = ["VocabularyReport", "WordVectorEncoder"]


@dataclass(frozen=True)
class VocabularyReport:
    """How much of some texts a vocabulary knows.

    Args:
        words: of the texts, repeated ones too.
        unknown: how many of them have no vector.
        texts: how many texts have words.
        without: how many of these have no word with a vector, and so no vector themselves.
    """

    words: int
    unknown: int
    texts: int
    without: int


class WordVectorEncoder(BaseEncoder):
    """The mean of the vectors of a text's words, weighted by how rare they are, scaled to length 1.

    Words are looked up as they stand, in lower case, and without accents. Words without a vector are left out. A text that has
    no word with a vector gets a vector of zeros: its inner product with any other is 0, ``MultiSignalReranker`` takes it for no
    vector at all, and a warning says so once. Weights are inverse document frequencies where the vectors were trained by
    ``train_word_vectors``; other files list frequent words first, and then the rank of a word tells how rare it is.

    Args:
        model: a file of word2vec's text or binary form, of GloVe's text, or a folder of ``train_word_vectors``.
        weighting: ``idf``, or ``none`` for the plain mean.
    """

    name = "word_vectors"
    manifest_may_set = may_set("weighting", model=READS_FILE)

    def __init__(self, model: str | Path, weighting: Literal["idf", "none"] = "idf") -> None:
        self.model = model
        self.weighting = weighting
        self._vectors: WordVectors | None = None
        self._fingerprint: str | None = None
        self._opening = Lock()
        self._told = False

    def model_fingerprint(self) -> str:
        """A checksum of the file or the folder."""
        with self._opening:
            return self._identified()

    def index_identity(self) -> Config:
        return super().index_identity() | {"model": Path(self.model).name}

    def provenance(self) -> dict[str, str]:
        return {str(self.model): "local"}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        opened, stems = self._opened(), stems_of_language(None)
        vectors = np.zeros((len(passages), opened.vectors.shape[1]), np.float32)
        without = []
        for row, text in enumerate(passages):
            words, known = self._known(text, opened, stems)
            if known:
                chosen = np.array(known)
                weights = opened.idf[chosen] if self.weighting == "idf" else np.ones(len(chosen))
                mean = np.einsum("i,ij->j", weights, opened.vectors[chosen].astype(np.float64))
                vectors[row] = mean / max(float(np.sqrt(mean @ mean)), 1e-30)
            elif words:
                without.append(text)
        if without and not self._told:
            self._told = True
            warnings.warn(
                f"{self.name}: {len(without):,} of {len(passages):,} texts have no word with a vector, and so no vector "
                f"(the first: {without[0][:80]!r}); this is said once",
                RetrievalWarning,
                stacklevel=2,
            )
        return vectors

    def coverage(self, texts: Sequence[str]) -> VocabularyReport:
        """Return how many words of texts have a vector."""
        opened, stems = self._opened(), stems_of_language(None)
        counts = [(words, len(known)) for words, known in (self._known(text, opened, stems) for text in texts)]
        n_words, n_known = sum(words for words, _ in counts), sum(known for _, known in counts)
        spoken = [known for words, known in counts if words]
        return VocabularyReport(n_words, n_words - n_known, len(spoken), sum(known == 0 for known in spoken))

    def _known(self, text: str, opened: WordVectors, stems: Stems) -> tuple[int, list[int]]:
        """How many words a text has, and the numbers of those with a vector."""
        numbers = opened.numbers
        words = stems.as_written(text)
        found = []
        for word in words:
            number = numbers.get(word)
            if number is None:
                number = numbers.get(word.lower())
            if number is None:
                number = numbers.get(stems.stem(word))
            if number is not None:
                found.append(number)
        return len(words), found

    def _opened(self) -> WordVectors:
        with self._opening:
            if self._vectors is None:
                path, fingerprint = Path(self.model), self._identified()
                before = _states(path)
                vectors = read_word_vectors(path)
                if _states(path) != before or fingerprint_of(path) != fingerprint:
                    raise ModelError(f"{self.model} changed while it was read; make the encoder again")
                self._vectors = vectors
            return self._vectors

    def _identified(self) -> str:
        if self._fingerprint is None:
            self._fingerprint = fingerprint_of(Path(self.model))
        return self._fingerprint


def _states(path: Path) -> list[tuple[int, ...]]:
    """What changes whenever a file, or one in a folder, is written."""
    try:
        return [state_of(file.stat()) for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    except OSError as error:
        raise ModelError(f"there are no word vectors at {path} ({error.strerror}); name a file or a folder of them") from None
