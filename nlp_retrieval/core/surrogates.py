"""Halves of surrogate pairs: they are in a Python string and in no text, so no file, engine or model takes them.

They come from bytes that were no text (a command line, a file read with ``errors="surrogateescape"``) and from escapes of
JSON or YAML. They are refused where they come in, in words, and not where an encoder or a file would choke on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

_HALF = re.compile("[\ud800-\udfff]")


def half_of_pair(value: object) -> str | None:
    """Return the first half of a surrogate pair in a text, or in the texts of nested values, as it is escaped; or None."""
    if isinstance(value, str | PurePath):
        text = str(value)
        found = None if text.isascii() else _HALF.search(text)
        return None if found is None else f"\\u{ord(found[0]):04x}"
    inner: Sequence[object] = ()
    if isinstance(value, Mapping):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        inner = value
    return next((half for one in inner if (half := half_of_pair(one)) is not None), None)


def no_text(what: str, half: str) -> str:
    """The message about something that holds such a half."""
    return f"{what} holds half of a surrogate pair ({half}), which is no text; decode its source with errors='replace'"
