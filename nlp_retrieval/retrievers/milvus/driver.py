"""Importing pymilvus without what it does besides: settings from files, and errors in the log that are raised as well."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nlp_retrieval.errors import DependencyError, install

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def require_driver() -> None:
    """Import pymilvus, without the settings of a file ``.env`` that it would look for.

    Raises:
        DependencyError: it is not installed.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what gRPC says of forks and lost connections is in our errors
    before = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    try:
        import pymilvus.decorators  # noqa: F401
    except ImportError as error:
        raise DependencyError(f"Milvus needs its driver: {install('milvus')} ({error})") from error
    finally:
        if before is None:
            del os.environ["PYTHON_DOTENV_DISABLED"]
        else:
            os.environ["PYTHON_DOTENV_DISABLED"] = before
    for name in ("pymilvus.decorators", "pymilvus.client.connection_manager", "pymilvus.client.grpc_handler"):
        logger = logging.getLogger(name)
        if _is_wanted not in logger.filters:
            logger.addFilter(_is_wanted)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Whether pymilvus may log an error: of a request of ours it is raised, and said once."""
    del record
    return not _quiet.get()


@contextmanager
def silent() -> Iterator[None]:
    """Have pymilvus log nothing of the requests in a block."""
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)
