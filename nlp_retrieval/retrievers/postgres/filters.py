"""Filters pushed down to the server: the rows of a table that a search may find, as a list of few rows or one bit per row.

Both are exact: the server never cuts a list before the filter is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nlp_retrieval.core.candidates import Mask

if TYPE_CHECKING:
    from psycopg.sql import SQL

FEW = 20_000
"""Most rows that are listed, and fetched by the index of the rows."""


def condition_of(allowed: Mask | None) -> tuple[SQL, dict[str, Any]]:
    """A condition on the column ``row``, and its parameters.

    Args:
        allowed: ``[rows of the table]``; None for all.
    """
    from psycopg.sql import SQL

    if allowed is None:
        return SQL("true"), {}
    rows = np.flatnonzero(allowed)
    if len(rows) <= FEW:
        return SQL("row = ANY(%(rows)s::integer[])"), {"rows": "{" + ",".join(map(str, rows.tolist())) + "}"}
    return SQL("get_bit(%(mask)s::bytea, row) = 1"), {"mask": np.packbits(allowed, bitorder="little").tobytes()}
