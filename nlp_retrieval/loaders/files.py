"""Reading unchecked text files: UTF-8, plain or gzip, one entry at a time.

Memory never grows beyond one line; anything wrong with a file is a :class:`~nlp_retrieval.errors.SourceError` that names
the file and the line. Files are opened, and JSON is read, by :mod:`~nlp_retrieval.core.files.opening`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import ijson
from ijson.common import ObjectBuilder
from pydantic import JsonValue

from nlp_retrieval.core.files.opening import MAX_DEPTH, READ_ERRORS, TOO_DEEP, open_bytes, parse_json, read_error
from nlp_retrieval.core.files.records import MAX_ENTRY, JsonObject, kind, too_long
from nlp_retrieval.errors import SourceError

SAVE_AS_UTF8 = "save the file as UTF-8, for example with iconv -f ISO-8859-1 -t UTF-8"


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
    for number, line in raw_lines(path):
        yield number, line.rstrip("\r\n")


def raw_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file as :func:`read_lines` does, with their line ends."""
    with open_bytes(path) as stream:
        number = 1
        try:
            while raw := stream.readline(MAX_ENTRY + 1):
                if len(raw) > MAX_ENTRY:
                    raise too_long(f"{path}, line {number}")
                yield number, (raw.removeprefix(BOM_UTF8) if number == 1 else raw).decode("utf-8")
                number += 1
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            fault = f"not UTF-8 (byte 0x{byte:02x}: {error.reason})"
            raise SourceError(f"{path}, line {number}: {fault}; {SAVE_AS_UTF8}") from None
        except READ_ERRORS as error:
            raise read_error(f"{path}, line {number}", error) from error


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
        if number == 1 and line.lstrip().startswith("["):
            raise SourceError(
                f"{location}: the file is one JSON list; write one object per line (jq -c '.[]' old.json > new.jsonl)"
            )
        try:
            row = parse_json(line)
        except ValueError as error:
            form = "; such a file has one object per line (jq -c . old.json > new.jsonl)" if number == 1 else ""
            raise SourceError(f"{location}: {error}{form}") from None
        if not isinstance(row, dict):
            raise SourceError(f"{location}: expected a JSON object, found {kind(row)}; write one object per line")
        yield location, row


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
    return read_json_lines(path) if start.startswith(b"{") else read_json_objects(path)


def read_json_list(path: str | Path) -> Iterator[tuple[str, JsonValue]]:
    """Yield the entries of a JSON list, of any type, each with its location; one entry is in memory at a time."""
    with open_bytes(path) as stream:
        number = depth = 0
        entry, checked = ObjectBuilder(), _Checked(stream)
        try:
            if stream.peek(3).startswith(BOM_UTF8):
                stream.read(len(BOM_UTF8))
            while (head := stream.peek(1024)).isspace():
                stream.read(len(head))
            if not head.lstrip().startswith(b"["):
                first = repr(head.lstrip()[:1].decode("utf-8", "replace")) if head else "nothing"
                cure = "make a list of JSON lines by jq -s . old.jsonl > new.json, and take one out of an object by jq .KEY"
                raise SourceError(f"{path}: expected one JSON list ('['), found {first}; {cure}")
            for event, value in ijson.basic_parse(checked, use_float=True):
                depth += {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}.get(event, 0)
                if depth > MAX_DEPTH + 1:
                    raise SourceError(f"{path}, entry {number + 1}: {TOO_DEEP}")
                if depth == 0 or (depth == 1 and event == "start_array"):
                    continue  # the list itself
                entry.event(event, value)
                if depth == 1:
                    number += 1
                    yield f"{path}, entry {number}", entry.value
                    entry, checked.bytes = ObjectBuilder(), 0
        except READ_ERRORS as error:
            raise read_error(f"{path}, entry {number + 1}", error) from error
        except (ijson.JSONError, _BoundlessError, UnicodeDecodeError) as error:
            raise SourceError(f"{path}, entry {number + 1}: {_fault(error)}") from None


class _BoundlessError(Exception):
    """An entry of a list is too long, or holds half of a character."""


_ESCAPE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.?", re.DOTALL)


class _Checked:
    """A stream that counts the bytes of an entry, and refuses half of an escaped surrogate pair: the parser would not."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self._rest = b""
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Read and check."""
        raw = self._stream.read(size)
        self.bytes += len(raw)
        if self.bytes > MAX_ENTRY:
            raise _BoundlessError(f"longer than {MAX_ENTRY >> 20} MiB; split the text up")
        text, self._rest = self._rest + raw, b""
        for escape in _ESCAPE.finditer(text) if b"\\" in text else ():
            begin = escape.start()
            if raw and begin + 12 > len(text) and rb"\ud".startswith(text[begin + 6 : begin + 9].lower()):
                self._rest = text[begin:]  # it may go on
                break
            if escape["half"]:
                shown = escape["half"].decode("ascii", "replace")
                raise _BoundlessError(f"half of a surrogate pair ({shown}) here or soon after; write the character itself")
        return raw


def _fault(error: Exception) -> str:
    """The fault of an entry, and what to do, as a short phrase."""
    message = str(error)
    if isinstance(error, _BoundlessError):
        return message
    if "premature EOF" in message:
        return "the file ends within the list: it is cut off; fetch it again"
    if isinstance(error, UnicodeDecodeError) or "UTF8" in message:
        return f"not UTF-8; {SAVE_AS_UTF8}"
    fault = message.splitlines()[0].partition(": ")[2].rstrip(".")
    return f"not valid JSON: {fault}; repair this entry (write null for NaN)"
