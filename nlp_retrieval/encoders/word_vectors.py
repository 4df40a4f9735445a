"""Word vectors: read from files of word2vec or GloVe, or trained on a corpus, and averaged to the vectors of texts."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.checksums import sha256_of, state_of
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.files.json_text import read_json_file
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

# Files of word vectors: word2vec's text and binary forms, GloVe's text, and a folder of our own; none of them is code.
#
# gensim's own ``.model`` and ``.kv`` files are refused, because they are pickles, which can run code.

VECTORS_FILE, WORDS_FILE = "vectors.npy", "words.json"
_FORMAT = 1
_NO_STEMMER = "none"
_MOST_JSON = 1 << 28
_PICKLED = (".model", ".kv", ".pkl", ".pickle", ".bin.gz.model", ".wordvectors")
_PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")
_HEADER = re.compile(rb"(\d{1,9}) (\d{1,5})\r?\n")
_PICKLE = b"\x80"
_LINES, _LONGEST_LINE = 4096, 1 << 20
_EXPORT = "export it with gensim: vectors.save_word2vec_format('vectors.txt'), and name that file"


class Phrases:
    """Words that count as one, such as the long form of an abbreviation.

    Args:
        tokens: by the words of each phrase.
    """

    def __init__(self, tokens: Mapping[tuple[str, ...], str]) -> None:
        self.tokens = dict(tokens)
        self._lengths: dict[str, list[int]] = {}
        for words in sorted(self.tokens, key=lambda words: -len(words)):
            lengths = self._lengths.setdefault(words[0], [])
            if len(words) not in lengths:
                lengths.append(len(words))

    def join(self, words: list[str]) -> list[str]:
        """Return words with the longest phrases among them as one word each."""
        if not self._lengths:
            return words
        joined: list[str] = []
        place = 0
        while place < len(words):
            for length in self._lengths.get(words[place], ()):
                token = self.tokens.get(tuple(words[place : place + length]))
                if token is not None:
                    joined.append(token)
                    place += length
                    break
            else:
                joined.append(words[place])
                place += 1
        return joined


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Args:
        numbers: of the words, by word.
        vectors: ``[words, dimension]``.
        idf: ``[words]``, rarity of each word, above 0.
        stems: splits texts into these words; None: they are looked up as written, in lower case, and without accents.
        phrases: words that count as one; with ``stems``.
    """

    numbers: dict[str, int]
    vectors: NDArray[np.float32]
    idf: NDArray[np.float64]
    stems: Stems | None = None
    phrases: Phrases = field(default_factory=lambda: Phrases({}))

    def words(self, text: str) -> tuple[int, list[int]]:
        """Return the number of words of a text, and the numbers of those with a vector."""
        numbers = self.numbers
        if self.stems is not None:
            words = self.phrases.join(self.stems.words(text))
            return len(words), [numbers[word] for word in words if word in numbers]
        stems = stems_of_language(None)
        words = stems.as_written(text)
        found = (
            next((numbers[form] for form in (word, word.lower(), stems.stem(word)) if form in numbers), None) for word in words
        )
        return len(words), [number for number in found if number is not None]


def fingerprint_of(path: Path) -> str:
    """Return a checksum of the file, or of the files of the folder.

    Raises:
        ModelError: it is missing or unreadable.
    """
    try:
        files = [path / VECTORS_FILE, path / WORDS_FILE] if path.is_dir() else [path]
        return hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()
    except OSError as error:
        raise ModelError(f"there are no word vectors at {path} ({error.strerror}); name a file or a folder of them") from None


def read_word_vectors(path: Path) -> WordVectors:
    """Read word vectors.

    Args:
        path: a file of word2vec's text or binary form (``.bin``), of GloVe's text, or a folder that
            :func:`write_word_vectors` wrote.

    Raises:
        ModelError: it is missing, a pickle, compressed, damaged, or not a file of word vectors.
    """
    if path.is_dir():
        return _read_folder(path)
    suffix = path.suffix.lower()
    if suffix in _PICKLED or (path.is_file() and _first_byte(path) == _PICKLE):
        raise ModelError(f"{path} is a pickle, which could run any code when it is read; {_EXPORT}")
    if suffix in _PACKED:
        raise ModelError(f"{path} is compressed; decompress it first, so that its size is known")
    try:
        n_words, dimension = _header(path)
        words, vectors = _read_binary(path, n_words, dimension) if suffix == ".bin" else _read_text(path, n_words, dimension)
    except OSError as error:
        raise ModelError(f"there are no word vectors at {path} ({error.strerror or error})") from None
    except ValueError as error:
        raise ModelError(f"{path} is not a file of word vectors, or is damaged: {str(error)[:200]}") from None
    numbers: dict[str, int] = {}
    for number, word in enumerate(words):
        numbers.setdefault(word, number)
    return WordVectors(numbers, _finite(path, vectors), _idf_by_rank(len(vectors)))


