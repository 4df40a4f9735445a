"""Figures of the service in the text format of Prometheus, summed over its processes.

Several processes write theirs to files of one folder, named by ``PROMETHEUS_MULTIPROC_DIR``, and any of them can sum up all. No
label has a value that a client chooses: routes are those of the schema, and other methods and paths count as ``other``.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nlp_retrieval._version import __version__
from nlp_retrieval.core.secrets import without_secrets

if TYPE_CHECKING:
    from prometheus_client import Gauge, Metric

    from nlp_retrieval.lm.counting import CallCounter

__all__ = ["METHODS", "METRICS_TYPE", "Metrics", "forget_process", "metrics_folder", "resident_bytes", "shared_metrics"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""Methods of HTTP; any other word that a client sends counts as ``other``."""


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._folder = metrics_folder()
        self._registry = registry = CollectorRegistry()

        def gauge(name: str, text: str, labels: tuple[str, ...] = (), mode: str = "livesum") -> Gauge:
            return Gauge(f"nlp_retrieval_{name}", text, labels, registry=registry, multiprocess_mode=mode)  # type: ignore[arg-type]

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"nlp_retrieval_{name}", text, labels, registry=registry)

        self._gauge = gauge
        self._requests = counter("requests", "Answered requests.", "route", "method", "status")
        self._seconds = Histogram(
            "nlp_retrieval_request_seconds",
            "Time of a request, from its head to the end of the answer.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_flight = gauge("requests_in_flight", "Requests being answered.")
        self.waiting = gauge("queue_length", "Requests that wait for a thread.", ("pool",))
        self.rejected = counter("rejections", "Requests given up: the queue was full, or the time was over.", "pool", "reason")
        self._calls = counter("model_calls", "Requests to language models and other models' servers.", "model")
        self._failures = counter("model_failures", "Those without an answer.", "model")
        self._cache_hits = counter("model_cache_hits", "Answers of language models found on disk.", "model")
        self._tokens = counter("model_tokens", "Tokens sent and received, as the servers count them.", "model", "direction")
        self.restarts = counter("worker_restarts", "Processes that ended unasked and were started again.", "reason")
        self._memory = gauge("resident_memory_bytes", "Memory in use.")
        self._processes = gauge("processes", "Processes that answer.")
        self.ready = gauge("ready", "Processes that are ready.")
        gauge("build_info", "Always 1.", ("version",), "livemax").labels(__version__).set(1)
        self._figures: dict[str, Gauge] = {}

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            route: as in the schema.
            method: as sent.
            status: of the answer.
            seconds: how long it took.
        """
        method = method if method in METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def count_calls(self, counter: CallCounter) -> None:
        """Add the calls of models that were counted for a request."""
        for name, counts in counter.by_model.items():
            model = str(without_secrets(name))
            self._calls.labels(model).inc(counts.calls)
            self._failures.labels(model).inc(counts.failures)
            self._cache_hits.labels(model).inc(counts.cache_hits)
            self._tokens.labels(model, "in").inc(counts.tokens_in)
            self._tokens.labels(model, "out").inc(counts.tokens_out)

    def show_figures(self, figures: Mapping[str, float]) -> None:
        """Set the figures of what is served: gauges by the names that the service gives them."""
        for name, value in figures.items():
            if name not in self._figures:
                self._figures[name] = self._gauge(f"index_{name}", f"Of what is served: {name}.", (), "livemostrecent")
            self._figures[name].set(value)

    def measure_process(self) -> None:
        """Set the figures of this process."""
        self._memory.set(resident_bytes(os.getpid()) or 0)
        self._processes.set(1)

    def written(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        from prometheus_client import CollectorRegistry, generate_latest

        if self._folder is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        registry.register(_FiguresOfAll(self._folder))
        return generate_latest(registry)


class _FiguresOfAll:
    """Sums the figures of all processes. An empty file is left out: its process was about to write it, and may have ended."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def collect(self) -> Iterable[Metric]:
        """Return the sums, as prometheus_client asks for them."""
        from prometheus_client.multiprocess import MultiProcessCollector

        files = [str(file) for file in self._folder.glob("*.db") if _has_content(file)]
        return MultiProcessCollector.merge(files, accumulate=True)  # type: ignore[no-any-return, no-untyped-call]


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:  # of a process that has just ended
        return False


def metrics_folder() -> str | None:
    """Return the folder in which several processes share their figures; None for a process that keeps its own."""
    return os.environ.get(_FOLDER) or None


@contextmanager
def shared_metrics() -> Iterator[None]:
    """Let the processes that are started inside the block share their figures, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="nlp-retrieval-metrics-", ignore_cleanup_errors=True) as folder:
        before = os.environ.get(_FOLDER)
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_FOLDER]
            else:
                os.environ[_FOLDER] = before


def forget_process(process: int) -> None:
    """Remove the gauges of a process that ended; its counts stay.

    Args:
        process: its id.
    """
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(process, os.environ[_FOLDER])  # type: ignore[no-untyped-call]


def resident_bytes(process: int) -> int | None:
    """Return the memory that a process uses; None if it has ended, or the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    return None
