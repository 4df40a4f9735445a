"""Halves of surrogate pairs: a Python string can hold them, but they are not valid text for any file, engine or model.

They come from bytes that were not text (a command line, a file read with ``errors="surrogateescape"``) and from escapes in
JSON or YAML. They are refused with a clear message on input, before an encoder or a file fails on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

_HALF = re.compile("[\ud800-\udfff]")


def find_lone_surrogate(value: object) -> str | None:
    """Return the first lone surrogate in a text, or in the texts of nested values, in escaped form; or None."""
    if isinstance(value, str | PurePath):
        text = str(value)
        found = None if text.isascii() else _HALF.search(text)
        return None if found is None else f"\\u{ord(found[0]):04x}"
    inner: Sequence[object] = ()
    if isinstance(value, Mapping):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        inner = value
    return next((half for one in inner if (half := find_lone_surrogate(one)) is not None), None)


def lone_surrogate_message(what: str, half: str) -> str:
    """Return the message about a value that holds a lone surrogate."""
    return f"{what} holds half of a surrogate pair ({half}), which is not text; decode its source with errors='replace'"
