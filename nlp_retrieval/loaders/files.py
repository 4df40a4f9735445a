"""Reading unchecked text files: UTF-8, plain or gzip, one entry at a time.

Memory never grows beyond one line; anything wrong with a file is a :class:`~nlp_retrieval.errors.SourceError` that names
the file and the line. Files are opened by :mod:`~nlp_retrieval.core.files.opening`, JSON is read by
:mod:`~nlp_retrieval.core.files.json_text`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

import ijson
from ijson.common import ObjectBuilder
from pydantic import JsonValue

from nlp_retrieval.core.files.json_text import MAX_DEPTH, TOO_DEEP, parse_json
from nlp_retrieval.core.files.opening import READ_ERRORS, open_bytes, read_error
from nlp_retrieval.core.files.records import MAX_ENTRY, JsonObject, kind, too_long
from nlp_retrieval.errors import SourceError

SAVE_AS_UTF8 = "save the file as UTF-8, for example with iconv -f ISO-8859-1 -t UTF-8"


def encoding_error(location: str, error: UnicodeDecodeError) -> SourceError:
    """Return the error for bytes that are not UTF-8."""
    byte = error.object[error.start]
    return SourceError(f"{location}: not UTF-8 (byte 0x{byte:02x}: {error.reason}); {SAVE_AS_UTF8}")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a text file with their numbers, from 1, without their line ends.

    Args:
        path: a UTF-8 file, plain or gzip; a byte order mark is skipped.

    Raises:
        SourceError: the file is missing, damaged or not UTF-8, or a line is longer than ``MAX_ENTRY`` bytes.

    Examples:
        >>> _ = Path("names.txt").write_text("krill\nwhale\n")
        >>> list(read_lines("names.txt"))
        [(1, 'krill'), (2, 'whale')]
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

    Examples:
        >>> for place, fields in read_json_lines("animals.jsonl"):
        ...     print(place, fields["title"])
        animals.jsonl, line 1 Blue whale
        animals.jsonl, line 2 Krill
        animals.jsonl, line 3 Arctic fox
    """
    for number, line in read_lines(path):
        if not line or line.isspace():
            continue
        location = f"{path}, line {number}"
        try:
            row = parse_json(line)
        except ValueError as error:
            if number == 1 and line.lstrip().startswith("["):
                raise SourceError(_IS_A_LIST.format(location=location)) from None
            if "\r" in line:
                raise SourceError(f"{location}: {_ENDS_WITH_CR}") from None
            raise SourceError(f"{location}: {error}") from None
        if not isinstance(row, dict):
            if isinstance(row, list) and number == 1:
                raise SourceError(_IS_A_LIST.format(location=location))
            raise SourceError(f"{location}: expected a JSON object, found {kind(row)}; write one object per line")
        yield location, row


_ENDS_WITH_CR = "a carriage return within the line; end lines with a line feed (tr '\\r' '\\n' < old > new)"

_IS_A_LIST = "{location}: the file is one JSON list; write one object per line (jq -c '.[]' old.json > new.jsonl)"


def read_json_objects(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield the objects of a JSON list, each with its location (``hover.json, entry 1``)."""
    for location, value in read_json_list(path):
        if not isinstance(value, dict):
            raise SourceError(f"{location}: expected a JSON object, found {kind(value)}")
        yield location, value


def read_json_file_of_records(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield the objects of a file that is one JSON list or JSON lines, each with its location."""
    with open_bytes(path) as stream:
        start = stream.peek(1024).removeprefix(BOM_UTF8).lstrip()
    return read_json_objects(path) if start.startswith(b"[") else read_json_lines(path)


def read_json_list(path: str | Path) -> Iterator[tuple[str, JsonValue]]:
    """Yield the entries of a JSON list, of any type, each with its location; one entry is in memory at a time."""
    with open_bytes(path) as stream:
        number = 0
        try:
            if stream.peek(3).startswith(BOM_UTF8):
                stream.read(len(BOM_UTF8))
            while (head := stream.peek(1024)).isspace():
                stream.read(len(head))
            if not (start := head.lstrip()).startswith(b"["):
                raise _not_a_list(str(path), start)
            measured = _Measured(stream)
            for value in _values(ijson.basic_parse(measured, use_float=True)):
                number += 1
                measured.bytes = 0
                yield f"{path}, entry {number}", value
        except READ_ERRORS as error:
            raise read_error(f"{path}, entry {number + 1}", error) from error
        except (ijson.JSONError, _BoundlessError, UnicodeDecodeError) as error:
            raise SourceError(f"{path}, entry {number + 1}: {_fault(error)}") from None


class _BoundlessError(Exception):
    """An entry of a list is too long, or nested too deeply."""


class _Measured:
    """A stream that counts the bytes of an entry."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Read, and count."""
        raw = self._stream.read(size)
        self.bytes += len(raw)
        if self.bytes > MAX_ENTRY:
            raise _BoundlessError(f"longer than {MAX_ENTRY >> 20} MiB; split the text up")
        return raw


def _values(events: Iterator[tuple[str, Any]]) -> Iterator[JsonValue]:
    """The entries of the list that the events of a parser describe."""
    depth, entry = 0, ObjectBuilder()
    for event, value in events:
        depth += {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}.get(event, 0)
        if depth > MAX_DEPTH + 1:
            raise _BoundlessError(TOO_DEEP)
        if depth == 0 or (depth == 1 and event == "start_array"):
            continue  # the list itself
        entry.event(event, value)
        if depth == 1:
            yield entry.value
            entry = ObjectBuilder()


def _fault(error: Exception) -> str:
    """The fault of an entry, and what to do, as a short phrase."""
    message = str(error)
    if isinstance(error, _BoundlessError):
        return message
    if "premature EOF" in message:
        return "the file ends within the list: it is cut off; fetch it again"
    if isinstance(error, UnicodeDecodeError):
        return "half of a surrogate pair; write the character itself"
    if "UTF8" in message:
        return f"not UTF-8; {SAVE_AS_UTF8}"
    return f"not valid JSON: {message.splitlines()[0].partition(': ')[2]}; repair this entry, or write the file again"


def _not_a_list(path: str, start: bytes) -> SourceError:
    if not start:
        return SourceError(f"{path}: the file is empty; expected one JSON list")
    found = f"{start[:1].decode('utf-8', 'replace')!r}; is this the right file?"
    if start.startswith(b"{"):
        found = "a JSON object; pass the file whose top level is the list of entries"
        if re.search(rb"\}[ \r]*\n\s*\{", start):
            found = "JSON lines; make a list of them (jq -s . old.jsonl > new.json)"
    return SourceError(f"{path}: expected one JSON list ('['), found {found}")
