"""What those who run the service see: probes, figures, logs, request ids, and what happens when a process of it dies."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx2
import pytest
from prometheus_client import Counter as CollectedCounter
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.parser import text_string_to_metric_families

from nlp_retrieval.service import workers
from nlp_retrieval.service.endpoints import BaseService
from nlp_retrieval.service.logs import JsonFormatter, RequestContext, TextFormatter, current_request
from nlp_retrieval.service.metrics import Metrics
from nlp_retrieval.service.readiness import Readiness

from .running import Running, error_of, make_index, running

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


def until(check):
    deadline = time.monotonic() + 120
    while not (found := check()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operation")
    make_index(folder / "index")
    words = [folder / "index", "--workers", "2", "--warm", "--log-format", "json", "--log-level", "debug"]
    with running(words, NLP_RETRIEVAL_TOKEN=TOKEN) as service:
        with service.client(TOKEN) as client:
            until(lambda: client.get("/readyz").status_code == 200)
            yield service, client
        assert all(json.loads(line) for line in service.said)


def alone(service, path, **headers):
    """The answer over a connection of its own, which any of the processes may take."""
    return httpx2.get(service.url + path, headers={"Authorization": f"Bearer {TOKEN}"} | headers, timeout=300, trust_env=False)


def requests_to(service, **labels):
    wanted = ("nlp_retrieval_requests_total", *sorted(labels.items()))
    return figures_of(alone(service, "/metrics").text).get(wanted, 0)


def test_requests_of_all_processes_are_summed_in_every_scrape(served):
    service, _ = served
    before = requests_to(service, route="/stats", method="GET", status="200")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: alone(service, "/stats").status_code, range(40)))
    assert answers == [200] * 40
    assert {requests_to(service, route="/stats", method="GET", status="200") for _ in range(6)} == {before + 40}
    figures = figures_of(alone(service, "/metrics").text)
    assert figures["nlp_retrieval_processes",] == 2
    assert figures["nlp_retrieval_index_items",] == 30
    assert figures["nlp_retrieval_index_generation",] == 1
    assert figures["nlp_retrieval_requests_in_flight",] == 1  # this one
    seconds = ("method", "GET"), ("route", "/stats")
    assert figures["nlp_retrieval_request_seconds_count", *seconds] == before + 40
    assert 10 * 2**20 < figures["nlp_retrieval_resident_memory_bytes",] < 10 * 2**30


def test_no_client_chooses_a_label(served):
    _, client = served
    for path in ("/no-such-path", "/passages/secret-key", "/search/../x"):
        assert client.get(path).status_code == 404
    client.request("BREW", "/search")
    text = client.get("/metrics").text
    assert "secret-key" not in text
    assert "BREW" not in text
    routes = {dict(labels[1:]).get("route") for labels in figures_of(text)} - {None}
    assert routes <= {"/search", "/stats", "/healthz", "/livez", "/readyz", "/metrics", "/openapi.json", "other"}


def test_figures_need_the_token_and_probes_do_not(served):
    service, _ = served
    with service.client() as client:
        error_of(client.get("/metrics"), 401, "unauthorized")
        assert [client.get(path).status_code for path in ("/livez", "/readyz", "/healthz")] == [200, 200, 200]
        assert [(answer := client.head(path)).status_code for path in ("/livez", "/readyz", "/healthz")] == [200, 200, 200]
        assert answer.content == b""


@pytest.mark.parametrize("given", ["a1", "7f3c-11.b_2:z", "x" * 128])
def test_a_request_keeps_the_id_that_a_proxy_gave_it(served, given):
    _, client = served
    answer = client.get("/nowhere", headers={"X-Request-ID": given})
    assert answer.headers["x-request-id"] == given
    assert answer.json()["error"]["request_id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "two words", 'a"b', "a\tb", "émile".encode("latin-1"), "{}"])
def test_an_id_that_is_no_short_word_is_replaced(served, given):
    _, client = served
    found = client.get("/livez", headers={"X-Request-ID": given}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", found)


def test_the_log_has_every_request_by_its_id_and_neither_queries_nor_tokens(served):
    service, client = served
    for number, (path, body) in enumerate({"/search": {"query": SECRET_QUERY}, "/search?q=hidden-text": {"query": 5}}.items()):
        client.post(path, json=body, headers={"X-Request-ID": f"logged-{number}"})

    def logged():
        lines = [json.loads(line) for line in service.said]
        found = {line["request_id"]: line for line in lines if line.get("request_id", "").startswith("logged-")}
        return found if len(found) == 2 else None

    lines = until(logged)
    assert {(line["method"], line["path"], line["route"]) for line in lines.values()} == {("POST", "/search", "/search")}
    assert [lines[f"logged-{number}"]["status"] for number in (0, 1)] == [200, 422]
    said = "".join(service.said)
    assert not {word for word in (TOKEN, "confidential-words", "hidden-text") if word in said}


def test_a_process_that_is_killed_is_replaced_and_the_log_says_why(served):
    service, _ = served
    victim = until(lambda: [line["pid"] for line in map(json.loads, service.said) if line["message"] == "ready"])[-1]
    os.kill(victim, signal.SIGKILL)

    def restarted():
        found = [line for line in map(json.loads, list(service.said)) if line.get("worker") == victim]
        return found[0] if found else None

    line = until(restarted)
    assert (line["level"], line["reason"], line["exit_code"]) == ("error", "signal", -9)
    assert "SIGKILL" in line["message"]
    assert line["mib"] > 0
    until(lambda: figures_of(alone(service, "/metrics").text).get(("nlp_retrieval_processes",)) == 2)
    figures = figures_of(alone(service, "/metrics").text)
    assert figures["nlp_retrieval_worker_restarts_total", ("reason", "signal")] == 1
    assert alone(service, "/stats").status_code == 200


@pytest.mark.parametrize(("still_there", "reason"), [(False, "signal"), (True, "unresponsive")])
def test_a_process_that_does_not_answer_is_unresponsive_only_if_it_is_still_there(still_there, reason, monkeypatch, caplog):
    class Ended(SimpleNamespace):
        def kill(self):
            pass

    running = SimpleNamespace(is_alive=lambda: still_there)
    ended, new = Ended(pid=os.getpid(), exitcode=None, process=running), SimpleNamespace(pid=1)
    supervisor = object.__new__(workers.Supervisor)
    supervisor.config, supervisor.processes = SimpleNamespace(timeout_worker_healthcheck=5), [ended]
    supervisor._memory, supervisor._out_of_memory = {}, workers._killed_for_memory()
    supervisor._hung = set()
    supervisor._restarts = CollectedCounter("restarts", "of a test", ["reason"], registry=None)

    def killed_while_asked(self):
        ended.kill()  # as uvicorn does, whether it is there or not
        ended.exitcode, self.processes[0] = -signal.SIGKILL, new

    monkeypatch.setattr(workers.Multiprocess, "keep_subprocess_alive", killed_while_asked)
    monkeypatch.setattr(workers, "forget_process", lambda process: None)
    supervisor.keep_subprocess_alive()
    assert [record.reason for record in caplog.records] == [reason]


def test_what_a_service_that_drains_answers(tmp_path):
    make_index(tmp_path / "index")
    service = Running([tmp_path / "index", "--drain", "2", "--log-queries"])
    with service.client() as client:
        assert client.get("/readyz").status_code == 200
        assert client.post("/search", json={"query": SECRET_QUERY}).status_code == 200
        service.process.send_signal(signal.SIGTERM)
        message = until(lambda: (answer := client.get("/readyz")).status_code == 503 and error_of(answer, 503, "not_ready"))
        assert "shutting down" in message
        assert client.get("/livez").status_code == 200
        assert client.post("/search", json={"query": "fox"}).status_code == 200
    code, said = service.ended()
    assert code == 0
    assert SECRET_QUERY in said  # it was asked for
    assert "status=503" in said


class _Cold(BaseService):
    kind, opens, describes = "index", "", ""
    recognizes = from_path = classmethod(lambda *_: None)
    endpoints = ()

    def __init__(self):
        self.loaded, self.failures = threading.Event(), [OSError("the model's server is down")]

    def is_ready(self):
        return True

    def warm(self):
        self.loaded.wait(60)
        if self.failures:
            raise self.failures.pop()


def test_it_is_ready_when_its_first_query_was_answered_and_a_failure_is_tried_again(caplog):
    service = _Cold()
    readiness = Readiness(service, Metrics(), warm=True, drain=0)
    caplog.set_level(logging.INFO)
    with readiness.running():
        assert readiness.missing == ["models are being loaded"]
        service.loaded.set()
        until(lambda: not readiness.missing)
    assert readiness.missing == ["the service is shutting down"]
    assert "the model's server is down" in caplog.text


def test_a_line_of_the_log_is_one_line_whatever_it_holds(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "a-very-secret-value")
    token = current_request.set(RequestContext("id-1"))
    try:
        raised = (ValueError, ValueError("two\nlines \x1b[31m of a-very-secret-value"), None)
        further = {"path": "/\n", "other": {1}}
        record = logging.getLogger("x").makeRecord("x", 40, "", 0, "a\nb %s \ud800", ("c\r\n",), raised, extra=further)
        line = JsonFormatter().format(record)
        text = TextFormatter().format(logging.makeLogRecord({"msg": "a\nb\x1b[31m", "args": None}))
        wrong = JsonFormatter().format(logging.makeLogRecord({"msg": "%d %d", "args": ("x",)}))
    finally:
        current_request.reset(token)
    assert len(line.splitlines()) == len(text.splitlines()) == 1
    found = json.loads(line)
    assert (found["message"], found["request_id"]) == ("a\nb c\r\n \ud800", "id-1")
    assert (found["level"], found["path"]) == ("error", "/\n")
    assert "ValueError: two\nlines" in found["traceback"]
    assert "a-very-secret-value" not in line
    assert "\x1b" not in text
    assert "%d %d" in json.loads(wrong)["message"]


def test_a_process_that_has_not_yet_written_its_figures_does_not_hide_those_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    own = MmapedDict(str(tmp_path / "counter_1.db"))
    own.write_value(mmap_key("asked", "asked_total", [], [], "Asked."), 2.0, 0.0)
    own.close()
    for name in ("counter_2.db", "histogram_2.db", "gauge_livesum_2.db"):
        (tmp_path / name).touch()
    (tmp_path / "counter_3.db").symlink_to("gone")
    assert figures_of(Metrics().written().decode())[("asked_total",)] == 2
