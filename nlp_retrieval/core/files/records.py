"""Turning raw records of any source into items and queries, with errors that name the record's location.

An id is text or an integer: ``1.0`` and ``1`` would be one id or two depending on the program that wrote the file.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from types import NoneType
from urllib.parse import quote, unquote

import numpy as np
from pydantic import JsonValue, ValidationError

from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.errors import SourceError

JsonObject = dict[str, JsonValue]
"""A JSON object."""

MAX_ENTRY = 64 * 2**20
"""The longest line, row or list entry allowed, in bytes or characters: a file without line ends must not fill the memory."""

ID_NAMES = ("id", "_id", "docid", "doc_id", "item_id", "pid", "passage_id", "document_id", "uid", "key")
CONTENT_NAMES = ("content", "contents", "text", "body", "passage", "abstract", "document", "description", "paragraph")
"""Usual names of the field with the text, the most common first."""

_SHOWN = 12


def too_long(location: str) -> SourceError:
    """Return the error for a line, a cell or a row of more than ``MAX_ENTRY`` bytes or characters."""
    return SourceError(f"{location}: longer than {MAX_ENTRY >> 20} MiB; split the text up")


def kind(value: JsonValue) -> str:
    """Name the JSON type of a value, for error messages.

    Examples:
        >>> kind([1, 2]), kind(None), kind(True)
        ('a list', 'null', 'a boolean')
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"a number ({value!r:.40})"
    return {NoneType: "null", bool: "a boolean", str: "text", list: "a list"}.get(type(value), "an object")


def typed(value: object) -> str:
    """Return a value for a message, cut, with its type: ``"5 (int)"``."""
    return f"{value!r:.60} ({type(value).__name__})"


def quoted(names: Collection[str]) -> str:
    """List names for an error message, in their order, shortened if they are very many or very long.

    Examples:
        >>> quoted(["id", "text"])
        '"id", "text"'
    """
    shown = [f'"{name[:40]}"' for name in islice(names, _SHOWN)] + [f"and {len(names) - _SHOWN} more"] * (len(names) > _SHOWN)
    return ", ".join(shown) or "none"


