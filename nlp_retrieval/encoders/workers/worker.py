"""What a worker is: seen from the process that asks it, and from inside.

A worker has one core, so that its vectors do not depend on how many workers there are, and keeps the models that it opened.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass

from nlp_retrieval import errors
from nlp_retrieval.core.blocks.encoded import EncodedBlock
from nlp_retrieval.core.cores import limit_cores
from nlp_retrieval.encoders.workers.task import Confirmed, PassageTask, confirmed
from nlp_retrieval.errors import RetrievalError, RetrievalWarning, WorkerError, first_line


class WorkerLostError(Exception):
    """A worker ended before it answered; the message says how. Its block is given to another one."""


class NoRoomError(Exception):
    """A worker cannot be started for now: the cluster has no place for it."""


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
        """What to send of an exception."""
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
    def ask(self, doing: str, task: PassageTask) -> Confirmed | Failure:
        """Have it take up a task.

        Args:
            doing: key of the task.
            task: the task.

        Raises:
            WorkerLostError: it ended.
            NoRoomError: it did not start, because there is no place for it.
        """

    @abstractmethod
    def encode(self, doing: str, texts: list[str]) -> EncodedBlock | Failure:
        """Have it encode a block by a task that it has taken up.

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
        self._tasks: dict[str, PassageTask] = {}

    def ask(self, doing: str, task: PassageTask) -> Confirmed | Failure:
        """Take up a task, and say what was found; see :meth:`Worker.ask`."""
        try:
            self._tasks[doing] = task.elsewhere()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the process that asks has an equal encoder, which gave them
                return confirmed(self._tasks[doing], self.place())
        except Exception as error:  # whatever an encoder raises is told where its work was asked for
            return Failure.of(error)

    def encode(self, doing: str, texts: list[str]) -> EncodedBlock | Failure:
        """Encode a block; see :meth:`Worker.encode`."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", RetrievalWarning)
                batch = self._tasks[doing](texts)
        except Exception as error:  # whatever an encoder raises is told where its work was asked for
            return Failure.of(error)
        warned = [str(warning.message) for warning in caught if issubclass(warning.category, RetrievalWarning)]
        return EncodedBlock.of(batch, texts, warned)

    def place(self) -> str:
        """Where this runs, for messages."""
        return f"process {os.getpid()}"
