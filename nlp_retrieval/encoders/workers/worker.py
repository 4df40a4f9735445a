"""What a worker is: seen from the process that asks it, and from inside.

A worker has one core and no GPU, so that its vectors do not depend on how many workers there are, and keeps the models that it
opened.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from nlp_retrieval import errors
from nlp_retrieval.core.cores import limit_cores
from nlp_retrieval.errors import RetrievalError, WorkerError, first_line


class WorkerLostError(Exception):
    """A worker ended before it answered; the message says how. Its block is given to another one."""


class NoRoomError(Exception):
    """A worker cannot be started for now: the cluster has no place for it."""


@dataclass(frozen=True)
class Confirmed:
    """What a worker found before its first block.

    Args:
        place: the node and the process, for messages.
        facts: by name, what must be the same everywhere; ``trial``, where there is one, must be so among the workers.
    """

    place: str
    facts: dict[str, str]

    def difference(self, ours: dict[str, str]) -> str:
        """Return what is other here than in the process that asked, with both values; empty where nothing is."""
        theirs = {key: value for key, value in self.facts.items() if key != "trial"}
        for key in sorted(ours | theirs):
            if ours.get(key) != theirs.get(key):
                return f"{key} than this process: {theirs.get(key, 'none')} instead of {ours.get(key, 'none')}"
        return ""


class Work(Protocol):
    """A task, from inside of a worker."""

    def confirmed(self, place: str) -> Confirmed:
        """Open what the task needs, and say what was found."""

    def done(self, work: object) -> object:
        """Do a block; what comes back tells what it was made of."""


class Task(Protocol):
    """What workers are asked to do with blocks; it travels to them as it is."""

    @property
    def key(self) -> str:
        """The same for tasks that do the same."""

    def require_sendable(self) -> None:
        """Raise a :class:`ConfigurationError` where another process could not do it."""

    def facts(self) -> dict[str, str]:
        """Return what must be the same where it is done, as this process has it."""

    def elsewhere(self) -> Work:
        """This task in the process that it was sent to."""


class TaskBlock(Protocol):
    """A part of a task, which one worker does; as a text it is named in messages."""

    @property
    def number(self) -> int:
        """Its place among those of one call."""

    @property
    def work(self) -> object:
        """Return what a worker is sent."""

    def fits(self, answer: object) -> bool:
        """Return whether what came back was made of this block, and is what the worker had sent."""


@dataclass(frozen=True)
class Failure:
    """What went wrong inside a worker that goes on: not its end, but an error of what it ran.

    Args:
        kind: name of the exception's class.
        message: what it says; of exceptions that are not this package's, the first line.
    """

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return what to send of an exception."""
        return cls(type(error).__name__, str(error) if isinstance(error, RetrievalError) else first_line(error))

    def error(self, doing: str) -> RetrievalError:
        """The exception to raise for it: the same, if it is one of this package, and otherwise a :class:`WorkerError`."""
        cls = getattr(errors, self.kind, None)
        if isinstance(cls, type) and issubclass(cls, RetrievalError):
            return cls(self.message)
        return WorkerError(f"{doing}: {self.kind}: {self.message}")


class Worker(ABC):
    """A worker, as the process sees it that asks it. One thread speaks with it."""

    place = "a worker"
    """Where it runs, for messages."""

    @abstractmethod
    def ask(self, doing: str, task: Task) -> Confirmed | Failure:
        """Have it take up a task.

        Args:
            doing: key of the task.
            task: the task.

        Raises:
            WorkerLostError: it ended.
            NoRoomError: it did not start, because there is no place for it.
        """

    @abstractmethod
    def do(self, doing: str, work: object) -> object:
        """Have it do a block of a task that it has taken up; a :class:`Failure` is an answer too.

        Raises:
            WorkerLostError: it ended.
        """

    @abstractmethod
    def close(self) -> None:
        """End it, whatever it does; it may have ended."""


class WorkerSide:
    """A worker, from inside: the tasks that it has taken up, with their models."""

    def __init__(self) -> None:
        limit_cores(1)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # or all workers would put their models on the first GPU
        self._tasks: dict[str, Work] = {}

    def ask(self, doing: str, task: Task) -> Confirmed | Failure:
        """Take up a task, and say what was found; see :meth:`Worker.ask`."""
        try:
            self._tasks[doing] = task.elsewhere()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the process that asks has the same components, which gave them
                return self._tasks[doing].confirmed(self.place())
        except Exception as error:  # whatever a component raises is told where its work was asked for
            return Failure.of(error)

    def do(self, doing: str, work: object) -> object:
        """Do a block; see :meth:`Worker.do`."""
        try:
            return self._tasks[doing].done(work)
        except Exception as error:  # whatever a component raises is told where its work was asked for
            return Failure.of(error)

    def place(self) -> str:
        """Return where this runs, for messages."""
        return f"process {os.getpid()}"
