"""Reading unchecked text files: UTF-8, plain or gzip, one entry at a time.

Memory never grows beyond one line; anything wrong with a file is a :class:`~nlp_retrieval.errors.SourceError` that names
the file and the line. Files are opened by :mod:`~nlp_retrieval.core.files.opening`, JSON is read by
:mod:`~nlp_retrieval.core.files.json_text`.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.files.opening import READ_ERRORS, open_bytes, read_error
from nlp_retrieval.errors import SourceError

__all__ = [
    "MAX_ENTRY",
    "READ_ERRORS",
    "open_bytes",
    "read_error",
    "read_json_lines",
    "read_lines",
    "too_long",
]

JsonObject = dict[str, JsonValue]

MAX_ENTRY = 64 * 2**20
"""The longest line, row or list entry allowed, in bytes or characters: a file without line ends must not fill the memory."""

SAVE_AS_UTF8 = "save the file as UTF-8, for example with iconv -f ISO-8859-1 -t UTF-8"


def too_long(place: str) -> SourceError:
    """Return the error for a line, a cell or a row of more than ``MAX_ENTRY`` bytes or characters."""
    return SourceError(f"{place}: longer than {MAX_ENTRY >> 20} MiB; split the text up")


def encoding_error(place: str, error: UnicodeDecodeError) -> SourceError:
    """Return the error for bytes that are not UTF-8."""
    byte = error.object[error.start]
    return SourceError(f"{place}: not UTF-8 (byte 0x{byte:02x}: {error.reason}); {SAVE_AS_UTF8}")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, from 1, without their line ends.

    Args:
        path: a UTF-8 file, plain or gzip; a byte order mark is skipped.

    Raises:
        SourceError: the file is missing, damaged or not UTF-8, or a line is longer than ``MAX_ENTRY`` bytes.
    """
    with open_bytes(path) as stream:
        number = 0
        while True:
            number += 1
            try:
                raw = stream.readline(MAX_ENTRY + 1)
            except READ_ERRORS as error:
                raise read_error(f"{path}, line {number}", error) from error
            if not raw:
                return
            if len(raw) > MAX_ENTRY:
                raise too_long(f"{path}, line {number}")
            if number == 1:
                raw = raw.removeprefix(BOM_UTF8)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise encoding_error(f"{path}, line {number}", error) from None
            yield number, text.rstrip("\r\n")


def read_json_lines(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield the objects of a JSON Lines file, each with its location (``items.jsonl, line 17``); blank lines are skipped.

    Args:
        path: a file that :func:`read_lines` can read.

    Raises:
        SourceError: as :func:`read_lines`, and for a line that is not one JSON object.
    """
    for number, line in read_lines(path):
        if not line or line.isspace():
            continue
        place = f"{path}, line {number}"
        try:
            row = parse_json(line)
        except ValueError as error:
            if number == 1 and line.lstrip().startswith("["):
                raise SourceError(_IS_A_LIST.format(place=place)) from None
            if "\r" in line:
                raise SourceError(f"{place}: {_ENDS_WITH_CR}") from None
            raise SourceError(f"{place}: {error}") from None
        if not isinstance(row, dict):
            if isinstance(row, list) and number == 1:
                raise SourceError(_IS_A_LIST.format(place=place))
            raise SourceError(f"{place}: expected a JSON object, found {kind(row)}; write one object per line")
        yield place, row


_ENDS_WITH_CR = "a carriage return stands within the line; end lines with a line feed (tr '\\r' '\\n' < old > new)"

_IS_A_LIST = "{place}: the file is one JSON list; write one object per line (jq -c '.[]' old.json > new.jsonl)"


def kind(value: JsonValue) -> str:
    """Name the JSON type of a value, for error messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return f"a number ({value!r:.40})"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"
