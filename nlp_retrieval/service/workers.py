"""Several processes that answer on one socket: those that end unasked are started again, and the log says why they ended."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

from uvicorn.supervisors import Multiprocess

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.service.application import create_app
from nlp_retrieval.service.endpoints import BaseService
from nlp_retrieval.service.logs import configure_logs
from nlp_retrieval.service.metrics import Metrics, forget_process, metrics_folder, resident_bytes
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.work import leave_notes_out

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.supervisors.multiprocess import Process

    from nlp_retrieval.service.observer import Observer

__all__ = ["NOT_STARTED", "ServiceProcess", "Supervisor"]

NOT_STARTED = 3
"""Exit code of a process that could not open the service: with any other, it would be restarted repeatedly."""

_LOOKED_AFTER = 0.5
_OF_MEMORY = Path("/sys/fs/cgroup/memory.events")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceProcess:
    """Creates the application in a worker process; it is pickled, so it holds plain values."""

    opening: Callable[[], BaseService]
    settings: ServiceSettings
    parent: int

    def __call__(self) -> Observer:
        configure_logs(self.settings.log_format, self.settings.log_level)
        leave_notes_out()
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        try:
            return create_app(self.opening(), self.settings)
        except RetrievalError as error:
            _log.error("%s", without_secrets(str(error)))
            raise SystemExit(NOT_STARTED) from None

    def _end_with_parent(self) -> None:
        """Exit if the parent process was killed: nobody else would stop this one."""
        while os.getppid() == self.parent:
            time.sleep(_LOOKED_AFTER)
        if (folder := metrics_folder()) is not None:
            shutil.rmtree(folder, ignore_errors=True)
        signal.raise_signal(signal.SIGTERM)


class Supervisor(Multiprocess):
    """The process that starts the others, and restarts them.

    Args:
        config: of each of them.
        listener: their socket.
    """

    def __init__(self, config: Config, listener: socket) -> None:
        super().__init__(config, [listener])
        self._restarts = Metrics().restarts
        self._memory: dict[int, int] = {}
        self._hung: set[int] = set()
        self._out_of_memory = _killed_for_memory()

    def keep_subprocess_alive(self) -> None:
        """Start the processes again that have ended, and those that do not answer."""
        before = list(self.processes)
        for process in before:
            if process.pid is not None and (used := resident_bytes(process.pid)):
                self._memory[process.pid] = used
            self._watch(process)
        super().keep_subprocess_alive()
        for process, now in zip(before, self.processes, strict=True):
            if now is not process:
                self._report(process, now)

    def _watch(self, process: Process) -> None:
        """Notice if a process is still there when it is killed for not answering; one that is gone was killed by others."""
        if "kill" in vars(process):
            return
        kill = process.kill

        def kill_and_note() -> None:
            if process.process.is_alive():
                self._hung.add(process.pid or 0)
            kill()

        process.kill = kill_and_note  # type: ignore[method-assign]

    def _report(self, ended: Process, now: Process) -> None:
        process = ended.pid or 0
        kind, reason = self._reason(ended.exitcode, hung=process in self._hung)
        self._hung.discard(process)
        forget_process(process)
        self._restarts.labels(kind).inc()
        megabytes = self._memory.pop(process, 0) // 2**20
        _log.error(
            "worker %d ended: %s; it used %d MiB; worker %d takes its place",
            process,
            reason,
            megabytes,
            now.pid,
            extra={"worker": process, "reason": kind, "exit_code": ended.exitcode, "mib": megabytes, "next_worker": now.pid},
        )

    def _reason(self, code: int | None, *, hung: bool) -> tuple[str, str]:
        """Why a process ended, which was still there when it did not answer or not: one word for figures, and for people."""
        if hung:
            seconds = self.config.timeout_worker_healthcheck
            return "unresponsive", f"it did not answer for {seconds} seconds, and was killed"
        if code is not None and code < 0:
            with suppress(ValueError):
                name = signal.Signals(-code).name
                killed, self._out_of_memory = _killed_for_memory() - self._out_of_memory, _killed_for_memory()
                if -code == signal.SIGKILL and killed > 0:
                    return "memory", "it was killed because the memory of the container ran out"
                why = "; where nobody sent it, the memory ran out" if -code == signal.SIGKILL else ""
                return "signal", f"it was killed by {name}{why}"
        return "exit", f"it exited with code {code}"


def _killed_for_memory() -> int:
    """How many processes of this container were killed because its memory ran out; 0 where it cannot be known."""
    with suppress(OSError, ValueError):
        for line in _OF_MEMORY.read_text("ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0
