"""What those who run the service see: probes, figures, logs, spans, and what happens when a process of it dies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rerank_server import rerank_server
from starlette.testclient import TestClient

from nlp_retrieval import Bm25Retriever, HttpReranker, Searcher
from nlp_retrieval.service import IndexService
from nlp_retrieval.service.application import create_app
from nlp_retrieval.service.endpoints import RequestContext, current_request
from nlp_retrieval.service.serving import log_config
from nlp_retrieval.service.settings import ServiceSettings

from .running import item, make_index, running, until

TOKEN = "a-token-of-the-tests-0123456789"
SECRET_QUERY = "fox confidential-words"


def figures_of(text):
    """Return every sample by its name and labels, as Prometheus would store it; histograms without their buckets."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operation")
    make_index(folder / "index")
    words = [folder / "index", "--warm", "--log-format", "json"]
    with running(words, NLP_RETRIEVAL_TOKEN=TOKEN) as service:
        with service.client(TOKEN) as client:
            until(lambda: client.get("/readyz").status_code == 200)
            yield service, client
        assert all(json.loads(line) for line in service.said)


def alone(service, path):
    """The answer over a connection of its own."""
    return httpx2.get(service.url + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=300, trust_env=False)


def test_every_request_is_counted_and_no_client_chooses_a_label(served):
    service, client = served
    for path in ("/no-such-path", "/passages/secret-key", "/search/../x"):
        assert client.get(path).status_code == 404
    client.request("BREW", "/search")
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: alone(service, "/stats").status_code, range(40))) == {200}
    text = alone(service, "/metrics").text
    figures = figures_of(text)
    assert figures["nlp_retrieval_requests_total", ("method", "GET"), ("route", "/stats"), ("status", "200")] == 40
    assert figures["nlp_retrieval_request_seconds_count", ("method", "GET"), ("route", "/stats")] == 40
    assert not {word for word in ("secret-key", "BREW") if word in text}
    routes = {dict(labels[1:]).get("route") for labels in figures} - {None}
    assert routes <= {"/search", "/stats", "/livez", "/readyz", "/metrics", "/openapi.json", "other"}


def test_the_log_has_every_request_by_its_id_and_neither_queries_nor_tokens(served):
    service, client = served
    ids = []
    for path, body in (("/search", {"query": SECRET_QUERY}), ("/search?q=hidden-text", {"query": 5})):
        own = "from-a-proxy.1" if not ids else "not\tsafe"
        ids.append(client.post(path, json=body, headers={"X-Request-ID": own}).headers["x-request-id"])
    assert (ids[0], "safe" in ids[1]) == ("from-a-proxy.1", False)
    assert [client.head(path).status_code for path in ("/livez", "/readyz")] == [200, 200]

    def logged():
        lines = [json.loads(line) for line in service.said]
        found = {line["request_id"]: line for line in lines if line.get("request_id") in ids}
        return found if len(found) == 2 else None

    lines = until(logged)
    assert {(line["method"], line["path"], line["route"]) for line in lines.values()} == {("POST", "/search", "/search")}
    assert [lines[each]["status"] for each in ids] == [200, 422]
    said = "".join(service.said)
    assert not {word for word in (TOKEN, "confidential-words", "hidden-text") if word in said}


def test_probes_are_answered_while_models_are_loaded(tmp_path, monkeypatch):
    make_index(tmp_path / "index")
    loaded = threading.Event()
    monkeypatch.setattr(IndexService, "warm", lambda _: loaded.wait(120))
    service = IndexService(Searcher([Bm25Retriever()]).open(tmp_path / "index"))
    with TestClient(create_app(service, ServiceSettings(warm=True)), "http://localhost") as client:
        assert [client.get(path).status_code for path in ("/livez", "/readyz")] == [200, 503]
        loaded.set()
        until(lambda: client.get("/readyz").status_code == 200)


def test_a_process_that_is_killed_is_replaced_and_the_log_says_so(tmp_path):
    make_index(tmp_path / "index")
    words = [tmp_path / "index", "--workers", "2", "--warm", "--log-format", "json"]
    with running(words, NLP_RETRIEVAL_TOKEN=TOKEN) as service:

        def ready():
            return [line["pid"] for line in map(json.loads, list(service.said)) if line["message"] == "ready"]

        victim = until(ready)[-1]
        os.kill(victim, signal.SIGKILL)
        until(lambda: [line for line in list(service.said) if f"[{victim}] died" in line])
        until(lambda: len(ready()) == 3)
        assert alone(service, "/stats").status_code == 200


@pytest.fixture
def spans(monkeypatch):
    """The spans of this process, as OpenTelemetry's command would have them sent."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return kept


def test_a_request_is_one_trace_down_to_the_call_of_a_model(tmp_path, spans):
    with rerank_server() as server:
        reranker = HttpReranker(base_url=server.url, model="rerank-small", endpoint={"timeout": 20.0})
        searcher = Searcher({"words": Bm25Retriever(), "more": Bm25Retriever(b=0.5)}, fusion="rrf", reranker=reranker)
        searcher.index([item(n, f"fox number{n}") for n in range(5)], tmp_path / "index")
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        given = {"json": {"query": "fox secret-words"}, "headers": {"traceparent": f"00-{trace}-{parent}-01"}}
        app = create_app(IndexService(searcher), ServiceSettings())

        async def ask():
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:
                return await client.post("/search?hidden-text", **given)

        answer = asyncio.run(ask())
    assert answer.status_code == 200
    found = {span.name: span for span in spans.get_finished_spans()}
    assert found.keys() >= {"POST /search", "words", "more", "fuse", "http", "model call", "items"}
    assert f"{found['POST /search'].parent.span_id:016x}" == parent
    assert {f"{found[name].context.trace_id:032x}" for name in ("POST /search", "words", "model call")} == {trace}
    assert len({found[name].parent.span_id for name in ("words", "fuse", "http", "items")}) == 1
    assert found["model call"].parent.span_id == found["http"].context.span_id
    assert found["model call"].attributes == {"gen_ai.request.model": "http/rerank-small"}
    shown = "".join(span.to_json() for span in found.values())
    assert not {word for word in ("secret-words", "hidden-text") if word in shown}


def test_a_line_of_the_log_is_one_line_whatever_it_holds_and_shows_no_secret(monkeypatch, subtests):
    monkeypatch.setenv("SOME_API_KEY", "a-very-secret-value")
    raised = (ValueError, ValueError("two\nlines \x1b[31m of a-very-secret-value"), None)
    for form in ("text", "json"):
        with subtests.test(form):
            formatter = log_config(form, "info")["formatters"]["lines"]["()"]()
            token = current_request.set(RequestContext("id-1"))
            further = {"path": "/\n", "other": {1}}
            line = formatter.format(
                logging.getLogger("x").makeRecord("x", 40, "", 0, "a\nb\x1b %s", ("c\r",), raised, None, further)
            )
            current_request.reset(token)
            first, _, rest = line.partition("\n")
            assert "id-1" in first
            assert "a-very-secret-value" not in line
            assert "\x1b" not in first
            if form == "json":
                assert (json.loads(first)["path"], rest) == ("/\n", "")
            else:
                assert rest.startswith("ValueError: two\nlines")
