"""The files of a bm25s index: memory-mapped postings, checked to fit together when they are opened.

They are checked beyond their checksums because compiled code follows the numbers in them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.columns import CURE, check_numbers, check_offsets, mapped
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.bm25_scoring import Postings

_VOCABULARY = "vocabulary.json"


def write_files(folder: Path, postings: Postings, vocabulary: list[str]) -> None:
    """Write an index as flat files that :func:`open_files` maps."""
    np.save(folder / "rows.npy", postings.rows, allow_pickle=False)
    np.save(folder / "frequencies.npy", postings.frequencies, allow_pickle=False)
    np.save(folder / "indptr.npy", postings.indptr, allow_pickle=False)
    np.save(folder / "lengths.npy", postings.lengths, allow_pickle=False)
    (folder / _VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")


def open_files(folder: Path) -> tuple[Postings, dict[str, int]]:
    """Open what :func:`write_files` wrote: the postings, and the numbers of their terms by stem.

    Raises:
        IndexDamagedError: a file is missing or holds something else, or the files contradict one another.
    """
    vocabulary = _read_vocabulary(folder / _VOCABULARY)
    rows: NDArray[np.int32] = mapped(folder / "rows.npy", np.int32)
    frequencies: NDArray[np.int32] = mapped(folder / "frequencies.npy", np.int32, rows.shape)
    indptr: NDArray[np.int64] = mapped(folder / "indptr.npy", np.int64, (len(vocabulary) + 1,))
    lengths: NDArray[np.int32] = mapped(folder / "lengths.npy", np.int32)
    check_offsets(folder / "indptr.npy", indptr, len(rows))
    check_numbers(folder / "rows.npy", rows, len(lengths))
    rising = np.ones(len(rows) + 1, np.bool_)
    rising[1:-1] = rows[1:] > rows[:-1]
    rising[indptr] = True  # where the next term begins
    if not rising.all():
        raise _damaged(folder / "rows.npy", "the rows of a term do not rise")
    if not (np.bincount(rows, frequencies, len(lengths)) == lengths).all():
        raise _damaged(folder, "frequencies.npy and lengths.npy contradict one another")
    return Postings(rows, frequencies, indptr, lengths), vocabulary


def _read_vocabulary(path: Path) -> dict[str, int]:
    try:
        terms = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms) or len(set(terms)) != len(terms):
        raise _damaged(path, "it does not hold distinct terms")
    return {term: number for number, term in enumerate(terms)}


def _damaged(path: Path, found: str) -> IndexDamagedError:
    return IndexDamagedError(f"{path} is damaged: {found}; {CURE}")
