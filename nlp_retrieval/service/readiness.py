"""Whether a process of the service can take requests: after its first query was answered, until it is told to end."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.service.endpoints import BaseService
from nlp_retrieval.service.metrics import Metrics

__all__ = ["Readiness"]

_LONGEST_WAIT = 60.0
_log = logging.getLogger(__name__)


class Readiness:
    """The state of one process.

    Args:
        service: what it serves.
        metrics: where it counts as ready.
        warm: whether models are loaded and a query is answered before it is ready.
        drain: seconds between the signal to end and the last request that is accepted.
    """

    def __init__(self, service: BaseService, metrics: Metrics, *, warm: bool, drain: float) -> None:
        self._service, self._metrics, self._drain = service, metrics, drain
        self._cold = "models are being loaded" if warm else ""
        self._ending = threading.Event()

    @property
    def missing(self) -> list[str]:
        """Return what is missing; empty if the process is ready."""
        gone = "" if self._service.is_ready() else f"the {self._service.kind} is no longer there"
        ending = "the service is shutting down" if self._ending.is_set() else ""
        return [reason for reason in (gone, self._cold, ending) if reason]

    def measure(self) -> None:
        """Set the figure of this process."""
        self._metrics.ready.set(not self.missing)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Warm up in a thread, and look out for signals, inside the block."""
        if self._cold:
            threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        self.measure()
        with self._signals_seen():
            yield
        self._ending.set()
        self.measure()

    def _warm_up(self) -> None:
        """Ask a first query; where it fails, try again ever more seldom, because a server may be down for a moment."""
        wait = 1.0
        while not self._ending.is_set():
            try:
                self._service.warm()
            except Exception as error:
                if self._ending.is_set():  # the service is being closed
                    return
                self._cold = "the first query failed; the log says why"
                _log.exception("warming up failed; next attempt in %g seconds: %s", wait, without_secrets(str(error)))
                self._ending.wait(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            else:
                self._cold = ""
                self.measure()
                _log.info("ready")
                return

    @contextmanager
    def _signals_seen(self) -> Iterator[None]:
        """Note a signal that ends the server, and pass it on when the last requests may have arrived."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {}

        def end(number: int, frame: FrameType | None) -> None:
            first = not self._ending.is_set()
            self._ending.set()
            if first and self._drain:
                timer = threading.Timer(self._drain, before[number], (number, None))
                timer.daemon = True
                timer.start()
            elif callable(before[number]):
                before[number](number, frame)

        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, end)
        try:
            yield
        finally:
            for seen, handler in before.items():
                if signal.getsignal(seen) is end:
                    signal.signal(seen, handler)
