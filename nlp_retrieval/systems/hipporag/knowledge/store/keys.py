"""Keys of rows: fingerprints of their content."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import blake2b

__all__ = ["KEY_LENGTH", "in_parts", "key_of"]

KEY_LENGTH = 32
"""Hexadecimal digits of a key."""


def key_of(*parts: str) -> str:
    """Return the key of these parts together."""
    digest = blake2b(digest_size=KEY_LENGTH // 2)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def in_parts(keys: Collection[str]) -> Iterator[list[str]]:
    """Yield sorted keys in lists that a query may hold; some databases take no more than 1,000 values."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), _IN_ONE_QUERY):
        yield ordered[start : start + _IN_ONE_QUERY]


_IN_ONE_QUERY = 500
