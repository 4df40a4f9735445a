"""Opening files: those of an index, which are regular files, and those of users, plain or gzip, of any type.

JSON is read within limits of length and depth; any fault of it is a ValueError with a short phrase.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import re
import stat
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from os.path import expanduser
from pathlib import Path
from typing import Any

import orjson

from nlp_retrieval.errors import IndexStateError, SourceError

READ_ERRORS = (EOFError, zlib.error, OSError)
"""Errors of reading an open file: truncated or damaged gzip, a failing disk or network."""

_GZIP = b"\x1f\x8b"
_UTF16 = "UTF-16 text; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"
_PACKED = b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18", b"\xd0\xcf\x11\xe0"
_FOREIGN = dict.fromkeys(_PACKED, "an archive or workbook (zip, zstd, bzip2, xz, lz4, xls, xlsx); unpack it, or save CSV") | {
    b"version https://": "a pointer of Git LFS, and not the file itself; fetch that (git lfs pull)",
    b"PAR1": "a Parquet file; ParquetLoader reads it (loader: parquet)",
    b"ARROW1": "a file of Arrow or Feather; write the table as Parquet",
    b"SQLite format 3": "an SQLite database; DatabaseLoader reads it",
    BOM_UTF16_LE: _UTF16,
    BOM_UTF16_BE: _UTF16,
}

_LIMITS = [os.strerror(number) for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)]
_LIMIT_CURE = "raise the limit (ulimit -n), or open fewer files; compact() gives an index fewer"


def expanded(path: str | Path) -> Path:
    """Return a path with ``~`` as the user's home; unchanged where there is no such user.

    Examples:
        >>> expanded("~nobody-of-this-name/corpus.jsonl")
        PosixPath('~nobody-of-this-name/corpus.jsonl')
    """
    return Path(expanduser(path))  # noqa: PTH111 -- Path's own raises where there is no such user


def open_regular(path: Path, flags: int = 0) -> io.BufferedReader:
    """Open a regular file; OSError for a pipe or a device at its place, which is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Examples:
        >>> sha256_of(Path("qrels.txt"))[:12]
        '903cb6345d45'
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def explain_file_limit(path: Path) -> Iterator[None]:
    """Raise an IndexStateError where the process has reached its limit of open files or memory: no file is damaged then."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        for _ in range(10):  # some libraries raise an error from itself, and give no number
            reached = next((limit for limit in _LIMITS if limit in str(cause)), None)
            if reached is not None and _LIMIT_CURE not in str(error):
                raise IndexStateError(f"{path} cannot be opened ({reached}): {_LIMIT_CURE}") from error
            cause = cause and (cause.__cause__ or cause.__context__)
        raise


@contextmanager
def open_bytes(path: str | Path) -> Iterator[io.BufferedReader]:
    """Open a file for reading; gzip is decompressed. SourceError if it is of another kind, or cannot be opened or read.

    Examples:
        >>> with open_bytes("animals.jsonl") as file:
        ...     len(file.readline()) > 0
        True
    """
    file = expanded(path)
    try:
        with explain_file_limit(file):
            raw = file.open("rb")
            head = raw.peek(16)
    except FileNotFoundError:
        folder = file.parent.absolute()
        place = f" in {str(folder)!r}" if folder.is_dir() else f": the folder {str(folder)!r} does not exist"
        raise SourceError(f"{path}: no such file{place}; check the path") from None
    except (OSError, ValueError) as error:
        cure = "pass the path of a file in it" if isinstance(error, IsADirectoryError) else "check the path"
        raise SourceError(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}; {cure}") from error
    foreign = next((kind for magic, kind in _FOREIGN.items() if head.startswith(magic)), None)
    with raw:
        if foreign is not None:
            raise SourceError(f"{path}: this is {foreign}")
        try:
            yield io.BufferedReader(gzip.GzipFile(fileobj=raw, mode="rb")) if head.startswith(_GZIP) else raw
        except READ_ERRORS as error:
            raise read_error(str(path), error) from error


def read_error(place: str, error: Exception) -> SourceError:
    """Return the error to raise for one of ``READ_ERRORS``, at a place in a file."""
    if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)):
        return SourceError(f"{place}: the gzip data is cut off or damaged ({error}); fetch or compress the file again")
    return SourceError(f"{place}: reading failed: {error}")


# JSON from untrusted sources.

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
