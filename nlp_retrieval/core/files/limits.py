"""Errors of a process that has reached its limit of open files or mapped memory, which do not mean a damaged index."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nlp_retrieval.errors import IndexStateError

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@contextmanager
def enough_files(path: Path) -> Iterator[None]:
    """Turn the error of reaching a limit, inside the block, into one that says what to do.

    Args:
        path: the file that is opened.

    Raises:
        IndexStateError: no more files can be opened.
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
