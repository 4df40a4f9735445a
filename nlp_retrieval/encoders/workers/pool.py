"""A pool of workers: blocks go to whichever worker is free, and come back in order.

Each worker has a thread here that talks to it and waits for it. The block of a lost worker goes to another one; a block that
repeatedly ends its worker is replaced by an error. Only a few blocks per worker are in memory, and the results are those of a
single process.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing

from nlp_retrieval.core.blocks import EncodedBatch, EncodedBlock, WorkBlock, blocks_of
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.encoders.workers.task import PassageTask
from nlp_retrieval.encoders.workers.worker import Confirmed, Failure, NoRoomError, Task, TaskBlock, Worker, WorkerLostError
from nlp_retrieval.errors import RetrievalError, RetrievalWarning, WorkerError

ATTEMPTS = 3
"""Most workers that may be lost over one block."""

_AHEAD = 3
"""Blocks per worker that are out, or wait for an earlier one."""


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
        self.taken: set[tuple[int, str]] = set()
        self.trials: dict[str, Confirmed] = {}
        self.broken: WorkerError | None = None
        self._closing: list[Callable[[], None]] = []
        self._run: _Call | None = None
        self._changing = Lock()

    def encoded(self, task: PassageTask, batches: Iterator[list[str]]) -> Generator[tuple[list[str], EncodedBatch], None, None]:
        """Encode batches, and yield each with its texts, in order.

        Args:
            task: encodes them.
            batches: the passages; read as workers become free.

        Raises:
            ConfigurationError: the encoder cannot be sent to another process.
            ModelError: vectors that cannot be searched.
            WorkerError: workers are lost repeatedly, there are none, or one has other versions or another model.
        """
        with closing(self.done(task, blocks_of(batches, task.dimension))) as blocks:
            for block, encoded in blocks:
                if isinstance(encoded, RetrievalError):
                    raise encoded
                if isinstance(block, WorkBlock) and isinstance(encoded, EncodedBlock):
                    for message in encoded.warned:
                        warnings.warn(message, RetrievalWarning, stacklevel=2)
                    yield block.texts, encoded.batch

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
        run = self._run = _Call(self, task)
        waiting: deque[TaskBlock] = deque()
        try:
            for block in blocks:
                run.submit(block)
                waiting.append(block)
                if len(waiting) < _AHEAD * self.n_workers:
                    continue
                oldest = waiting.popleft()
                yield oldest, run.result(oldest)
            while waiting:
                oldest = waiting.popleft()
                yield oldest, run.result(oldest)
        finally:
            run.end()

    def give_up(self, error: WorkerError) -> None:
        """End the call with an error now: the workers' cluster is gone, so they cannot even be stopped."""
        self.broken = error
        if self._run is not None:
            self._run.fail(error)

    def at_the_end(self, close: Callable[[], None]) -> None:
        """Register a function to call when the pool is closed, after its workers have ended."""
        self._closing.append(close)

    def added(self, slot: int, worker: Worker) -> Worker:
        """Return a worker that was started for a slot."""
        with self._changing:
            self.workers[slot] = worker
        return worker

    def took(self, slot: int, doing: str) -> None:
        """Remember that the worker of a slot has opened a task."""
        with self._changing:
            self.taken |= {(slot, doing)}

    def drop(self, slot: int) -> None:
        """End the worker of a slot; the next block there starts another."""
        with self._changing:
            worker = self.workers.pop(slot, None)
            self.taken -= {taken for taken in self.taken if taken[0] == slot}
        if worker is not None and self.broken is None:
            worker.close()

    def close(self) -> None:
        """End all workers, even busy ones."""
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
        self._todo: deque[TaskBlock] = deque()
        self._done: dict[int, object] = {}
        self._lost: dict[int, int] = {}
        self._error: BaseException | None = pool.broken
        self._ended = False
        self._threads: list[threading.Thread] = []
        # workers of the previous call come first: they hold cores that a new one would wait for
        self._slots = sorted(range(pool.n_workers), key=lambda slot: slot not in pool.workers)
        self._busy: set[int] = set()
        self._alive = 0

    def submit(self, block: TaskBlock) -> None:
        """Give a block to any free worker."""
        with self._changed:
            self._todo.append(block)
            self._changed.notify_all()
            if self._slots:
                self._threads.append(threading.Thread(target=self._serve, args=(self._slots.pop(0),), daemon=True))
                self._alive += 1
                self._threads[-1].start()

    def result(self, block: TaskBlock) -> object:
        """Wait for a block, and return its answer, or the error in its place."""
        with self._changed:
            while block.number not in self._done and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            return self._done.pop(block.number)

    def end(self) -> None:
        """End the threads, and the workers that are still busy."""
        with self._changed:
            self._ended = True
            self._todo.clear()
            busy = set(self._busy)
            self._changed.notify_all()
        for slot in busy:
            self._pool.drop(slot)
        for thread in self._threads:
            thread.join()

    def _serve(self, slot: int) -> None:
        try:
            while (worker := self._ready(slot)) is not None and (block := self._next(slot)) is not None:
                self._do(block, worker, slot)
        except BaseException as error:  # raised by the thread that waits for the block
            self.fail(error)
        with self._changed:
            self._busy.discard(slot)

    def _next(self, slot: int) -> TaskBlock | None:
        with self._changed:
            self._busy.discard(slot)
            while not self._todo and not self._over:
                self._changed.wait()
            if self._over:
                return None
            self._busy.add(slot)
            return self._todo.popleft()

    @property
    def _over(self) -> bool:
        return self._ended or self._error is not None

    def _do(self, block: TaskBlock, worker: Worker, slot: int) -> None:
        try:
            self._is_done(block, self._answer(worker, block))
        except WorkerLostError as lost:
            self._pool.drop(slot)
            self._again(block, str(lost))

    def _is_done(self, block: TaskBlock, answer: object) -> None:
        with self._changed:
            self._done[block.number] = answer
            self._changed.notify_all()

    def _ready(self, slot: int) -> Worker | None:
        """The worker of a slot, with this task opened; None if the slot has to do without one, or the call is over."""
        lost = 0
        while not self._over:
            with self._changed:
                self._busy.add(slot)
            try:
                return self._started(slot)
            except WorkerLostError as error:
                self._pool.drop(slot)
                lost += 1
                if lost >= ATTEMPTS and not self._over:
                    raise WorkerError(
                        f"{lost} workers were lost before their first block, the last: {error}; {self._pool.advice}"
                    ) from None
            except NoRoomError as none:
                self._pool.drop(slot)
                self._leave_to_others(str(none))
                return None
        return None

    def _answer(self, worker: Worker, block: TaskBlock) -> object:
        answer = worker.do(self._doing, block.work)
        if isinstance(answer, Failure):
            return answer.error(f"{worker.place} failed at {block}")
        if not block.fits(answer):
            raise WorkerLostError(f"{worker.place} sent something else than was asked for")
        return answer

    def _started(self, slot: int) -> Worker:
        pool = self._pool
        worker = pool.workers.get(slot)
        if worker is None:
            worker = pool.added(slot, pool.start())
            if self._over:
                raise WorkerLostError("it is not needed any more")
        if (slot, self._doing) not in pool.taken:
            answer = worker.ask(self._doing, self._task)
            if isinstance(answer, Failure):
                raise answer.error(f"{worker.place} cannot open {self._task}")
            if not isinstance(answer, Confirmed):
                raise WorkerLostError(f"{worker.place} sent something else than was asked for")
            self._require_alike(answer)
            pool.took(slot, self._doing)
        return worker

    def _require_alike(self, found: Confirmed) -> None:
        """Raise :class:`WorkerError` unless a worker has what this process has, and computes the same as the other workers."""
        if other := found.difference(self._facts):
            raise WorkerError(f"{found.place} has another {other}; have the same versions, models and code on all nodes")
        with self._changed:
            first = self._pool.trials.setdefault(self._doing, found)
        if first.facts.get("trial") != found.facts.get("trial"):
            raise WorkerError(
                f"{found.place} computes other vectors than {first.place} for the same texts, which have other processors, "
                "probably: the index would depend on who encodes what; use nodes of one kind"
            )

    def _again(self, block: TaskBlock, how: str) -> None:
        lost = self._lost[block.number] = self._lost.get(block.number, 0) + 1
        if lost >= ATTEMPTS:
            self._is_done(block, WorkerError(f"{lost} workers were lost over {block}, the last: {how}; {self._pool.advice}"))
            return
        with self._changed:
            self._todo.appendleft(block)
            self._changed.notify_all()

    def _leave_to_others(self, why: str) -> None:
        """Continue without a worker, and check for others in the same step, or the last two would each rely on the other."""
        with self._changed:
            self._alive -= 1
            if self._alive < 1:
                raise WorkerError(f"no worker is left: {why}; {self._pool.advice}")

    def fail(self, error: BaseException) -> None:
        """Report an error to the thread that waits for a block."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()