def plain_name(name: str) -> str:
    """Return the name of a column in the form in which names are compared: ``Query-ID`` and ``query id`` are ``query_id``."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def likely(wanted: str, present: Iterable[str], aliases: Iterable[str]) -> str | None:
    """Return which of the existing names was probably meant by one that is missing: a usual name, or a similar one."""
    plain = {plain_name(name): name for name in present}
    close = next(([alias] for alias in (plain_name(wanted), *aliases) if alias in plain), None)
    close = close or get_close_matches(plain_name(wanted), plain, n=1, cutoff=0.7)
    return plain[close[0]] if close else None


def as_id(location: str, field: str, value: JsonValue) -> str:
    """Return an id as text; SourceError if it is neither text nor an integer, or is empty.

    Examples:
        >>> as_id("animals.csv, line 2", "id", 17)
        '17'
    """
    if isinstance(value, str):
        if value and not value.isspace():
            return value
        raise SourceError(f'{location}: "{field}" is empty; every record needs an id of its own')
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise SourceError(f'{location}: "{field}" is {kind(value)}; an id is text or an integer of at most 64 bits: convert it')


def as_text(location: str, field: str, value: JsonValue) -> str:
    """Return a text field as it is, which may be empty; SourceError if it is not text.

    Examples:
        >>> as_text("animals.csv, line 2", "text", "It hunts.")
        'It hunts.'
    """
    if isinstance(value, str):
        return value
    raise SourceError(f'{location}: "{field}" is {kind(value)}; expected text: convert it, or name another field')


def as_title(location: str, field: str, value: JsonValue) -> str:
    """Return a title, or an empty string for null."""
    return "" if value is None else as_text(location, field, value)


def metadata_of(location: str, row: JsonObject, used: Collection[str]) -> JsonObject:
    """Return the fields of a row that are not used, and those of an object named ``metadata``; SourceError if they differ."""
    metadata = {key: value for key, value in row.items() if key not in used and key != "metadata"}
    nested = row.get("metadata")
    if not isinstance(nested, dict):
        return metadata if nested is None else metadata | {"metadata": nested}
    for key, value in nested.items():
        if key in metadata and metadata[key] != value:
            raise _two_values(location, key)
        metadata[key] = value
    return metadata


def with_title(location: str, title: str, metadata: JsonObject) -> JsonObject:
    """Put a title in front of the metadata; SourceError if that has another one."""
    if not title:
        return metadata
    if metadata.get("title") not in (None, "", title):
        raise _two_values(location, "title")
    return metadata | {"title": title}


def _two_values(location: str, key: str) -> SourceError:
    return SourceError(f'{location}: "{key}" is in the row and, with another value, in its "metadata"; rename one')


def make_item(location: str, item_id: str, content: str, metadata: JsonObject) -> SearchableItem:
    """Build an item; SourceError if a value cannot be stored: it is too deeply nested, not finite, or has a lone surrogate.

    Examples:
        >>> make_item("animals.jsonl, line 1", "fox", "It hunts.", {"title": "Arctic fox"})
        SearchableItem(item_id='fox', title='Arctic fox', content='It hunts.')
    """
    try:
        return SearchableItem(item_id=item_id, content=content, metadata=metadata)
    except (ValidationError, RecursionError) as error:
        raise SourceError(f"{location}: item {item_id!r:.80}: {_reason(error)}") from None


def make_query(location: str, query_id: str, text: str, family: str | None = None, metadata: JsonObject | None = None) -> Query:
    """Build a query; SourceError as :func:`make_item`."""
    try:
        return Query(query_id=query_id, text=text, family=family, metadata=metadata or {})
    except (ValidationError, RecursionError) as error:
        raise SourceError(f"{location}: query {query_id!r:.80}: {_reason(error)}") from None


def _reason(error: ValidationError | RecursionError) -> str:
    first = error.errors(include_url=False, include_input=False)[0] if isinstance(error, ValidationError) else None
    if first is None or first["type"] == "recursion_loop":
        return "its metadata is nested too deeply; flatten it"
    # the path into nested metadata names pydantic's union branches too; the first two parts are the user's own
    return f"{'.'.join(str(part) for part in first['loc'][:2])}: {first['msg']}"


_EXACT = 2**53
"""Largest whole number up to which floats are exact."""

LEAVE_OUT = "convert it to text, or leave it out"


def plain_value(  # noqa: PLR0911 -- one for each kind of value
    location: str, column: str, value: object, whole: bool = False, cure: str = LEAVE_OUT
) -> JsonValue:
    """Turn a value of a table into a JSON value, NaN into null, and ``whole`` decimals without fraction into integers."""
    match value:
        case None | bool() | int() | str():
            return value
        case decimal.Decimal() if value.is_finite() and value == value.to_integral_value() and (whole or abs(value) > _EXACT):
            return int(value)
        case float() | decimal.Decimal():
            return None if math.isnan(value) else float(value)
        case _ if type(value).__name__ in ("NAType", "NaTType"):  # the missing values of pandas
            return None
        case datetime.date() | datetime.time():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case list() | tuple():
            return [plain_value(location, column, inner, cure=cure) for inner in value]
        case dict():
            return {str(key): plain_value(location, column, inner, cure=cure) for key, inner in value.items()}
        case _ if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of numpy
            array = np.asarray(value)
            if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in ("ns", "ps", "fs", "as"):
                array = array.astype("M8[us]")
            elif array.dtype.kind == "f" and array.dtype != np.float64:
                array = array.astype(str).astype(np.float64)  # 0.7 in single precision is 0.7
            plain = array.tolist()
            if type(plain) is not type(value):
                return plain_value(location, column, plain, cure=cure)
    raise SourceError(
        f'{location}: column "{column}" holds {type(value).__name__}, which is neither text nor a JSON value; {cure}'
    )


# Ids as columns of TREC files: one that holds white space or a control character is written as ``%:Hong%20Kong``, and so is
# one that begins with ``%:``. All others are written as they are, also URLs, which must match published qrels.

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
