"""Ids as columns of TREC files, which are separated by white space.

An id that holds white space or a control character is written as ``%:`` and the id with these percent-encoded: ``Hong Kong``
becomes ``%:Hong%20Kong``. Reading undoes it. All other ids are written as they are, also those with percent signs, such as
URLs, which must match published qrels; an id that itself begins with ``%:`` is encoded too, so every id is restored exactly.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

__all__ = ["ENCODED", "decode_id", "encode_id"]

ENCODED = "%:"
# A byte order mark is dropped by readers where it begins a file; a lone surrogate has no UTF-8.
_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")


def encode_id(name: str) -> str:
    """Return an id as one column; an empty id stays empty."""
    if not name.startswith(ENCODED) and not _UNSAFE.search(name):
        return name
    escaped = name.replace("%", "%25")
    return ENCODED + _UNSAFE.sub(lambda match: quote(match.group(), safe="", errors="surrogatepass"), escaped)


def decode_id(column: str) -> str:
    """Return the id in a column; empty if nothing follows ``%:``, and unchanged if that does not decode to text."""
    if not column.startswith(ENCODED):
        return column
    try:
        return unquote(column[len(ENCODED) :], errors="surrogatepass")
    except UnicodeDecodeError:  # another tool's id
        return column
