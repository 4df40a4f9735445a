"""Reading unchecked text files: UTF-8, plain or gzip, one entry at a time.

Memory never grows beyond one line; anything wrong with a file is a :class:`~nlp_retrieval.errors.SourceError` that names
the file and the line. Files are opened by :mod:`~nlp_retrieval.core.files.opening`, JSON is read by
:mod:`~nlp_retrieval.core.files.json_text`.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.files.json_text import (
    TOO_DEEP,
    decode_json,
    describe_json_error,
    is_deeper,
    parse_json,
    value_is_deeper,
)
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


_SPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_TOKEN = 16
"""Longer than any literal, escape pair or end of a number that the window's edge may cut in two ("-Infinity", "e+")."""


def read_json_objects(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield the objects of a JSON list, each with its location (``hover.json, line 3 (entry 1)``).

    Raises:
        SourceError: the file is missing or damaged, is not one JSON list, or has an entry that is not an object.
    """
    for location, value in read_json_list(path):
        if not isinstance(value, dict):
            raise SourceError(f"{location}: expected a JSON object, found {kind(value)}")
        yield location, value


def read_json_file_of_records(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield the objects of a file that is one JSON list or JSON lines, each with its location.

    Raises:
        SourceError: as :func:`read_json_objects` and :func:`~nlp_retrieval.loaders.files.read_json_lines`.
    """
    with open_bytes(path) as stream:
        start = stream.peek(1024).removeprefix(BOM_UTF8).lstrip()
    return read_json_objects(path) if start.startswith(b"[") else read_json_lines(path)


def read_json_list(path: str | Path, buffer_size: int = 2**20) -> Iterator[tuple[str, JsonValue]]:
    """Yield the entries of a JSON list, of any type, each with its location.

    Args:
        path: a UTF-8 file, plain or gzip.
        buffer_size: the least number of bytes to read at a time.

    Raises:
        SourceError: the file is missing or damaged, or is not one JSON list.
    """
    with open_bytes(path) as stream:
        yield from _Window(path, stream, buffer_size).entries()


class _Window:
    """A part of the text; ``at`` is the first character not yet consumed, ``line`` the line of ``counted``.

    If anything in it may be nested too deeply (``deep``), each entry is measured before it is decoded.
    """

    def __init__(self, path: str | Path, stream: BufferedReader, size: int) -> None:
        self.path = path
        self.stream = stream
        self.size = size
        self.decode = getincrementaldecoder("utf-8-sig")().decode
        self.text = ""
        self.at = 0
        self.line = 1
        self.counted = 0
        self.ended = False
        self.deep = False

    def entries(self) -> Iterator[tuple[str, JsonValue]]:
        if (opening := self.peek()) != "[":
            raise self.not_a_list(opening)
        self.at += 1
        if self.peek() == "]":
            self.at += 1
        else:
            number = 0
            separator = ","
            while separator == ",":
                number += 1
                self.peek()
                location = f"{self.here()} (entry {number})"
                yield location, self.value(number)
                separator = self.peek()
                if separator not in (",", "]"):
                    what = f"found {separator!r}" if separator else "the file ends: it is cut off; fetch it again"
                    raise SourceError(f"{self.here()}: expected ',' or ']' after entry {number}, {what}")
                self.at += 1
        if after := self.peek():
            raise SourceError(f"{self.here()}: {after!r} after the end of the list; a file holds one JSON list")

    def value(self, number: int) -> JsonValue:
        value: JsonValue
        while True:
            if self.deep and value_is_deeper(self.text, self.at):
                raise SourceError(f"{self.here()} (entry {number}): {TOO_DEEP}")
            try:
                value, end = decode_json(self.text, self.at)
            except json.JSONDecodeError as error:
                if not self.ended and self.may_be_cut(error):
                    self.fill()
                    continue
                cut = error.msg.startswith("Unterminated string") or error.pos >= len(self.text.rstrip())
                problem = "the file ends within it: it is cut off; fetch it again" if cut else describe_json_error(error)
                raise SourceError(f"{self.here(error.pos)} (entry {number}): {problem}") from None
            except (ValueError, RecursionError) as error:
                raise SourceError(f"{self.here()} (entry {number}): {describe_json_error(error)}") from None
            near = isinstance(value, (int, float)) and end > len(self.text) - _LONGEST_TOKEN
            if near and not self.ended:
                self.fill()  # the "12" before the window's edge may be the start of "123" or "12e4"
                continue
            self.at = end
            return value

    def may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or error.pos > len(self.text) - _LONGEST_TOKEN

    def peek(self) -> str:
        """Skip white space; return the next character, or an empty string at the end of the file."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if self.ended:
                return ""
            self.fill()

    def fill(self) -> None:
        self.here()
        rest = self.text[self.at :]
        if len(rest) > MAX_ENTRY:
            raise SourceError(f"{self.here()}: an entry longer than {MAX_ENTRY >> 20} MiB; split it up")
        try:
            raw = self.stream.read(max(self.size, len(rest)))
        except READ_ERRORS as error:
            raise read_error(f"{self.path}, line {self.line + rest.count(chr(10))}", error) from error
        try:
            text = self.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self.line + rest.count("\n") + error.object[: error.start].count(b"\n")
            raise encoding_error(f"{self.path}, line {line}", error) from None
        self.ended = not raw
        self.text, self.at, self.counted = rest + text, 0, 0
        self.deep = is_deeper(self.text)

    def here(self, position: int | None = None) -> str:
        """Return the file and the line of the next character, or of a later position."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        ahead = 0 if position is None else self.text.count("\n", self.at, position)
        return f"{self.path}, line {self.line + ahead}"

    def not_a_list(self, opening: str) -> SourceError:
        expected = f"{self.here()}: expected one JSON list ('[')"
        if not opening:
            return SourceError(f"{self.path}: the file is empty; expected one JSON list")
        if opening != "{":
            return SourceError(f"{expected}, found {opening!r}; is this the right file?")
        end = len(self.text)
        if not self.deep:
            with suppress(ValueError, RecursionError):
                _, end = decode_json(self.text, self.at)
        if self.text[end:].lstrip().startswith("{"):
            return SourceError(f"{expected}, found JSON lines; make a list of them (jq -s . old.jsonl > new.json)")
        return SourceError(f"{expected}, found a JSON object; pass the file whose top level is the list of entries")
