"""Workers that are processes of this machine, started as new processes and never forked: torch and FAISS do not survive a fork.

They talk to this process over a private pair of connected sockets, do not see its terminal, and end when it ends, however that
happens.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from nlp_retrieval.core.processes import threads_of
from nlp_retrieval.encoders.workers.pool import WorkerPool
from nlp_retrieval.encoders.workers.worker import Confirmed, Failure, Task, Worker, WorkerLostError
from nlp_retrieval.errors import WorkerError

_ADVICE = (
    "where the system killed them for memory, use fewer workers, or an encoder with a smaller batch_size; the same call goes "
    "on from what was done"
)
_LIMITS = "use fewer workers, or allow this user more processes, open files and memory (see ulimit -a)"
_GRACE = 5.0
"""Seconds that a process may take to end by itself after its connection is closed."""


def local_pool(n_workers: int) -> WorkerPool:
    """Return a pool of processes of this machine, one core each, which are started when there is work for them."""
    return WorkerPool(ProcessWorker, n_workers, _ADVICE)


class ProcessWorker(Worker):
    """A process of this machine."""

    def __init__(self) -> None:
        with ExitStack() as unless_started:
            try:
                self._faults = unless_started.enter_context(TemporaryFile())
                ours, theirs = socket.socketpair()
                with ours, theirs:
                    self._process = _started(theirs, self._faults)
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
        self._faults.close()
        self._connection.close()

    def _answer(self, *asked: object) -> object:
        try:
            self._connection.send(asked)
            return self._connection.recv()
        except (EOFError, OSError):
            raise WorkerLostError(f"{self.place} {self._how_it_ended()}") from None

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        status = self._process.poll()
        if status is not None and status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
            return f"was ended by {name}"
        with suppress(OSError, ValueError):
            self._faults.seek(max(0, self._faults.seek(0, os.SEEK_END) - 500))
            said = self._faults.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            return f"ended with status {status}: {' '.join(said)[:200]}"
        return "was ended"


def _started(theirs: socket.socket, faults: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- this package, by this Python
        [sys.executable, "-P", "-m", "nlp_retrieval.encoders.workers.child", str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=faults,
        env=os.environ | threads_of(1) | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        pass_fds=[theirs.fileno()],
        start_new_session=True,  # Ctrl-C is for the parent process, which ends this one
    )
