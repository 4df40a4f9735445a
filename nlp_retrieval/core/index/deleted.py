"""The rows of deleted items: one file of row numbers, rewritten by every change."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.files.columns import damaged, mapped

_FILE = "rows.npy"


def write_deleted(folder: Path, rows: Rows) -> None:
    """Write rows, ascending, into an empty folder."""
    np.save(folder / _FILE, rows.astype(np.int64), allow_pickle=False)


def read_deleted(folder: Path, n_rows: int) -> Rows:
    """Return the rows that :func:`write_deleted` wrote.

    Args:
        folder: a folder whose files have been checked.
        n_rows: how many rows the index has.

    Raises:
        IndexDamagedError: they are not ascending rows of this index.
    """
    path = folder / _FILE
    rows: Rows = mapped(path, np.int64)
    if len(rows) == 0 or rows[0] < 0 or rows[-1] >= n_rows or (np.diff(rows) <= 0).any():
        raise damaged(path, f"it does not hold ascending rows below {n_rows:,}")
    return rows
