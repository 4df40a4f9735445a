"""Workers: processes of one core each that do the blocks of a task, and give the results of a single process.

A worker has no GPU, so that its vectors do not depend on the number of workers, and keeps its open models. Processes of this
machine are started as new ones and never forked, because torch and FAISS do not survive a fork; :mod:`.cluster` has those of a
Ray cluster. Blocks go to whichever worker is free and come back in order; only a few per worker are in memory. The block of a
lost worker goes to another one; a block that repeatedly ends its worker is replaced by an error. Pools of the standard library
and of joblib give up all blocks when one process is lost.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol, cast

from nlp_retrieval import errors
from nlp_retrieval.core.processes import Lock, limit_cores, threads_of
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.errors import RetrievalError, WorkerError, first_line

ATTEMPTS = 3
"""Most workers that may be lost over one block."""

_AHEAD = 3
"""Blocks per worker that are out, or wait for an earlier one."""

_ADVICE = (
    "where the system killed them for memory, use fewer workers, or an encoder with a smaller batch_size; the same call goes "
    "on from what was done"
)
_LIMITS = "use fewer workers, or allow this user more processes, open files and memory (see ulimit -a)"
_GRACE = 5.0
"""Seconds that a process may take to end by itself after its connection is closed."""

_PARENT_CHECK_SECONDS = 0.5


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
        """Return the first difference from the process that asked, with both values; empty if there is none."""
        theirs = {key: value for key, value in self.facts.items() if key != "trial"}
        for key in sorted(ours | theirs):
            if ours.get(key) != theirs.get(key):
                return f"{key} than this process: {theirs.get(key, 'none')} instead of {ours.get(key, 'none')}"
        return ""


@dataclass(frozen=True)
class Failure:
    """An error of the code that a worker runs; the worker goes on.

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
        """Return the exception to raise: the same, if it is one of this package, otherwise a :class:`WorkerError`."""
        cls = getattr(errors, self.kind, None)
        if isinstance(cls, type) and issubclass(cls, RetrievalError):
            return cls(self.message)
        return WorkerError(f"{doing}: {self.kind}: {self.message}")


class Work(Protocol):
    """A task inside a worker."""

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
        """Return this task in the worker process."""


class TaskBlock(Protocol):
    """A part of a task, which one worker does; its text names it in messages."""

    @property
    def number(self) -> int:
        """Its position among the blocks of one call."""

    @property
    def work(self) -> object:
        """The data to send to a worker."""

    def fits(self, answer: object) -> bool:
        """Return whether a result was made of this block, and is unchanged since the worker sent it."""


# Inside a worker.


class WorkerSide:
    """The tasks that a worker has opened, with their models."""

    def __init__(self) -> None:
        limit_cores(1)
        DISPLAY.mode = "off"  # the parent reports
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


