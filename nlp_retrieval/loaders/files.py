"""Reading text files that nobody has checked yet: UTF-8, plain or gzip, one entry at a time.

Memory never grows beyond one line; anything wrong with a file is a :class:`~nlp_retrieval.errors.SourceError` that names
the file and the line. Compression is recognised by the first bytes, not by the name. JSON is read by
:mod:`~nlp_retrieval.core.files.json_text`.
"""

from __future__ import annotations

import gzip
import io
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from os.path import realpath
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.errors import SourceError

__all__ = [
    "MAX_ENTRY",
    "open_bytes",
    "read_error",
    "read_json_lines",
    "read_lines",
    "too_long",
]

JsonObject = dict[str, JsonValue]

MAX_ENTRY = 64 * 2**20
"""The longest line, row or list entry allowed, in bytes or characters: a file without line ends must not fill the memory."""

READ_ERRORS = (EOFError, zlib.error, OSError)
"""Errors of reading an open file: truncated or damaged gzip, a failing disk or network."""

_GZIP = b"\x1f\x8b"
_FOREIGN = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first (zstd -d), or compress it with gzip",
    b"BZh": "compressed with bzip2; unpack it first (bunzip2), or compress it with gzip",
    b"\xfd7zXZ": "compressed with xz; unpack it first (unxz), or compress it with gzip",
    b"PAR1": "a Parquet file; ParquetLoader reads it (loader: parquet)",
    b"SQLite format 3": "an SQLite database; DatabaseLoader reads it",
}
_UTF16 = "UTF-16 text; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"
SAVE_AS_UTF8 = "save the file as UTF-8, for example with iconv -f ISO-8859-1 -t UTF-8"


@contextmanager
def open_bytes(path: str | Path, utf16: bool = False, any_encoding: bool = False) -> Iterator[io.BufferedReader]:
    """Open a file for reading; gzip is unpacked on the way.

    Args:
        path: a file; ``~`` is the home folder.
        utf16: UTF-16 is what is expected, and no error.
        any_encoding: the caller has a parameter ``encoding``, which an error may name.

    Raises:
        SourceError: there is no such file, it cannot be read, or it is neither text nor gzip.
    """
    file = Path(path).expanduser()
    try:
        raw = file.open("rb")
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file{_hint(file)}") from None
    except IsADirectoryError:
        raise SourceError(f"{path}: this is a folder; pass the path of a file in it") from None
    except PermissionError:
        raise SourceError(f"{path}: permission denied; make the file readable for this user") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be opened: {error}; check the path") from error
    with raw:
        try:
            head = raw.peek(16)
        except OSError as error:
            raise read_error(str(path), error) from error
        if head.startswith(_GZIP):
            with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
                yield io.BufferedReader(unpacked)
            return
        for magic, what in _FOREIGN.items():
            if head.startswith(magic):
                raise SourceError(f"{path}: this is {what}")
        if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) and not utf16:
            raise SourceError(f"{path}: this is {_UTF16}" + (', or pass encoding="utf-16"' if any_encoding else ""))
        yield raw


def _hint(file: Path) -> str:
    """Why the path of a missing file may be wrong, and what may have been meant."""
    if not file.parent.is_dir():
        return f", nor a folder {str(file.parent)!r}; check the path (the current folder is {str(Path.cwd())!r})"
    try:
        # a folder may hold millions of files, and this is only a hint
        close = get_close_matches(file.name, [other.name for other in islice(file.parent.iterdir(), 1000)], n=1)
    except OSError:
        close = []
    likely = f"; did you mean {close[0]!r}?" if close else "; check the path"
    return f" in {realpath(file.parent)!r}{likely}"


def read_error(place: str, error: Exception) -> SourceError:
    """Return what to raise for one of ``READ_ERRORS``.

    Args:
        place: the file and how far it was read.
        error: what reading raised.
    """
    if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)):
        return SourceError(f"{place}: the gzip data is cut off or damaged ({error}); fetch or compress the file again")
    return SourceError(f"{place}: reading failed: {error}")


def too_long(place: str) -> SourceError:
    """Return what to raise for a line, a cell or a row of more than ``MAX_ENTRY`` bytes or characters."""
    return SourceError(f"{place}: longer than {MAX_ENTRY >> 20} MiB; split the text up")


def encoding_error(place: str, error: UnicodeDecodeError) -> SourceError:
    """Return what to raise for bytes that are not UTF-8."""
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
    """Yield the objects of a JSON Lines file, each with its place (``items.jsonl, line 17``); blank lines are skipped.

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
