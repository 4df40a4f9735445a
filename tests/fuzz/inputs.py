"""Bytes of a fuzzer as files, folders and text."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nlp_retrieval import SearchableItem
from nlp_retrieval.core.index.generation import SegmentFolder

SEPARATOR = b"\n%%\n"
"""Between the files of an input that is several."""
N_PASSAGES = 3


def parts(data: bytes, count: int) -> list[bytes]:
    """Cut an input into so many files; those that are missing are empty."""
    found = data.split(SEPARATOR, count - 1)
    return found + [b""] * (count - len(found))


def as_text(data: bytes) -> str:
    """Return text, whatever the bytes; half of a surrogate pair stays."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def a_file(name: str, data: bytes | None = None) -> Path:
    """Return the path of a file, with this content where some is given; the next call of this name writes over it."""
    path = scratch() / name
    if data is not None:
        path.write_bytes(data)
    return path


def a_folder(name: str, files: Mapping[str, bytes]) -> Path:
    """Return the path of a folder with these files; the next call of this name writes over them."""
    folder = scratch() / name
    for file, data in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def joined(folder: Path, names: tuple[str, ...]) -> bytes:
    """The files of a folder as one input."""
    return SEPARATOR.join((folder / name).read_bytes() for name in names)


def each(*values: object) -> Callable[[], list[Any]]:
    """Return what gives these values as JSON."""
    return lambda: [json.dumps(value) for value in values]


def segment(name: str, files: tuple[str, ...], data: bytes) -> SegmentFolder:
    """A segment with these files, of :data:`N_PASSAGES`."""
    return SegmentFolder(a_folder(name, dict(zip(files, parts(data, len(files)), strict=True))), 0, N_PASSAGES)


def item_of(item_id: str, content: str, title: str = "") -> SearchableItem:
    """An item, with a title where one is given."""
    return SearchableItem(item_id=item_id, content=content, metadata={"title": title} if title else {})


@cache
def scratch() -> Path:
    """A folder of this process; it lies where ``TMPDIR`` says."""
    folder = tempfile.mkdtemp(prefix="fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
