"""Bytes of a fuzzer as files, folders and text."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from nlp_retrieval import SearchableItem

SEPARATOR = b"\n%%\n"
"""Between the files of an input that is several."""


def parts(data: bytes, count: int) -> list[bytes]:
    """Cut an input into so many files; those that are missing are empty."""
    found = data.split(SEPARATOR, count - 1)
    return found + [b""] * (count - len(found))


def as_text(data: bytes) -> str:
    """Return text, whatever the bytes; half of a surrogate pair stays."""
    return data.decode("utf-8", "surrogatepass") if _is_text(data) else data.decode("utf-8", "replace")


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


def item_of(item_id: str, content: str, title: str = "") -> SearchableItem:
    """An item, with a title where one is given."""
    return SearchableItem(item_id=item_id, content=content, metadata={"title": title} if title else {})


@cache
def scratch() -> Path:
    """A folder of this process; it lies where ``TMPDIR`` says."""
    folder = tempfile.mkdtemp(prefix="fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
