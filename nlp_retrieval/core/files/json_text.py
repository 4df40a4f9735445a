"""JSON from untrusted sources: the reader for all files, records and answers that contain it.

Accepted is what the standard allows and a UTF-8 file can hold. Refused are NaN, infinities and numbers that overflow to
them, integers of thousands of digits, half of a surrogate pair, a repeated key in an object, and text longer or values
nested deeper than the limits. Depth is measured on the text, in one linear pass, before anything is parsed, because the depth
at which Python's own parser stops depends on its version, on the stack, and on the recursion limit of the program.

Any fault is a ValueError with a short phrase as its message; the caller knows the file and raises the package's
own error.
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "decode_json",
    "describe_json_error",
    "is_deeper",
    "parse_json",
    "read_json_file",
    "value_is_deeper",
]

MAX_DEPTH = 100
"""Maximum nesting of lists and objects; real data needs about ten."""

MAX_BYTES = 2**30
"""Maximum number of bytes of a file or text that is read as one JSON value."""

_AT_ONCE = 2**24
_STRUCTURE = b'"[]{}'
_ALL_BUT_STRUCTURE = bytes(set(range(256)) - set(_STRUCTURE))
_STEPS = np.zeros(256, np.int8)
"""Change of depth by each byte."""

_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_MARK = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value in a text.

    Args:
        text: one value, with white space around it; bytes must be UTF-8, and a byte order mark is skipped.
        max_bytes: a longer text is refused.

    Raises:
        ValueError: the text is not such a value, or too long or too deep.

    Examples:
        >>> parse_json('{"k": [5, 10]}')
        {'k': [5, 10]}
    """
    if len(text) > max_bytes:
        raise ValueError(f"it is longer than {_size(max_bytes)}")
    if isinstance(text, bytes):
        try:
            text = text.removeprefix(BOM_UTF8).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 (byte 0x{error.object[error.start]:02x} at {error.start})") from None
    if is_deeper(text):
        raise ValueError(TOO_DEEP)
    try:
        value, end = decode_json(text, len(text) - len(text.lstrip(_SPACE)))
        if rest := text[end:].strip(_SPACE):
            raise json.JSONDecodeError("Extra data", text, text.index(rest, end))
    except (ValueError, RecursionError) as error:
        raise ValueError(describe_json_error(error)) from None
    return value


def read_json_file(path: Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value in a file; a file that is too large is not read completely.

    Args:
        path: path of the file.
        max_bytes: a larger one is refused.

    Raises:
        OSError: it cannot be read.
        ValueError: as :func:`parse_json`.

    Examples:
        >>> _ = Path("settings.json").write_text('{"k": 10}')
        >>> read_json_file(Path("settings.json"))
        {'k': 10}
    """
    parts: list[bytes] = []
    bytes_left = max_bytes
    with path.open("rb") as file:
        while bytes_left >= 0 and (part := file.read(_AT_ONCE)):
            parts.append(part)
            bytes_left -= len(part)
    return parse_json(b"".join(parts), max_bytes=max_bytes)


def decode_json(text: str, start: int = 0) -> tuple[Any, int]:
    """Decode the JSON value that starts at a position; return it and the position after it.

    Args:
        text: known not to be too deep.
        start: position of the value's first character.

    Raises:
        ValueError: there is no JSON at this position; a JSONDecodeError if it may have been cut off.
        RecursionError: the program's own recursion limit is below the depth.
    """
    value, end = _DECODER.raw_decode(text, start)
    if _SURROGATE.search(text, start, end):
        # a file of UTF-8 cannot hold half a pair, but an escape in it can: refused here, before it can break an index
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            surrogate = f"\\u{ord(error.object[error.start]):04x}"
            raise ValueError(f"{surrogate} is half of a surrogate pair; write the character itself") from None
    return value, end


def is_deeper(text: str) -> bool:
    """Return whether JSON, one value or several, is nested deeper than ``MAX_DEPTH``.

    Linear in time and memory, without recursion. For a text that is not JSON, the answer may be wrong, but a parser stops
    at the first error, and up to there the depth is right.
    """
    raw = text.encode("utf-8", "surrogatepass")
    structure = raw.translate(None, _ALL_BUT_STRUCTURE)
    if structure.count(b"[") + structure.count(b"{") <= MAX_DEPTH:
        return False
    if b"\\" in raw:
        # backslashes occur only in strings; without escaped backslashes and quotes, every quote begins or ends a string
        structure = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _ALL_BUT_STRUCTURE)
    marks = np.frombuffer(structure, np.uint8)
    steps = _STEPS[marks]
    steps[np.logical_xor.accumulate(marks == ord('"'))] = 0
    return bool(np.cumsum(steps, dtype=np.int64).max(initial=0) > MAX_DEPTH)


def value_is_deeper(text: str, start: int) -> bool:
    """Return whether the value at a position is nested too deep; slower than :func:`is_deeper`, but reads only the value.

    Args:
        text: the value, with other text before and after it.
        start: position of the value.
    """
    if text[start : start + 1] not in ("[", "{"):
        return False
    depth, quoted = 0, False
    for match in _MARK.finditer(text, start):
        mark = match.group()
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif not quoted and mark in ("]", "}"):
            depth -= 1
        if depth == 0:
            return False
    return False


def describe_json_error(error: Exception) -> str:
    """Return the fault as a short phrase.

    Args:
        error: a ValueError or RecursionError of :func:`decode_json`.
    """
    if isinstance(error, RecursionError):
        return TOO_DEEP
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} (column {error.colno}); repair this entry, or write the file again"
    return f"not valid JSON: {error}"


_SPACE = " \t\n\r"
TOO_DEEP = f"JSON that is nested too deeply (more than {MAX_DEPTH} levels); flatten it"


def _refuse_constant(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON; leave the field out, or write null, where there is no value")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"the number {literal[:40]} is too large")
    return value


def _integer(literal: str) -> int:
    if len(literal) > _MAX_DIGITS:
        raise ValueError(f"the number {literal[:40]}... has {len(literal):,} digits")
    return int(literal)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {repeated[:40]!r} occurs twice in one object; keep one")
    return value


_MAX_DIGITS = 640
"""Every Python converts this many digits, whatever its own limit is set to."""

_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer, object_pairs_hook=_object)


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 2**20 else f"{count} bytes"
