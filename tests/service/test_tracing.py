"""Spans of a request, of the stages of its search and of its models' calls; and figures of those calls."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rerank_server import rerank_server

from nlp_retrieval import Bm25Retriever, HttpReranker, Searcher
from nlp_retrieval.service import IndexService
from nlp_retrieval.service.application import create_app
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.tracing import Tracing, configured_tracing

from .running import item

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(scope="module")
def server():
    with rerank_server() as running:
        yield running


@pytest.fixture
def ask(tmp_path, server):
    """Send requests to a service whose spans are kept; return the answers and the spans by name."""
    reranker = HttpReranker(base_url=server.url, model="rerank-small", endpoint={"timeout": 20.0})
    searcher = Searcher({"words": Bm25Retriever(), "more": Bm25Retriever(b=0.5)}, fusion="rrf", reranker=reranker)
    searcher.index([item(n, f"fox number{n}") for n in range(5)], tmp_path / "index")
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    app = create_app(IndexService(searcher), ServiceSettings(), Tracing(provider))

    async def sent(requests):
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:
            return [await client.request(method, path, **given) for method, path, given in requests]

    def ask(*requests):
        answers = asyncio.run(sent(requests))
        return answers, {span.name: span for span in kept.get_finished_spans()}

    return ask


def test_a_request_continues_the_trace_of_its_client_down_to_the_call_of_a_model(ask, caplog):
    caplog.set_level(logging.INFO)
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    (answer,), spans = ask(("POST", "/search", {"json": {"query": "fox secret-words"}, "headers": headers}))
    assert answer.status_code == 200
    assert spans.keys() == {"POST /search", "process", "words", "more", "fuse", "http", "model call", "items"}
    request = spans["POST /search"]
    assert f"{request.parent.span_id:016x}" == SPAN
    assert {f"{span.context.trace_id:032x}" for span in spans.values()} == {TRACE}
    assert {spans[name].parent.span_id for name in ("words", "fuse", "http", "items")} == {request.context.span_id}
    assert spans["model call"].parent.span_id == spans["http"].context.span_id
    assert spans["model call"].attributes == {"gen_ai.request.model": "http/rerank-small"}
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["nlp_retrieval.request_id"] == answer.headers["x-request-id"]
    assert [record.trace_id for record in caplog.records if record.name == "nlp_retrieval.access"] == [TRACE]
    assert "secret-words" not in "".join(span.to_json() for span in spans.values())


def test_a_trace_that_is_none_begins_a_new_one_and_probes_begin_none(ask):
    _, spans = ask(("GET", "/livez", {}), ("GET", "/nowhere/secret", {"headers": {"traceparent": "00-xyz"}}))
    assert list(spans) == ["GET other"]
    assert spans["GET other"].parent is None


def test_calls_of_models_and_their_tokens_are_counted(ask):
    answers, _ = ask(("POST", "/search", {"json": {"query": "fox"}}), ("GET", "/metrics", {}))
    text = answers[1].text
    assert 'nlp_retrieval_model_calls_total{model="http/rerank-small"} 1.0' in text
    assert 'nlp_retrieval_model_failures_total{model="http/rerank-small"} 0.0' in text
    assert 'nlp_retrieval_model_tokens_total{direction="in",model="http/rerank-small"} 15.0' in text  # three words each


@pytest.mark.parametrize(
    ("variables", "warned"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "zipkin"}, "only otlp"),
    ],
)
def test_without_an_exporter_there_are_no_spans(monkeypatch, caplog, variables, warned):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert configured_tracing() is None
    assert warned in caplog.text


def test_the_packages_of_spans_are_imported_only_where_they_are_asked_for():
    code = (
        "import sys; from nlp_retrieval.service.tracing import configured_tracing as c; "
        "assert c() is None; assert not any(n.startswith('opentelemetry') for n in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_spans_are_sent_to_the_endpoint_of_the_environment(monkeypatch):
    got = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
            got.extend(span.name for one in request.resource_spans for scope in one.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
    tracing = configured_tracing()
    with tracing.request("GET", []), tracing.stage("words", {}):
        pass
    tracing.close()
    collector.shutdown()
    collector.server_close()
    assert got == ["words", "GET"]
