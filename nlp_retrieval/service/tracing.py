"""Spans of OpenTelemetry: one for a request, and inside it one for each stage of a search and each call of a model.

They carry names, routes and models, and no text of a request. Without the extra ``otel``, or where no exporter is configured by
OpenTelemetry's own variables, there are none, and nothing of it is imported.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nlp_retrieval._version import __version__
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.errors import install

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

__all__ = ["Tracing", "configured_tracing"]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PARENT = (b"traceparent", b"tracestate")
_log = logging.getLogger(__name__)


class Tracing:
    """Makes spans.

    Args:
        provider: of the SDK.
        owned: whether it is shut down with the service.
    """

    def __init__(self, provider: TracerProvider, *, owned: bool = True) -> None:
        self._provider, self._owned = provider, owned
        self._tracer = provider.get_tracer("nlp_retrieval", __version__)

    @contextmanager
    def request(self, method: str, headers: list[tuple[bytes, bytes]]) -> Iterator[Span]:
        """Make a span for a request; searches inside the block make theirs below it.

        Args:
            method: of the request.
            headers: with the span of the client, if it has one: ``traceparent``, as W3C defines it.
        """
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in _PARENT}
        parent = TraceContextTextMapPropagator().extract(carrier)
        with (
            self._tracer.start_as_current_span(method, parent, SpanKind.SERVER, record_exception=False) as span,
            changed_context(spans=self.stage),
        ):
            yield span

    def end_request(self, span: Span, method: str, route: str, status: int, request: str) -> str:
        """Complete the span of a request, and return its trace's id, for the log.

        Args:
            span: as :meth:`request` gave it.
            method: of the request.
            route: as in the schema.
            status: of the answer.
            request: id of the request.
        """
        from opentelemetry.trace import Status, StatusCode, format_trace_id

        span.update_name(f"{method} {route}")
        span.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
        span.set_attribute("nlp_retrieval.request_id", request)
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        return format_trace_id(span.get_span_context().trace_id)

    def stage(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        """Return a span inside the current one; of an error it has only the kind, because messages may quote a request.

        Args:
            name: of the stage.
            attributes: of the span.
        """
        return self._stage(name, attributes)

    @contextmanager
    def _stage(self, name: str, attributes: Mapping[str, str]) -> Iterator[None]:
        from opentelemetry.trace import Status, StatusCode

        with self._tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise

    def close(self) -> None:
        """Send what is left."""
        if self._owned:
            self._provider.shutdown()


def configured_tracing() -> Tracing | None:
    """Return the spans that the environment asks for, or a provider that this process has already; None for none."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if "opentelemetry.sdk.trace" in sys.modules:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider):
            return Tracing(provider, owned=False)
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    if exporter == "none" or not any(map(os.environ.get, _ENDPOINTS)):
        return None
    if exporter != "otlp":
        _log.warning("OTEL_TRACES_EXPORTER=%s: only otlp and none are supported here; no spans are sent", exporter)
        return None
    if any(find_spec(package) is None for package in ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter")):
        _log.warning("an endpoint for OpenTelemetry is set, but its packages are not installed: %s", install("otel"))
        return None
    return _sending()


def _sending() -> Tracing:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    attributes = {"service.version": __version__} | ({} if named else {"service.name": "nlp-retrieval"})
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
