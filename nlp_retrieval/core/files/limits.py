"""A process that may open no more files, or map no more memory, is told so; its index is not called damaged."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nlp_retrieval.errors import IndexStateError

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@contextmanager
def enough_files(path: Path) -> Iterator[None]:
    """Turn an error of a process that has too many files open, inside the block, into one that says what to do.

    Args:
        path: what is opened.

    Raises:
        IndexStateError: there is no more room for open files.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _EXHAUSTED:
            raise IndexStateError(
                f"{path} cannot be opened ({error.strerror}): raise the limit (ulimit -n), or compact() the index, which then "
                "has fewer files"
            ) from error
        raise
