"""Files of word vectors: word2vec's text and binary forms, GloVe's text, and a folder of our own; none of them is code.

gensim's own ``.model`` and ``.kv`` files are pickles, which run what they hold when they are read; they are refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.checksums import sha256_of
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.output import write_output
from nlp_retrieval.errors import IndexDamagedError, ModelError

__all__ = ["WordVectors", "fingerprint_of", "read_word_vectors", "write_word_vectors"]

VECTORS_FILE, WORDS_FILE = "vectors.npy", "words.json"
_FORMAT = 1
_MOST_JSON = 1 << 28
_PICKLED = (".model", ".kv", ".pkl", ".pickle", ".bin.gz.model", ".wordvectors")
_PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")
_HEADER = re.compile(rb"(\d{1,9}) (\d{1,5})\r?\n")
_PICKLE = b"\x80"
_LINES, _LONGEST_LINE = 4096, 1 << 20
_EXPORT = "export it with gensim: vectors.save_word2vec_format('vectors.txt'), and name that file"


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Args:
        numbers: of the words, by word.
        vectors: ``[words, dimension]``.
        idf: ``[words]``, how rare each word is; more for a rarer one, above 0.
    """

    numbers: dict[str, int]
    vectors: NDArray[np.float32]
    idf: NDArray[np.float64]


def fingerprint_of(path: Path) -> str:
    """Return a checksum of the file, or of the files of the folder.

    Raises:
        ModelError: there is none, or it cannot be read.
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
        ModelError: it is missing, a pickle, packed, damaged, or no such file.
    """
    if path.is_dir():
        return _read_folder(path)
    suffix = path.suffix.lower()
    if suffix in _PICKLED or (path.is_file() and _first_byte(path) == _PICKLE):
        raise ModelError(f"{path} is a pickle, which could run any code when it is read; {_EXPORT}")
    if suffix in _PACKED:
        raise ModelError(f"{path} is packed; unpack it first, so that its size is known before it is read")
    try:
        n_words, dimension = _header(path)
        words, vectors = _read_binary(path, n_words, dimension) if suffix == ".bin" else _read_text(path, n_words, dimension)
    except OSError as error:
        raise ModelError(f"there are no word vectors at {path} ({error.strerror or error})") from None
    except ValueError as error:
        raise ModelError(f"{path} is no file of word vectors, or is damaged: {str(error)[:200]}") from None
    numbers: dict[str, int] = {}
    for number, word in enumerate(words):
        numbers.setdefault(word, number)
    return WordVectors(numbers, _finite(path, vectors), _idf_by_rank(len(vectors)))


def write_word_vectors(folder: Path, words: Sequence[str], vectors: NDArray[np.float32], idf: Sequence[float]) -> None:
    """Write word vectors into a folder: the vectors as an array, the words as JSON with the checksum of the vectors.

    Args:
        folder: made if it is missing.
        words: distinct.
        vectors: ``[words, dimension]``.
        idf: ``[words]``, above 0.

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
    write_output(folder / VECTORS_FILE, array.getvalue())
    write_output(folder / WORDS_FILE, json.dumps(content, ensure_ascii=False).encode())


def _read_folder(folder: Path) -> WordVectors:
    cure = "train or export it again"
    try:
        content = read_json_file(folder / WORDS_FILE, max_bytes=_MOST_JSON)
        checksum = sha256_of(folder / VECTORS_FILE)
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} is no folder of word vectors ({error}); {cure}") from None
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
    return WordVectors(numbers, _finite(folder, vectors), np.array(idf, np.float64))


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
                raise ValueError(f"it ends before word {row + 1:,} of {n_words:,} does")
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
            wrong = next((place for place, piece in enumerate(pieces) if len(piece) != dimension + 1), None)
            if wrong is not None:
                raise ValueError(f"line {len(words) + wrong + 1 + has_header} has not {dimension} numbers")
            words += [piece[0].decode("utf-8", "replace") for piece in pieces]
            with np.errstate(over="ignore"):  # what is beyond float32 is refused below, as infinity
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
    """How rare words are, by their rank: files list frequent words first, and frequencies fall as 1 / rank (Zipf)."""
    ranks = np.arange(1, n_words + 1, dtype=np.float64)
    idf: NDArray[np.float64] = np.log(ranks * (1.0 / ranks).sum() + 1.0)
    return idf
