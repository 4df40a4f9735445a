"""Workers, as seen by the process that uses them and from inside.

A worker has one core and no GPU, so that its vectors do not depend on the number of workers, and keeps its open models.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from nlp_retrieval import errors
from nlp_retrieval.core.processes import limit_cores
from nlp_retrieval.errors import RetrievalError, WorkerError, first_line


class WorkerLostError(Exception):
    """A worker ended before it answered; the message says how. Another worker gets its block."""


class NoRoomError(Exception):
    """A worker cannot be started for now: the cluster has no room for it."""


@dataclass(frozen=True)
class Confirmed:
    """Report of a worker before its first block.

    Args:
        place: the node and the process, for messages.
        facts: by name, values that must be the same everywhere; ``trial``, if present, only among the workers.
    """

    place: str
    facts: dict[str, str]

    def difference(self, ours: dict[str, str]) -> str:
        """Return the differences from the process that asked, with both values; empty if there are none."""
        theirs = {key: value for key, value in self.facts.items() if key != "trial"}
        for key in sorted(ours | theirs):
            if ours.get(key) != theirs.get(key):
                return f"{key} than this process: {theirs.get(key, 'none')} instead of {ours.get(key, 'none')}"
        return ""


class Work(Protocol):
    """A task, from inside of a worker."""

    def confirmed(self, place: str) -> Confirmed:
        """Open what the task needs, and report what it is."""

    def done(self, work: object) -> object:
        """Do a block; the result says which block it was made of."""


class Task(Protocol):
    """A task for workers to do with blocks; it is sent to them unchanged."""

    @property
    def key(self) -> str:
        """Key of the task, equal for equal tasks."""

    def require_sendable(self) -> None:
        """Raise a :class:`ConfigurationError` if another process could not do it."""

    def facts(self) -> dict[str, str]:
        """Return what must be equal wherever it is done, as this process has it."""

    def elsewhere(self) -> Work:
        """This task in the worker process."""


class TaskBlock(Protocol):
    """A part of a task, which one worker does; its text names it in messages."""

    @property
    def number(self) -> int:
        """Its position among the blocks of one call."""

    @property
    def work(self) -> object:
        """Return the data to send to a worker."""

    def fits(self, answer: object) -> bool:
        """Return whether a result was made of this block, and is unchanged since the worker sent it."""


@dataclass(frozen=True)
class Failure:
    """An error inside a worker that goes on: of the code it ran, not the end of the worker.

    Args:
        kind: name of the exception's class.
        message: of the exception; for exceptions that are not this package's, the first line.
    """

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return what to send of an exception."""
        return cls(type(error).__name__, str(error) if isinstance(error, RetrievalError) else first_line(error))

    def error(self, doing: str) -> RetrievalError:
        """The exception to raise for it: the same, if it is one of this package, otherwise a :class:`WorkerError`."""
        cls = getattr(errors, self.kind, None)
        if isinstance(cls, type) and issubclass(cls, RetrievalError):
            return cls(self.message)
        return WorkerError(f"{doing}: {self.kind}: {self.message}")


class Worker(ABC):
    """A worker, as seen by the process that uses it. One thread talks to it."""

    place = "a worker"
    """Location where it runs, for messages."""

    @abstractmethod
    def ask(self, doing: str, task: Task) -> Confirmed | Failure:
        """Let it open a task.

        Args:
            doing: key of the task.
            task: the task.

        Raises:
            WorkerLostError: it ended.
            NoRoomError: it did not start, because there is no room for it.
        """

    @abstractmethod
    def do(self, doing: str, work: object) -> object:
        """Let it do a block of a task that it has opened; a :class:`Failure` is an answer too.

        Raises:
            WorkerLostError: it ended.
        """

    @abstractmethod
    def close(self) -> None:
        """End it, even if it is busy; it may have ended already."""


class WorkerSide:
    """A worker, from inside: the tasks that it has opened, with their models."""

    def __init__(self) -> None:
        limit_cores(1)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # or all workers would put their models on the first GPU
        self._tasks: dict[str, Work] = {}

    def ask(self, doing: str, task: Task) -> Confirmed | Failure:
        """Open a task, and report what was opened; see :meth:`Worker.ask`."""
        try:
            self._tasks[doing] = task.elsewhere()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the parent process has the same components, which produced them
                return self._tasks[doing].confirmed(self.place())
        except Exception as error:  # any exception of a component is reported to the parent process
            return Failure.of(error)

    def do(self, doing: str, work: object) -> object:
        """Do a block; see :meth:`Worker.do`."""
        try:
            return self._tasks[doing].done(work)
        except Exception as error:  # any exception of a component is reported to the parent process
            return Failure.of(error)

    def place(self) -> str:
        """Return the place where this runs, for messages."""
        return f"process {os.getpid()}"