def write_word_vectors(
    folder: Path,
    words: Sequence[str],
    vectors: NDArray[np.float32],
    idf: Sequence[float],
    stems: Stems | None = None,
    phrases: Mapping[tuple[str, ...], str] | None = None,
) -> None:
    """Write word vectors into a folder: the vectors as an array, the words as JSON with the checksum of the vectors.

    Args:
        folder: created if it is missing.
        words: distinct.
        vectors: ``[words, dimension]``.
        idf: ``[words]``, above 0.
        stems: that texts are split with into these words; None: words are looked up as written.
        phrases: words that count as one; with ``stems``.

    Raises:
        OutputError: it cannot be written.
    """
    array = io.BytesIO()
    np.save(array, np.ascontiguousarray(vectors, np.float32), allow_pickle=False)
    content = {
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
    cure = "train or export it again"
    try:
        content = read_json_file(folder / WORDS_FILE, max_bytes=_MOST_JSON)
        checksum = sha256_of(folder / VECTORS_FILE)
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} is not a folder of word vectors ({error}); {cure}") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ModelError(f"{folder / WORDS_FILE} is not of format {_FORMAT}; {cure}")
    words, idf, dimension = content.get("words"), content.get("idf"), content.get("dimension")
    if (
        not isinstance(words, list)
        or not isinstance(idf, list)
        or not isinstance(dimension, int)
        or not words
        or len(words) != len(idf)
        or not all(isinstance(word, str) for word in words)
        or not all(isinstance(value, int | float) and value > 0 for value in idf)
        or len(set(words)) != len(words)
    ):
        raise ModelError(f"{folder / WORDS_FILE} does not hold distinct words with an idf above 0 each; {cure}")
    if content.get("vectors") != checksum:
        raise ModelError(f"{folder / VECTORS_FILE} is not what {WORDS_FILE} was written with; {cure}")
    try:
        vectors = np.array(mapped(folder / VECTORS_FILE, np.float32, (len(words), dimension)))
    except IndexDamagedError as error:
        raise ModelError(str(error)) from None
    numbers = {word: number for number, word in enumerate(words)}
    return WordVectors(numbers, _finite(folder, vectors), np.array(idf, np.float64), *_splitting(folder, content))


def _splitting(folder: Path, content: Mapping[str, Any]) -> tuple[Stems | None, Phrases]:
    """Return how texts are split into the words of a folder."""
    if "stemmer" not in content:
        return None, Phrases({})
    stemmer, phrases = content["stemmer"], content.get("phrases", {})
    wrong = not isinstance(phrases, dict) or not all(isinstance(token, str) and key.split() for key, token in phrases.items())
    if wrong or not isinstance(stemmer, str):
        raise ModelError(f"{folder / WORDS_FILE} does not hold a stemmer and phrases; train it again")
    try:
        stems = stems_of_language(None if stemmer == _NO_STEMMER else stemmer)
    except ConfigurationError as error:
        raise ModelError(f"{folder / WORDS_FILE}: {error}; train it again") from None
    return stems, Phrases({tuple(key.split()): token for key, token in phrases.items()})


def _header(path: Path) -> tuple[int, int]:
    """The number of words and their dimension that a file begins with, 0 without; refuse one that is too short for them."""
    with path.open("rb") as file:
        header = _HEADER.match(file.readline(64))
        size = file.seek(0, 2)
    if header is None:
        if path.suffix.lower() == ".bin":
            raise ValueError("it does not begin with the number of its words and their dimension")
        return 0, 0
    n_words, dimension = int(header[1]), int(header[2])
    least = n_words * (1 + dimension * (4 if path.suffix.lower() == ".bin" else 2))
    if size < least or not n_words or not dimension:
        raise ValueError(f"it says that it holds {n_words:,} words of dimension {dimension}, and has only {size:,} bytes")
    return n_words, dimension


