"""Errors of a process that has reached its limit of open files or mapped memory, which do not mean a damaged index."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nlp_retrieval.errors import IndexStateError

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_SAID = tuple(os.strerror(number) for number in sorted(_EXHAUSTED))


@contextmanager
def explain_file_limit(path: Path) -> Iterator[None]:
    """Replace the error of reaching a limit, inside the block, by one that suggests a fix.

    Args:
        path: the file or folder that is opened.

    Raises:
        IndexStateError: no more files can be opened.
    """
    try:
        yield
    except Exception as error:
        if (lacking := _exhausted(error)) is None or _CURE in str(error):
            raise
        raise IndexStateError(f"{path} cannot be opened ({lacking}): {_CURE}") from error


_CURE = "raise the limit (ulimit -n), or compact() the index, which then has fewer files"


def _exhausted(error: BaseException | None) -> str | None:
    """Return the text of an error, or of one of its causes, that reports a limit; some libraries give no error number."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            return os.strerror(error.errno)
        if said := [text for text in _SAID if text in str(error)]:
            return said[0]
        error = error.__cause__ or error.__context__
    return None
