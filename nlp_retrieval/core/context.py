"""What a search or a build carries past code that is not its own: an engine, a processor or a reranker of any package.

Threads see it if they run in a copy of the caller's context.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from nlp_retrieval.errors import ConfigurationError, RetrievalWarning

MOST_WORKERS = 4096


@dataclass
class Workers:
    """Workers of one call, which encode the passages of an index or search; they start when they are first needed."""

    n: int | None = None
    ray: str | None = None
    started: Any = None

    def __post_init__(self) -> None:
        if self.n is not None and not (type(self.n) is int and 1 <= self.n <= MOST_WORKERS):
            raise ConfigurationError(
                f"workers={self.n!r}: expected a whole number of processes from 1 to {MOST_WORKERS:,}; 1 is this one alone"
            )
        if self.ray is not None and (not isinstance(self.ray, str) or not self.ray.strip()):
            raise ConfigurationError(f"ray={self.ray!r}: expected 'auto', or the address of a cluster such as '10.0.0.5:6379'")

    @property
    def elsewhere(self) -> bool:
        """Return whether anything is encoded outside of this process."""
        return self.ray is not None or (self.n or 1) > 1

    def pool(self, start: Callable[[Workers], Any]) -> Any:
        """Return the pool of this call; if there is none yet, ``start`` starts it."""
        self.started = self.started or start(self)
        return self.started


@dataclass(frozen=True)
class SearchContext:
    """The surroundings of a search or a build."""

    stages: object | None = None
    encoded: list[tuple[object, list[str], Any]] | None = None
    notes: list[str] | None = None
    notes_empty: bool = True
    seconds: dict[str, float] | None = None
    workers: Workers | None = None
    writer: Any = None
    abandoned: Event | None = None
    spans: Callable[[str, Mapping[str, str]], AbstractContextManager[object]] | None = None
    record: Callable[[Mapping[str, Any]], None] | None = None

    def span(self, name: str, **attributes: str) -> AbstractContextManager[object]:
        """Make the block a span of the current trace, if there is one."""
        return nullcontext() if self.spans is None else self.spans(name, attributes)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds of the block to those of a stage, and make it a span."""
        begin = time.perf_counter()
        try:
            with self.span(name):
                yield
        finally:
            if self.seconds is not None:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


_current: ContextVar[SearchContext] = ContextVar("nlp_retrieval", default=SearchContext())  # noqa: B039 -- it is frozen


def search_context() -> SearchContext:
    """Return the context of the running call."""
    return _current.get()


@contextmanager
def changed_context(**changes: Any) -> Iterator[SearchContext]:
    """Run the block in the current context with some fields changed."""
    context = replace(search_context(), **changes)
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def stage(name: str) -> AbstractContextManager[None]:
    """Mark a stage; its seconds are added to those of earlier runs of the same stage.

    Examples:
        >>> with stage("rewrite"):
        ...     query = "what do whales eat".upper()
    """
    return _current.get().stage(name)


@contextmanager
def record_stages() -> Iterator[dict[str, float]]:
    """Collect the seconds of every search inside the block by stage, in order of first appearance."""
    seconds: dict[str, float] = {}
    with changed_context(seconds=seconds):
        yield seconds


@contextmanager
def record_steps(steps: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Record what the block does, and nothing that it calls for that, as steps of an agent, if somebody records.

    Steps are dicts of fields of :class:`~nlp_retrieval.agents.AgentStep`, which the block completes by what a search found; it
    gets none if nobody records.

    Examples:
        >>> from nlp_retrieval.agents import recording
        >>> with recording(question_id="q1") as session:
        ...     with record_steps([{"kind": "open", "item_id": "whale"}]):
        ...         text = "A whale eats krill."
        >>> session.steps[0].item_id
        'whale'
    """
    record = _current.get().record
    if record is None:
        yield []
        return
    recorded, begin, error = [dict(step) for step in steps], time.perf_counter(), ""
    try:
        with changed_context(record=None):
            yield recorded
    except BaseException as failure:
        error = str(failure) or type(failure).__name__
        raise
    finally:
        seconds = (time.perf_counter() - begin) / max(1, len(recorded))
        for step in recorded:
            record(step | {"seconds": seconds, "error": error})


def search_steps(queries: Iterable[str], k: int, where: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Return a step for each query, for :func:`record_steps`."""
    return ({"kind": "search", "query": query, "k": k, "where": where} for query in queries)


# Notes: what was skipped or found nothing, and what to do about it.

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def add_note(note: str) -> None:
    """Add a note, a sentence or two, to the collected ones, or warn with the line outside of this package that asked for it.

    Examples:
        >>> with collected_notes() as notes:
        ...     add_note("2 queries found nothing")
        >>> notes
        ['2 queries found nothing']
    """
    notes = _current.get().notes
    if notes is None:
        level, frame = 2, sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            level, frame = level + 1, frame.f_back
        warnings.warn(note, RetrievalWarning, stacklevel=level)
    elif note not in notes:
        notes.append(note)


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect the notes of searches inside the block, in this thread, instead of warning.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> with collected_notes() as notes:
        ...     hits = searcher.search("bicycle")
        >>> len(notes)
        1
    """
    notes: list[str] = []
    with changed_context(notes=notes):
        yield notes


def suppress_empty_notes() -> AbstractContextManager[SearchContext]:
    """Suppress notes about searches inside the block that find nothing: the caller reports it.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> with suppress_empty_notes():
        ...     (hits,) = searcher.search("bicycle")
        >>> len(hits)
        0
    """
    return changed_context(notes_empty=False)


def encoding_once() -> AbstractContextManager[SearchContext]:
    """Let the searches inside the block encode the same queries with the same encoder only once."""
    known = _current.get().encoded
    return changed_context(encoded=[] if known is None else known)


@contextmanager
def use_workers(wanted: Workers) -> Iterator[None]:
    """Let these workers encode the passages of everything built inside the block, and end them afterwards."""
    try:
        with changed_context(workers=wanted if wanted.elsewhere else search_context().workers):
            yield
    finally:
        if wanted.started is not None:
            wanted.started.close()