def _read_binary(path: Path, n_words: int, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """Read a word, a space and its numbers, as many times as the header says; a line may end after the numbers."""
    n_bytes = 4 * dimension
    words: list[str] = []
    vectors = np.empty((n_words, dimension), np.float32)
    content = b""
    with path.open("rb") as file:
        file.readline(64)
        start = 0
        for row in range(n_words):
            if (end := content.find(b" ", start)) < 0 or len(content) <= end + n_bytes:
                content, start = content[start:] + file.read(_LONGEST_LINE + n_bytes), 0
                end = content.find(b" ")
            if end < 0 or len(content) <= end + n_bytes:
                raise ValueError(f"it ends within word {row + 1:,} of {n_words:,}")
            words.append(content[start:end].lstrip(b"\n").decode("utf-8", "replace"))
            start = end + 1 + n_bytes
            vectors[row] = np.frombuffer(content, "<f4", dimension, end + 1)
    return words, vectors


def _read_text(path: Path, n_words: int, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """Read a line for each word: the word, and as many numbers as the header says or, without one, are on the first line."""
    has_header = n_words > 0
    words: list[str] = []
    parts: list[NDArray[np.float32]] = []
    with path.open("rb") as file:
        if has_header:
            file.readline(64)
        while lines := [line for line in islice(iter(lambda: file.readline(_LONGEST_LINE), b""), _LINES) if line.strip()]:
            dimension = dimension or len(lines[0].split()) - 1
            if dimension < 1:
                raise ValueError(f"no numbers follow the word on line {1 + has_header}")
            pieces = [line.rstrip().rsplit(b" ", dimension) for line in lines]
            wrong = next((number for number, piece in enumerate(pieces) if len(piece) != dimension + 1), None)
            if wrong is not None:
                raise ValueError(f"line {len(words) + wrong + 1 + has_header} has not {dimension} numbers")
            words += [piece[0].decode("utf-8", "replace") for piece in pieces]
            with np.errstate(over="ignore"):  # numbers beyond float32 are refused below, as infinity
                parts.append(np.array([piece[1:] for piece in pieces]).astype(np.float32))
    if not words:
        raise ValueError("it holds no word vectors")
    if n_words not in (0, len(words)):
        raise ValueError(f"it says that it holds {n_words:,} words, and holds {len(words):,}")
    return words, np.concatenate(parts)


def _first_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1)


def _finite(path: Path, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ModelError(f"{path}: the vector of word {row + 1} is not finite")
    return vectors


def _idf_by_rank(n_words: int) -> NDArray[np.float64]:
    """Return the rarity of words by their rank: files list frequent words first, and frequencies fall as 1 / rank (Zipf)."""
    ranks = np.arange(1, n_words + 1, dtype=np.float64)
    idf: NDArray[np.float64] = np.log(ranks * (1.0 / ranks).sum() + 1.0)
    return idf


# Word vectors trained on a corpus: word2vec's skip-gram with negative sampling, the same bytes for the same corpus.

_TRAINED_ON, _FEWEST_EPOCHS, _MOST_EPOCHS = 2_000_000, 5, 40
"""Words in all passes together, and bounds of their number."""


def train_word_vectors(
    items: Iterable[SearchableItem],
    folder: str | Path,
    *,
    dimension: int = 300,
    window: int = 5,
    epochs: int | None = None,
    min_count: int = 2,
    seed: int = 0,
    language: str | None = None,
) -> int:
    """Train word vectors on the texts of items (Mikolov et al., NeurIPS 2013) and write them into a folder.

    One thread, a fixed order and a fixed seed: the same corpus gives the same vectors on the same machine. Where a text defines
    an abbreviation, as "nationally determined contribution (NDC)", both forms are one word. The mean of all words is subtracted
    from each (Mu and Viswanath, ICLR 2018): it is most of what two texts of one corpus have in common.

    Args:
        items: the corpus; their words are held in memory.
        folder: to write to, for use by :class:`WordVectorEncoder`.
        dimension: of the vectors.
        window: words on each side that are predicted.
        epochs: passes over the corpus; None: 5 to 40, fewer over a longer one.
        min_count: rarer words get no vector.
        seed: of the initial vectors and the sampling.
        language: a Snowball language, such as ``english``, to train on stems, so that all forms of a word have its vector;
            None: on words.

    Returns:
        The number of words with a vector.

    Raises:
        ConfigurationError: a number is not positive, or there is no such language.
        ItemError: no word is frequent enough.
        OutputError: the folder cannot be written.
        DependencyError: gensim is not installed.

    Examples:
        >>> train_word_vectors(items, "vectors", dimension=8, min_count=1, epochs=1)
        20
        >>> encoder = WordVectorEncoder("vectors")
    """
    settings = {"dimension": dimension, "window": window, "epochs": 1 if epochs is None else epochs, "min_count": min_count}
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"train_word_vectors: {name}={value!r}; a whole number from 1 is needed")
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise DependencyError(f"training word vectors needs gensim: {install('word-vectors')}") from None
    stems = stems_of_language(language)
    texts, defined = [], Counter[tuple[str, str]]()
    for item in items:
        text = item.text
        texts.append(stems.words(text))
        defined.update(abbreviations_of(text))
    phrases = _phrases_of(defined, stems)
    joining = Phrases(phrases)
    texts = [joining.join(words) for words in texts]
    frequencies = Counter(word for words in texts for word in set(words))
    counts = Counter(word for words in texts for word in words)
    if not any(count >= min_count for count in counts.values()):
        raise ItemError(f"no word occurs {min_count} times or more in {len(texts):,} texts; nothing can be trained")
    n_words = sum(counts.values())
    trained = Word2Vec(
        sentences=list(_sentences(texts)),
        vector_size=dimension,
        window=window,
        epochs=min(max(_TRAINED_ON // n_words, _FEWEST_EPOCHS), _MOST_EPOCHS) if epochs is None else epochs,
        min_count=min_count,
        seed=seed,
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
    """Return the words of each defined long form, and the abbreviation that counts as the same word.

    Of several long forms of an abbreviation the most frequent counts. One that is written as a function word is left out.
    """
    counts = Counter[tuple[str, tuple[str, ...]]]()
    for (short, long), count in defined.items():
        counts[" ".join(stems.words(short)), tuple(stems.words(long))] += count
    phrases: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for (token, words), _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if token and " " not in token and token not in taken | FUNCTION_WORDS and len(words) > 1 and words not in phrases:
            taken.add(token)
            phrases[words] = token
            plural = stems.words(f"{token}s")
            if plural != [token]:  # such as "ndcs", whose s the stemmer keeps
                phrases[tuple(plural)] = token
    return phrases


def _sentences(texts: list[list[str]], longest: int = 5000) -> Iterator[list[str]]:
    """Split texts into pieces of at most 10,000 words; the trainer drops everything beyond."""
    for words in texts:
        for first in range(0, len(words), longest):
            yield words[first : first + longest]


# Vectors of texts as weighted means of the vectors of their words; rarer words count more.


@dataclass(frozen=True)
class VocabularyReport:
    """Coverage of some texts by a vocabulary.

    Args:
        words: number of words of the texts, including repeated ones.
        unknown: number of them without a vector.
        texts: number of texts with words.
        without: number of these texts without a known word, and so without a vector.
    """

    words: int
    unknown: int
    texts: int
    without: int


class WordVectorEncoder(BaseEncoder):
    """The mean of the vectors of a text's words, weighted by how rare they are, scaled to length 1.

    Words are looked up unchanged, in lower case, and without accents. Words without a vector are left out. A text without a
    known word gets a zero vector, with one warning: its inner product with any other is 0, and ``MultiSignalReranker`` treats
    it as missing. Weights are inverse document frequencies where the vectors were trained by ``train_word_vectors``; in other
    files, which list frequent words first, the rank of a word gives its rarity.

    Args:
        model: a file of word2vec's text or binary form, of GloVe's text, or a folder of ``train_word_vectors``.
        weighting: ``idf``, or ``none`` for the plain mean.

    Examples:
        >>> Searcher([FaissRetriever(WordVectorEncoder("glove.6B.100d.txt", weighting="none"))])
        Searcher(retrievers=[FaissRetriever(encoder=WordVectorEncoder(model='glove.6B.100d.txt', weighting='none'))])
    """

    name = "word_vectors"
    manifest_may_set = may_set("weighting", model=READS_FILE)

    def __init__(self, model: str | Path, weighting: Literal["idf", "none"] = "idf") -> None:
        self.model = model
        self.weighting = weighting
        self._vectors: WordVectors | None = None
        self._fingerprint: str | None = None
        self._opening = Lock()
        self._has_warned = False

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
        opened = self._opened()
        vectors = np.zeros((len(passages), opened.vectors.shape[1]), np.float32)
        without = []
        for row, text in enumerate(passages):
            words, known = opened.words(text)
            if known:
                chosen = np.array(known)
                weights = opened.idf[chosen] if self.weighting == "idf" else np.ones(len(chosen))
                mean = np.einsum("i,ij->j", weights, opened.vectors[chosen].astype(np.float64))
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

    def coverage(self, texts: Sequence[str]) -> VocabularyReport:
        """Return how many words of texts have a vector."""
        counts = [(words, len(known)) for words, known in map(self._opened().words, texts)]
        n_words, n_known = sum(words for words, _ in counts), sum(known for _, known in counts)
        spoken = [known for words, known in counts if words]
        return VocabularyReport(n_words, n_words - n_known, len(spoken), sum(known == 0 for known in spoken))

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
    """Return a value that changes whenever a file, or one in a folder, is written."""
    try:
        return [state_of(file.stat()) for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    except OSError as error:
        raise ModelError(f"there are no word vectors at {path} ({error.strerror}); name a file or a folder of them") from None
