"""Checksums of rows, computed here and by the server alike, so that neither has to trust the other.

A row's part is 64 bits of the MD5 of its number and its value, as a signed integer; the checksum is the sum of these, which
needs no order and no memory. It detects accidents and mix-ups, but not a forger: anyone who may write to the server decides
what is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def row_sum(row: int, value: bytes) -> int:
    """Return a row's part of a checksum."""
    outer = hashlib.md5(b"%d:%s" % (row, hashlib.md5(value, usedforsecurity=False).hexdigest().encode()), usedforsecurity=False)
    return int.from_bytes(outer.digest()[:8], "big", signed=True)


def ids_sum(ids: Iterable[str]) -> str:
    """The checksum of ids in the order of their rows, from 0."""
    return str(sum(row_sum(row, stored_id(item_id).encode()) for row, item_id in enumerate(ids)))


def stored_id(item_id: str) -> str:
    """An id in a form that any server can hold: PostgreSQL's texts have no NUL."""
    return item_id.replace("\0", "\N{REPLACEMENT CHARACTER}")
