"""Log of a study: silent without a handler; in a file, its lines have time, level and a mark.

``[4_RETRIEVE]`` marks the run, ``[VECTOR_SIMILARITY]`` and ``[HOP_RETRIEVE]`` its two methods. Errors are raised as well as
logged. No line holds a secret, a line end or a terminal command.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from nlp_retrieval.core import without_secrets
from nlp_retrieval.errors import ConfigurationError, OutputError, nearest
from nlp_retrieval.text import printable

__all__ = ["LOGGER", "MARKS", "log_to", "note"]

LOGGER = logging.getLogger("nlp_retrieval.policy")
LOGGER.addHandler(logging.NullHandler())

MARKS = {"vector": "[VECTOR_SIMILARITY]", "hop": "[HOP_RETRIEVE]", "run": "[4_RETRIEVE]"}

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_LARGEST = 5_000_000
_KEPT = 3


def note(level: int, mark: str, message: str) -> None:
    """Write a line to the log, if it has a handler."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s %s", MARKS[mark], printable(str(without_secrets(message))))


@contextmanager
def log_to(path: Path | None, level: str = "INFO") -> Iterator[None]:
    """Write the log to a file as well: up to 5 MB, and three older files of that size."""
    chosen = level.upper()
    if chosen not in _LEVELS:
        raise ConfigurationError(f"there is no log level {level!r}; {nearest(chosen, _LEVELS)}")
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=_LARGEST, backupCount=_KEPT, encoding="utf-8", errors="replace")
    except OSError as error:
        raise OutputError(f"{path}: cannot write the log ({error.strerror or error}); choose another path") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(chosen)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)
        handler.close()
