"""JSON from untrusted sources, within limits of length and depth; any fault is a ValueError with a short phrase."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import orjson

from nlp_retrieval.core.files.opening import explain_file_limit

MAX_DEPTH = 100
"""Maximum nesting of lists and objects; real data needs about ten."""

MAX_BYTES = 2**30
"""Maximum number of bytes of a file or text that is read as one JSON value."""

_CONSTANT = re.compile("NaN|Infinity")
TOO_DEEP = f"JSON that is nested too deeply (more than {MAX_DEPTH} levels); flatten it"


def parse_json(text: str | bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value in a text, of which a byte order mark is skipped; ValueError for no JSON, or too long or deep a text.

    Examples:
        >>> parse_json('{"k": [5, 10]}')
        {'k': [5, 10]}
    """
    if len(text) > max_bytes:
        raise ValueError(f"it is longer than {max_bytes:,} bytes")
    if isinstance(text, bytes):
        try:
            text = text.removeprefix(BOM_UTF8).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 (byte 0x{error.object[error.start]:02x} at {error.start})") from None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(_fault(error)) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and is_deeper(value):
        raise ValueError(TOO_DEEP)
    return value


def read_json_file(path: Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value in a file; OSError if it cannot be read, ValueError as :func:`parse_json`.

    Examples:
        >>> _ = Path("settings.json").write_text('{"k": 10}')
        >>> read_json_file(Path("settings.json"))
        {'k': 10}
    """
    with explain_file_limit(path), path.open("rb") as file:
        return parse_json(file.read(max_bytes + 1), max_bytes=max_bytes)


def is_deeper(value: object) -> bool:
    """Return whether lists and dicts are nested deeper than ``MAX_DEPTH``."""
    level = [value]
    for _ in range(MAX_DEPTH):
        containers = [outer.values() if isinstance(outer, dict) else outer for outer in level if isinstance(outer, dict | list)]
        level = [inner for outer in containers for inner in outer]
    return any(isinstance(inner, dict | list) for inner in level)


def _fault(error: orjson.JSONDecodeError) -> str:
    if "depth limit" in error.msg or "allocate" in error.msg:  # what it says of hundreds of open brackets
        return TOO_DEEP
    if "surrogate" in error.msg:
        return f"not valid JSON: half of a surrogate pair (column {error.colno}); write the character itself"
    if constant := _CONSTANT.match(error.doc, error.pos):
        return f"not valid JSON: {constant[0]} is not JSON; leave the field out, or write null, where there is no value"
    return f"not valid JSON: {error.msg} (column {error.colno}); repair this entry, or write the file again"
