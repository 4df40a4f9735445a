"""Word vectors: read from files of word2vec or GloVe, or trained on a corpus, and averaged to the vectors of texts."""

from __future__ import annotations

import hashlib
import io
import json
import math
import mmap
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.files.opening import explain_file_limit, read_json_file, sha256_of
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    IndexDamagedError,
    ItemError,
    ModelError,
    RetrievalWarning,
    install,
)
from nlp_retrieval.text.abbreviations import abbreviations_of
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.words import Stems, stems_of_language

# Files of word vectors: word2vec's text and binary forms, GloVe's text, and a folder of our own. Pickles can run code.

VECTORS_FILE, WORDS_FILE = "vectors.npy", "words.json"
_FORMAT = 1
_NO_STEMMER = "none"
_MOST_JSON = 1 << 28
_HEADER = re.compile(rb"(\d{1,9})[ \t]+(\d{1,5})[ \t]*\r?\n")
_PICKLE = b"\x80"


class Phrases:
    """Words that count as one, such as the long form of an abbreviation."""

    def __init__(self, tokens: Mapping[tuple[str, ...], str]) -> None:
        self.tokens = tokens
        self._firsts = {words[0] for words in tokens}
        self._longest = max(map(len, tokens), default=0)

    def join(self, words: list[str]) -> list[str]:
        """Return words with the longest phrases among them as one word each."""
        result: list[str] = []
        place = 0
        while place < len(words):
            ends = range(place + self._longest, place, -1) if words[place] in self._firsts else ()
            phrase_here = next((phrase for end in ends if (phrase := tuple(words[place:end])) in self.tokens), None)
            result.append(words[place] if phrase_here is None else self.tokens[phrase_here])
            place += 1 if phrase_here is None else len(phrase_here)
        return result


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors."""

    numbers: dict[str, int]
    vectors: NDArray[np.float32]
    idf: NDArray[np.float64]
    stems: Stems | None = None
    """Splits texts into these words; without it they are looked up as written, in lower case, and without accents."""
    phrases: Phrases = field(default_factory=lambda: Phrases({}))

    def __post_init__(self) -> None:
        if not np.isfinite(self.vectors).all():
            raise ValueError("a vector is not finite")

    def words(self, text: str) -> tuple[int, list[int]]:
        """Return the number of words of a text, and the numbers of those with a vector."""
        numbers = self.numbers
        if self.stems is not None:
            words = self.phrases.join(self.stems.words(text))
            return len(words), [numbers[word] for word in words if word in numbers]
        stems = stems_of_language(None)
        words = stems.as_written(text)
        forms = (next((form for form in (word, word.lower(), stems.stem(word)) if form in numbers), None) for word in words)
        return len(words), [numbers[form] for form in forms if form is not None]


def read_word_vectors(path: Path) -> WordVectors:
    """Read a file of word2vec's text or binary form (``.bin``), of GloVe's text, or a folder of :func:`write_word_vectors`."""
    try:
        if path.is_dir():
            return _read_folder(path)
        with explain_file_limit(path), path.open("rb") as file:
            start = file.readline(64)
        if start.startswith(_PICKLE):
            raise ModelError(
                f"{path} is a pickle, which could run any code when it is read; export it with gensim: "
                "vectors.save_word2vec_format('vectors.txt'), and name that file"
            )
        words, vectors = _read_binary(path, start) if path.suffix == ".bin" else _read_text(path, start)
        numbers: dict[str, int] = {}
        for number, word in enumerate(words):
            numbers.setdefault(word, number)
        ranks = np.arange(1, len(words) + 1, dtype=np.float64)  # frequencies fall as 1 / rank (Zipf)
        return WordVectors(numbers, vectors, np.log(ranks * (1.0 / ranks).sum() + 1.0))
    except OSError as error:
        raise ModelError(f"there are no word vectors at {path} ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, AttributeError, ConfigurationError, IndexDamagedError) as error:
        raise ModelError(
            f"{path} is no whole file of word2vec or GloVe, and no folder of train_word_vectors: {str(error)[:200]}"
        ) from None


def write_word_vectors(
    folder: Path,
    words: Sequence[str],
    vectors: NDArray[np.float32],
    idf: Sequence[float],
    stems: Stems | None = None,
    phrases: Mapping[tuple[str, ...], str] | None = None,
) -> None:
    """Write word vectors into a folder: the vectors as an array, the words as JSON."""
    array = io.BytesIO()
    np.save(array, np.ascontiguousarray(vectors, np.float32), allow_pickle=False)
    content: dict[str, Any] = {
        "format": _FORMAT,
        "dimension": int(vectors.shape[1]),
        "vectors": hashlib.sha256(array.getvalue()).hexdigest(),
        "words": list(words),
        "idf": [float(value) for value in idf],
    }
    if stems is not None:
        content |= {"stemmer": stems.language or _NO_STEMMER}
        content |= {"phrases": {" ".join(key): token for key, token in sorted((phrases or {}).items())}}
    write_output(folder / VECTORS_FILE, array.getvalue())
    write_output(folder / WORDS_FILE, json.dumps(content, ensure_ascii=False).encode())


def _read_folder(folder: Path) -> WordVectors:
    content = read_json_file(folder / WORDS_FILE, max_bytes=_MOST_JSON)
    if content["format"] != _FORMAT:
        raise ValueError("it was made by another version; train it again")
    if content["vectors"] != sha256_of(folder / VECTORS_FILE):
        raise ValueError(f"{VECTORS_FILE} is not what {WORDS_FILE} was written with")
    idf = np.array(content["idf"], np.float64)
    numbers = {str(word): number for number, word in enumerate(content["words"])}
    vectors = np.array(mapped(folder / VECTORS_FILE, np.float32, (len(idf), content["dimension"])))
    if not len(numbers) == len(idf) > 0 or not ((idf > 0) & np.isfinite(idf)).all():
        raise ValueError(f"{WORDS_FILE} does not hold distinct words with an idf above 0 each")
    stemmer = content.get("stemmer")
    stems = None if stemmer is None else stems_of_language(None if stemmer == _NO_STEMMER else stemmer)
    phrases = {tuple(key.split()): str(token) for key, token in content.get("phrases", {}).items() if key.strip()}
    return WordVectors(numbers, vectors, idf, stems, Phrases(phrases))


def _read_binary(path: Path, start: bytes) -> tuple[list[str], NDArray[np.float32]]:
    """Read a word, a space and its numbers, as many times as the header says; a line may end after the numbers."""
    header = _HEADER.match(start)
    n_words, dimension = (int(header[1]), int(header[2])) if header else (0, 0)
    n_bytes, size = 4 * dimension, path.stat().st_size
    if size < n_words * (1 + n_bytes) or not n_words or not dimension:
        raise ValueError(f"it says that it holds {n_words:,} words of dimension {dimension}, and has only {size:,} bytes")
    words: list[str] = []
    vectors = np.empty((n_words, dimension), np.float32)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        place = len(start)
        for row in range(n_words):
            end = content.find(b" ", place)
            if end < 0 or size <= end + n_bytes:
                raise ValueError(f"it ends within word {row + 1:,} of {n_words:,}")
            words.append(content[place:end].lstrip(b"\n").decode("utf-8", "replace"))
            place = end + 1 + n_bytes
            vectors[row] = np.frombuffer(content[end + 1 : place], "<f4")
    return words, vectors


def _read_text(path: Path, start: bytes) -> tuple[list[str], NDArray[np.float32]]:
    """Read a line for each word: the word, and as many numbers as the header says or, without one, are on the first line."""
    header = _HEADER.match(start)
    dimension = int(header[2]) if header else 0
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    with path.open("rb") as file, np.errstate(over="ignore"):  # numbers beyond float32 are refused below, as infinity
        for number, line in enumerate(file, 1):
            if number == 1 and header:
                continue
            try:
                word, *parts = [b""] * line[:1].isspace() + line.rsplit(maxsplit=dimension or -1)  # a word may be a blank
                dimension = dimension or max(len(parts), 1)
                rows.append(np.array(list(map(float, parts)), np.float32).reshape(dimension))
            except ValueError:
                raise ValueError(f"line {number} has not {dimension} numbers after a word") from None
            words.append(word.decode("utf-8", "replace"))
    if not rows or (header and int(header[1]) != len(words)):
        raise ValueError(f"it says that it holds {int(header[1]) if header else 1:,} words, and holds {len(words):,}")
    return words, np.stack(rows)


# Word vectors trained on a corpus: word2vec's skip-gram with negative sampling, the same bytes for the same corpus.

_FEWEST = 2
_TRAINED_ON = 2_000_000
"""Words in all passes over the corpus together."""


def train_word_vectors(
    items: Iterable[SearchableItem], folder: str | Path, *, dimension: int = 300, language: str | None = None
) -> int:
    """Train word vectors on the texts of items (Mikolov et al., NeurIPS 2013) and write them into a folder.

    The same corpus gives the same vectors on the same machine. Where a text defines an abbreviation, as "nationally determined
    contribution (NDC)", both forms are one word. The mean of all words is subtracted from each (Mu and Viswanath, ICLR 2018):
    it is most of what two texts of one corpus have in common.

    Args:
        items: the corpus; their words are held in memory, and get a vector if they occur twice.
        folder: to write to, for use by :class:`WordVectorEncoder`.
        dimension: of the vectors.
        language: a Snowball language, such as ``english``, to train on stems, so that all forms of a word have its vector;
            None: on words.

    Returns:
        The number of words with a vector.

    Raises:
        ConfigurationError: ``dimension`` is not positive, or there is no such language.
        ItemError: no word occurs twice.
        OutputError: the folder cannot be written.
        DependencyError: gensim is not installed.

    Examples:
        >>> train_word_vectors(items, "vectors", dimension=8)
        4
        >>> encoder = WordVectorEncoder("vectors")
    """
    if dimension < 1:
        raise ConfigurationError(f"train_word_vectors: dimension={dimension!r}; it is at least 1")
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise DependencyError(f"training word vectors needs gensim: {install('word-vectors')}") from None
    stems = stems_of_language(language)
    texts, defined = [], Counter[tuple[str, str]]()
    for text in (item.text for item in items):
        texts.append(stems.words(text))
        defined.update(abbreviations_of(text))
    phrases = _phrases_of(defined, stems)
    texts = list(map(Phrases(phrases).join, texts))
    frequencies = Counter(word for words in texts for word in set(words))
    counts = Counter(word for words in texts for word in words)
    if max(counts.values(), default=0) < _FEWEST:
        raise ItemError(f"no word occurs {_FEWEST} times or more in {len(texts):,} texts; nothing can be trained")
    trained = Word2Vec(
        # the trainer drops what a text has beyond 10,000 words
        sentences=[words[first : first + 5000] for words in texts for first in range(0, len(words), 5000)],
        vector_size=dimension,
        window=5,
        epochs=min(max(_TRAINED_ON // sum(counts.values()), 5), 40),
        min_count=_FEWEST,
        seed=0,
        sg=1,
        workers=1,
        sorted_vocab=1,
    ).wv
    words = list(trained.index_to_key)
    vectors = np.asarray(trained.vectors, np.float64)
    shares = np.array([frequencies[word] for word in words], np.float64)
    centred = (vectors - shares / shares.sum() @ vectors).astype(np.float32)
    idf = [math.log((len(texts) + 1) / frequencies[word]) for word in words]
    write_word_vectors(Path(folder), words, centred, idf, stems, phrases)
    return len(words)


def _phrases_of(defined: Counter[tuple[str, str]], stems: Stems) -> dict[tuple[str, ...], str]:
    """Return the words of each defined long form, and the abbreviation that counts as the same word."""
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for (short, long), count in defined.items():
        counts[" ".join(stems.words(short)), tuple(stems.words(long))] += count
    phrases: dict[tuple[str, ...], str] = {}
    single: set[str] = set()
    for (token, words), _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if token and " " not in token and token not in single | FUNCTION_WORDS and len(words) > 1 and words not in phrases:
            single.add(token)
            phrases[words] = token
            plural = stems.words(f"{token}s")
            if plural != [token]:  # such as "ndcs", whose s the stemmer keeps
                phrases[tuple(plural)] = token
    return phrases


# Vectors of texts as weighted means of the vectors of their words; rarer words count more.


class WordVectorEncoder(BaseEncoder):
    """The mean of the vectors of a text's words, weighted by how rare they are, scaled to length 1.

    Words are looked up unchanged, in lower case, and without accents. A text without a known word gets a zero vector, with one
    warning. Weights are inverse document frequencies where ``train_word_vectors`` trained the vectors; in other files, which
    list frequent words first, the rank of a word gives its rarity.

    Args:
        model: a file of word2vec's text or binary form, of GloVe's text, or a folder of ``train_word_vectors``.

    Examples:
        >>> Searcher([FaissRetriever(WordVectorEncoder("glove.6B.100d.txt"))])
        Searcher(retrievers=[FaissRetriever(encoder=WordVectorEncoder(model='glove.6B.100d.txt'))])
    """

    name = "word_vectors"
    manifest_may_set = may_set(model=READS_FILE)

    def __init__(self, model: str | Path) -> None:
        self.model = model
        self._opening = Lock()
        self._has_warned = False

    @cached_property
    def _fingerprint(self) -> str:
        path = Path(self.model)
        try:
            files = [path / VECTORS_FILE, path / WORDS_FILE] if path.is_dir() else [path]
            return hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()
        except OSError as error:
            raise ModelError(f"there are no word vectors at {path} ({error.strerror})") from None

    @cached_property
    def _vectors(self) -> WordVectors:
        return read_word_vectors(Path(self.model))

    def model_fingerprint(self) -> str:
        """A checksum of the file or the folder."""
        return self._fingerprint

    def index_identity(self) -> Config:
        return super().index_identity() | {"model": Path(self.model).name}

    def provenance(self) -> dict[str, str]:
        return {str(self.model): "local"}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        with self._opening:  # cached_property has no lock from Python 3.12 on
            opened = self._vectors
        vectors = np.zeros((len(passages), opened.vectors.shape[1]), np.float32)
        without = []
        for row, text in enumerate(passages):
            words, known = opened.words(text)
            if known:
                chosen = np.array(known)
                mean = np.einsum("i,ij->j", opened.idf[chosen], opened.vectors[chosen].astype(np.float64))
                vectors[row] = mean / max(float(np.sqrt(mean @ mean)), 1e-30)
            elif words:
                without.append(text)
        if without and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self.name}: {len(without):,} of {len(passages):,} texts have no word with a vector, and so no vector "
                f"(the first: {without[0][:80]!r}); shown once",
                RetrievalWarning,
                stacklevel=2,
            )
        return vectors
