"""Figures of one process of the service, in the text format of Prometheus.

No label has a value that a client chooses: routes are those of the schema, and other methods and paths count as ``other``.
Where ``PROMETHEUS_MULTIPROC_DIR`` names an empty folder, prometheus_client sums the processes up.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nlp_retrieval.core.secrets import without_secrets

if TYPE_CHECKING:
    from nlp_retrieval.lm.counting import CallCounter

__all__ = ["METHODS", "METRICS_TYPE", "Metrics"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""Methods of HTTP; any other word that a client sends counts as ``other``."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        from prometheus_client.multiprocess import MultiProcessCollector
        from prometheus_client.process_collector import ProcessCollector

        registry = CollectorRegistry()
        self._shown = registry
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=registry)
        route, model = ("route", "method"), ("model",)
        name = "nlp_retrieval_{}".format
        self._requests = Counter(name("requests"), "Answered requests.", (*route, "status"), registry=registry)
        self._seconds = Histogram(name("request_seconds"), "Time of a request.", route, buckets=_SECONDS, registry=registry)
        self.in_flight = Gauge(
            name("requests_in_flight"), "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self.rejected = Counter(
            name("rejections"), "Requests given up: queue full, or time over.", ("pool", "reason"), registry=registry
        )
        self._calls = Counter(name("model_calls"), "Requests to models' servers.", model, registry=registry)
        self._failures = Counter(name("model_failures"), "Those without an answer.", model, registry=registry)
        self._tokens = Counter(
            name("model_tokens"), "Tokens sent and received, as servers count.", (*model, "direction"), registry=registry
        )
        self._figures = Gauge(
            name("served"), "Of what is served, by name.", ("figure",), registry=registry, multiprocess_mode="livemax"
        )

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request; the route is that of the schema."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def count_calls(self, counter: CallCounter) -> None:
        """Add the calls of models that were counted for a request."""
        for name, counts in counter.by_model.items():
            model = str(without_secrets(name))
            self._calls.labels(model).inc(counts.calls)
            self._failures.labels(model).inc(counts.failures)
            self._tokens.labels(model, "in").inc(counts.tokens_in)
            self._tokens.labels(model, "out").inc(counts.tokens_out)

    def written(self, figures: Mapping[str, float]) -> bytes:
        """Return all figures as Prometheus reads them, with those of what is served."""
        from prometheus_client import generate_latest

        for name, value in figures.items():
            self._figures.labels(name).set(value)
        return generate_latest(self._shown)