def serve_parent(descriptor: int) -> None:
    """Answer the requests of the parent process, one at a time, until it closes the other end of the socket or ends."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    connection: Connection[Any, Any] = Connection(descriptor)
    side = WorkerSide()
    while True:
        try:
            request, *arguments = connection.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # the object sent cannot be created here: a module is missing
            connection.send(Failure.of(error))
            continue
        connection.send(side.ask(*arguments) if request == "ask" else side.do(*arguments))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


# As seen by the process that uses them.


class Worker(ABC):
    """A worker, as seen by the process that uses it. One thread at a time talks to it."""

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


class ProcessWorker(Worker):
    """A process of this machine, connected by a private pair of sockets; it does not see this process's terminal."""

    def __init__(self) -> None:
        with ExitStack() as unless_started:
            try:
                self._messages = unless_started.enter_context(TemporaryFile())
                ours, theirs = socket.socketpair()
                with ours, theirs:
                    self._process = _started(theirs, self._messages)
                    self._connection: Connection[Any, Any] = Connection(ours.detach())
            except OSError as error:  # a build would take it for a file of the index folder
                raise WorkerError(f"a worker process cannot be started: {error.strerror or error}; {_LIMITS}") from error
            unless_started.pop_all()  # the file lives as long as the worker
        self.place = f"worker process {self._process.pid}"

    def ask(self, doing: str, task: Task) -> Confirmed | Failure:
        return cast("Confirmed | Failure", self._answer("ask", doing, task))

    def do(self, doing: str, work: object) -> object:
        return self._answer("do", doing, work)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._messages.close()
        self._connection.close()

    def _answer(self, *asked: object) -> object:
        try:
            self._connection.send(asked)
            return self._connection.recv()
        except (EOFError, OSError):
            raise WorkerLostError(f"{self.place} {self._exit_reason()}") from None

    def _exit_reason(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        status = self._process.poll()
        if status is not None and status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
            return f"was ended by {name}"
        with suppress(OSError, ValueError):
            self._messages.seek(max(0, self._messages.seek(0, os.SEEK_END) - 500))
            last = self._messages.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            return f"ended with status {status}: {' '.join(last)[:200]}"
        return "was ended"


def _started(theirs: socket.socket, messages: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- this package, by this Python
        [sys.executable, "-P", "-c", f"from {__name__} import serve_parent; serve_parent({theirs.fileno()})"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=messages,
        env=os.environ | threads_of(1) | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        pass_fds=[theirs.fileno()],
        start_new_session=True,  # Ctrl-C is for the parent process, which ends this one
    )


def local_pool(n_workers: int) -> WorkerPool:
    """Return a pool of processes of this machine, one core each."""
    return WorkerPool(ProcessWorker, n_workers, _ADVICE)


class WorkerPool:
    """Workers that are started when there is work for them, and keep their models until the pool is closed.

    Args:
        start: starts a worker.
        n_workers: most workers.
        advice: what to do about lost workers, for messages.
    """

    def __init__(self, start: Callable[[], Worker], n_workers: int, advice: str) -> None:
        self.start, self.n_workers, self.advice = start, n_workers, advice
        self.workers: dict[int, Worker] = {}
        """By slot; a slot has one worker after another."""
        self.opened: set[tuple[int, str]] = set()
        """Slots whose worker has opened a task, with the key of the task."""
        self.trials: dict[str, Confirmed] = {}
        self.broken: WorkerError | None = None
        self.call: _Call | None = None
        self.changing = Lock()
        self._closing: list[Callable[[], None]] = []

    def done(self, task: Task, blocks: Iterable[TaskBlock]) -> Generator[tuple[TaskBlock, object], None, None]:
        """Do the blocks of a task, and yield each with its result, in order: an answer, or a :class:`RetrievalError`.

        Args:
            task: what to do.
            blocks: read as workers become free.

        Raises:
            ConfigurationError: the task cannot be sent to another process.
            WorkerError: there are no workers, or one has other versions or other data.
        """
        task.require_sendable()
        call = self.call = _Call(self, task)
        out: deque[tuple[TaskBlock, Future[object]]] = deque()
        try:
            for block in blocks:
                out.append((block, call.submit(block)))
                if len(out) == _AHEAD * self.n_workers:
                    oldest, future = out.popleft()
                    yield oldest, call.result(future)
            while out:
                oldest, future = out.popleft()
                yield oldest, call.result(future)
        finally:
            call.end()

    def give_up(self, error: WorkerError) -> None:
        """End the call with an error now: the workers' cluster is gone, so they cannot even be stopped."""
        self.broken = error
        if self.call is not None:
            self.call.fail(error)

    def at_the_end(self, close: Callable[[], None]) -> None:
        """Register a function to call when the pool is closed, after its workers have ended."""
        self._closing.append(close)

    def drop(self, slot: int) -> None:
        """End the worker of a slot; the next block there starts another."""
        with self.changing:
            worker = self.workers.pop(slot, None)
            self.opened -= {opened for opened in self.opened if opened[0] == slot}
        if worker is not None and self.broken is None:
            worker.close()

    def close(self) -> None:
        """End all workers, even busy ones."""
        if self.call is not None:
            self.call.end()
        for slot in list(self.workers):
            self.drop(slot)
        while self._closing:
            self._closing.pop()()


class _Call:
    """One call: its blocks, and a thread for each worker that has some of them."""

    def __init__(self, pool: WorkerPool, task: Task) -> None:
        self._pool, self._task, self._doing = pool, task, task.key
        self._facts = task.facts()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[TaskBlock, Future[object]]] = deque()
        self._lost: dict[int, int] = {}
        self._failed: Future[object] = Future()
        """Holds the error that ends the call."""
        self._ended = False
        self._threads: list[threading.Thread] = []
        # workers of the previous call come first: they hold cores that a new one would wait for
        self._slots = sorted(range(pool.n_workers), key=lambda slot: slot not in pool.workers)
        self._busy: set[int] = set()
        self._alive = 0
        if pool.broken is not None:
            self.fail(pool.broken)

    def submit(self, block: TaskBlock) -> Future[object]:
        """Give a block to any free worker."""
        future: Future[object] = Future()
        with self._changed:
            self._waiting.append((block, future))
            self._changed.notify_all()
            if self._slots:
                self._threads.append(threading.Thread(target=self._serve, args=(self._slots.pop(0),), daemon=True))
                self._alive += 1
                self._threads[-1].start()
        return future

    def result(self, future: Future[object]) -> object:
        """Wait for a block, and return its answer, or the error in its place; raise the error that ends the call."""
        wait([future, self._failed], return_when=FIRST_COMPLETED)
        return self._failed.result() if self._failed.done() else future.result()

    def end(self) -> None:
        """End the threads, and the workers that are still busy."""
        with self._changed:
            self._ended = True
            busy = set(self._busy)
            self._changed.notify_all()
        for slot in busy:
            self._pool.drop(slot)
        for thread in self._threads:
            thread.join()

    def fail(self, error: BaseException) -> None:
        """End the call with an error, if there is none yet."""
        with self._changed:
            if not self._failed.done():
                self._failed.set_exception(error)
            self._changed.notify_all()

    @property
    def _is_over(self) -> bool:
        return self._ended or self._failed.done()

    def _serve(self, slot: int) -> None:
        try:
            while (worker := self._ready(slot)) is not None and (job := self._next(slot)) is not None:
                self._run_block(worker, slot, *job)
        except BaseException as error:
            self.fail(error)
        with self._changed:
            self._busy.discard(slot)

    def _next(self, slot: int) -> tuple[TaskBlock, Future[object]] | None:
        with self._changed:
            self._busy.discard(slot)
            while not self._waiting and not self._is_over:
                self._changed.wait()
            if self._is_over:
                return None
            self._busy.add(slot)
            return self._waiting.popleft()

    def _run_block(self, worker: Worker, slot: int, block: TaskBlock, future: Future[object]) -> None:
        try:
            future.set_result(self._answer(worker, block))
        except WorkerLostError as error:
            self._pool.drop(slot)
            lost = self._lost[block.number] = self._lost.get(block.number, 0) + 1
            if lost == ATTEMPTS:
                future.set_result(WorkerError(f"{lost} workers were lost over {block}, the last: {error}; {self._pool.advice}"))
                return
            with self._changed:
                self._waiting.appendleft((block, future))
                self._changed.notify_all()

    def _answer(self, worker: Worker, block: TaskBlock) -> object:
        answer = worker.do(self._doing, block.work)
        if isinstance(answer, Failure):
            return answer.error(f"{worker.place} failed at {block}")
        if not block.fits(answer):
            raise WorkerLostError(f"{worker.place} sent an unexpected answer")
        return answer

    def _give_up_worker(self, why: str) -> None:
        """Continue without a worker; check in the same step that others are left, or the last two would rely on each other."""
        with self._changed:
            self._alive -= 1
            if self._alive < 1:
                raise WorkerError(f"no worker is left: {why}; {self._pool.advice}")

    def _ready(self, slot: int) -> Worker | None:
        """Return the worker of a slot, with this task opened; None if there is no room for it, or the call is over."""
        lost = 0
        while not self._is_over:
            with self._changed:
                self._busy.add(slot)
            try:
                return self._opened(slot)
            except WorkerLostError as error:
                self._pool.drop(slot)
                lost += 1
                if lost >= ATTEMPTS and not self._is_over:
                    raise WorkerError(
                        f"{lost} workers were lost before their first block, the last: {error}; {self._pool.advice}"
                    ) from None
            except NoRoomError as error:
                self._pool.drop(slot)
                self._give_up_worker(str(error))
                return None
        return None

    def _opened(self, slot: int) -> Worker:
        pool = self._pool
        worker = pool.workers.get(slot)
        if worker is None:
            worker = pool.start()
            with pool.changing:
                pool.workers[slot] = worker
            if self._is_over:
                raise WorkerLostError("it is no longer needed")
        if (slot, self._doing) not in pool.opened:
            answer = worker.ask(self._doing, self._task)
            if isinstance(answer, Failure):
                raise answer.error(f"{worker.place} cannot open {self._task}")
            if not isinstance(answer, Confirmed):
                raise WorkerLostError(f"{worker.place} sent an unexpected answer")
            self._require_alike(answer)
            with pool.changing:
                pool.opened |= {(slot, self._doing)}
        return worker

    def _require_alike(self, worker: Confirmed) -> None:
        """Raise a :class:`WorkerError` unless a worker has what this process has, and computes the same as other workers."""
        if other := worker.difference(self._facts):
            raise WorkerError(f"{worker.place} has another {other}; install the same versions, models and code on all nodes")
        with self._pool.changing:
            first = self._pool.trials.setdefault(self._doing, worker)
        if first.facts.get("trial") != worker.facts.get("trial"):
            raise WorkerError(
                f"{worker.place} computes other vectors than {first.place} for the same texts; they probably have different "
                "processors: the index would depend on who encodes what; use nodes of one kind"
            )
