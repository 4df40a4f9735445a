"""Notes of a search: what was skipped or found nothing, and what to do about it.

Python and the command line show them as warnings. Services (HTTP, MCP) collect them and send them with the
answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nlp_retrieval.errors import RetrievalWarning

ENCODER_LIMIT = "the encoder reads", "where the model can read more, raise max_length; or index smaller chunks"
"""Limit and cure of encoders, for :func:`warn_of_cut`."""

__all__ = ["ENCODER_LIMIT", "add_note", "collected_notes", "suppress_empty_notes", "warn_of_cut", "warns_of_empty"]

_collecting: ContextVar[list[str] | None] = ContextVar("nlp_retrieval_notes", default=None)
_suppressed: ContextVar[bool] = ContextVar("nlp_retrieval_empty_notes_suppressed", default=False)


def add_note(note: str, stacklevel: int = 2) -> None:
    """Add a note to the collected ones, or warn.

    Args:
        note: a sentence or two.
        stacklevel: as of ``warnings.warn``, counted from the caller.
    """
    notes = _collecting.get()
    if notes is None:
        warnings.warn(note, RetrievalWarning, stacklevel=stacklevel + 1)
    elif note not in notes:
        notes.append(note)


def warn_of_cut(retriever: str, n_cut: int, n_texts: int, limit: str, cure: str, what: str = "passages") -> None:
    """Warn that the rest of long texts is ignored; do nothing if no text was cut.

    Args:
        retriever: name of the retriever.
        n_cut: how many texts were cut.
        n_texts: total number of texts.
        limit: the limit that they exceed.
        cure: the suggested fix.
        what: description of the texts.
    """
    if n_cut:
        add_note(
            f"{retriever}: {n_cut:,} of {n_texts:,} {what} are longer than {limit}; the rest of each is left out ({cure})", 3
        )


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect the notes of searches inside the block, in this thread, instead of warning."""
    notes: list[str] = []
    token = _collecting.set(notes)
    try:
        yield notes
    finally:
        _collecting.reset(token)


@contextmanager
def suppress_empty_notes() -> Iterator[None]:
    """Suppress notes about searches inside the block that find nothing: the caller reports it."""
    token = _suppressed.set(True)
    try:
        yield
    finally:
        _suppressed.reset(token)


def warns_of_empty() -> bool:
    """Return whether a search that finds nothing gets a note."""
    return not _suppressed.get()
