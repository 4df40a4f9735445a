"""The files of a bm25s index: memory-mapped postings, checked to fit together when they are opened.

Checks go beyond checksums, because compiled code uses the numbers as indices.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.columns import CURE, Stream, check_numbers, check_offsets, damaged, mapped
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.bm25s.scoring import Postings

ROWS = "rows.npy"
FREQUENCIES = "frequencies.npy"
INDPTR = "indptr.npy"
_LENGTHS = "lengths.npy"
_VOCABULARY = "vocabulary.json"
_POSTINGS_AT_ONCE = 2**20


class PostingFiles(NamedTuple):
    """The opened files: the postings, and the numbers of their terms by stem, in the alphabetical order of the stems."""

    postings: Postings
    vocabulary: dict[str, int]


def write_terms(folder: Path, indptr: NDArray[np.int64], lengths: NDArray[np.int32], vocabulary: list[str]) -> None:
    """Write the files other than the postings.

    Args:
        folder: holds ``rows.npy`` and ``frequencies.npy``.
        indptr: see :class:`~nlp_retrieval.retrievers.bm25s.scoring.Postings`.
        lengths: the same.
        vocabulary: the terms, in alphabetical order.
    """
    for name, column in ((INDPTR, indptr), (_LENGTHS, lengths)):
        with Stream(folder / name, column.dtype) as stream:
            stream.write(column)
    (folder / _VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")


def open_files(folder: Path, n_items: int | None = None) -> PostingFiles:
    """Open an index.

    Args:
        folder: folder of its files.
        n_items: how many items it must have; None for any number.

    Raises:
        IndexDamagedError: a file is missing or holds something else, or the files contradict one another.
    """
    vocabulary = _read_vocabulary(folder / _VOCABULARY)
    rows: NDArray[np.int32] = mapped(folder / ROWS, np.int32)
    frequencies: NDArray[np.int32] = mapped(folder / FREQUENCIES, np.int32, rows.shape)
    indptr: NDArray[np.int64] = mapped(folder / INDPTR, np.int64, (len(vocabulary) + 1,))
    lengths: NDArray[np.int32] = mapped(folder / _LENGTHS, np.int32, (n_items,))
    check_postings(folder, rows, indptr, len(lengths))
    if len(frequencies) and frequencies.min() < 1:
        raise damaged(folder / FREQUENCIES, f"a term occurs {frequencies.min()} times in an item")
    counted = np.zeros(len(lengths))
    for begin, end in pairwise([*range(0, len(rows), _POSTINGS_AT_ONCE), len(rows)]):
        counted += np.bincount(rows[begin:end], frequencies[begin:end], len(lengths))
    if not (counted == lengths).all():
        raise damaged(folder, f"{FREQUENCIES} and {_LENGTHS} contradict one another")
    return PostingFiles(Postings(rows, frequencies, indptr, lengths), vocabulary)


def check_postings(folder: Path, rows: NDArray[np.int32], indptr: NDArray[np.int64], n_items: int) -> None:
    """Check that postings can be searched: the terms follow one another, and their rows ascend.

    Args:
        folder: folder of the files.
        rows: see :class:`~nlp_retrieval.retrievers.bm25s.scoring.Postings`.
        indptr: the same.
        n_items: how many items there are.

    Raises:
        IndexDamagedError: they cannot.
    """
    check_offsets(folder / INDPTR, indptr, len(rows))
    check_numbers(folder / ROWS, rows, n_items)
    rising = np.ones(len(rows) + 1, np.bool_)
    np.greater(rows[1:], rows[:-1], out=rising[1:-1])
    rising[indptr] = True  # where the next term begins
    if not rising.all():
        raise damaged(folder / ROWS, "the rows of a term do not ascend")


def _read_vocabulary(path: Path) -> dict[str, int]:
    try:
        terms = read_json_file(path)
    except (OSError, ValueError) as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise damaged(path, "it is not a list of terms")
    if not all(term < following for term, following in pairwise(terms)):
        raise damaged(path, "its terms do not ascend")
    return {term: number for number, term in enumerate(terms)}
