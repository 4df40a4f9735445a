"""Recorded sessions: what is asked of a service or searched in a program is there, whole and in order, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from service.asking_mcp import called, over_http
from service.running import Running, make_index, running

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.agents import AgentStep, Recorder, Session, read_trajectories, recording
from nlp_retrieval.core import record_steps
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.service import IndexService
from nlp_retrieval.service.index_service import SearchBody
from nlp_retrieval.service.sessions import SessionRecord

SECRET = "sk-" + "a1B2c3D4e5F6g7H8i9J0"


def lines_of(folder):
    """Every line of every session, by session; a line that is not whole is an error.

    An empty line is none: it is written where another process was in the middle of its own.
    """
    found = {}
    for file in sorted(Path(folder).glob("*.jsonl")):
        content = file.read_bytes()
        assert content.endswith(b"\n")
        for line in filter(None, content.splitlines()):
            found.setdefault(json.loads(line)["session"], []).append(json.loads(line))
    return found


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "index"
    make_index(folder, 12)
    return folder


@pytest.fixture(scope="module")
def searcher(index):
    return Searcher([Bm25Retriever()]).open(index)


def test_over_http_and_mcp_a_session_holds_what_was_asked_and_found_and_no_text_of_it(index, tmp_path):
    folder = tmp_path / "sessions"
    names = {"X-Session-Id": "s1", "X-Question-Id": "q/1", "X-Agent": "react"}

    async def ask(client: Client) -> None:
        assert "submit_answer" in {tool.name for tool in (await client.list_tools()).tools}
        meta = {"session_id": "s2", "question_id": "q2", "question": "Wo läuft der Fuchs?"}
        found = await client.call_tool("search", {"query": "dog", "k": 2}, meta=meta)
        ids = [one["item"]["item_id"] for one in found.structured_content["results"]]
        assert ids == ["p0", "p3"]
        await client.call_tool("read_passage", {"item_id": ids[0]}, meta=meta)
        missing = await client.call_tool("read_passage", {"item_id": "p99"}, meta=meta)
        assert missing.is_error
        await client.call_tool("submit_answer", {"answer": "There.", "citations": ids[:1]}, meta=meta)
        await called(client, "search", query="fox number3", k=1)

    with running([index, "--mcp-http", "--record", folder]) as service, service.client() as client:
        where = {"k": 3, "where": {"year": {"gte": 2003}}}
        found = [client.post("/search", json={"query": query} | where, headers=names) for query in ("dog", "number7")]
        results = [[one["item"]["item_id"] for one in answer.json()["results"]] for answer in found]
        assert client.post("/submit_answer", json={"answer": "Here [p3]."}, headers=names).json() == {"session": "s1"}
        assert client.post("/search", json={"query": "x"}, headers={"X-Session-Id": "a b"}).status_code == 422
        over_http(service.url, None, ask)
    sessions = lines_of(folder)
    first, second, answer = sessions["s1"]
    assert [first["results"], second["results"]] == results
    assert (first["query"], second["query"], first["k"]) == ("dog", "number7", 3)
    assert (first["where"], first["tool"], first["question_id"]) == ({"year": {"gte": 2003}}, "/search", "q/1")
    assert (answer["answer"], answer["agent"], "citations" in answer) == ("Here [p3].", "react", False)
    search, opened, missing, answer = sessions["s2"]
    assert (search["results"], search["question"], search["tool"]) == (["p0", "p3"], "Wo läuft der Fuchs?", "search")
    assert (opened["kind"], opened["item_id"], "error" in opened) == ("open", "p0", False)
    assert "p99" in missing["error"]
    assert answer["citations"] == ["p0"]
    read = {trajectory.question_id: trajectory for trajectory in read_trajectories(folder)}
    assert (read["q/1"].answer, read["q/1"].agent, len(read["q/1"].steps)) == ("Here [p3].", "react", 2)
    assert (read["q2"].opened(), read["q2"].cited(), read["q2"].question) == (["p0"], ["p0"], "Wo läuft der Fuchs?")
    (day,) = (name for name in sessions if name.startswith("day-"))
    assert [line["query"] for line in sessions[day]] == ["fox number3"]
    everything = "".join(file.read_text() for file in folder.iterdir())
    assert "number0" not in everything
    assert "127.0.0.1" not in everything
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_a_kill_loses_no_answered_search_and_tears_nothing_that_is_read(index, tmp_path):
    """A process that answers eight clients in one session is killed in the middle of 200 calls; another goes on with it."""
    folder, answered, enough = tmp_path / "sessions", [], threading.Event()
    service = Running([index, "--record", folder])

    def ask(number):
        body, headers = {"query": f"fox {number}"}, {"X-Session-Id": "s"}
        try:
            answer = client.post("/search", json=body, headers=headers)
        except httpx2.TransportError:
            return
        answered.append(f"fox {number}")
        assert answer.status_code == 200
        if len(answered) == 80:
            enough.set()

    with service.client() as client, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, number) for number in range(200)]
        assert enough.wait(120)
        service.process.kill()
        [each.result() for each in asked]
    service.ended()
    before = lines_of(folder)["s"]
    assert 80 <= len(answered) < 200
    assert set(answered) <= {line["query"] for line in before}
    with Recorder(folder).path_of("s").open("ab") as file:
        file.write(b'{"step": 999, "session": "s", "query": "to')  # as a kill within a write leaves it
    with pytest.warns(RetrievalWarning, match="torn"):
        (trajectory,) = read_trajectories(folder)
    assert [step.query for step in trajectory.steps] == [line["query"] for line in before]
    Recorder(folder).session("s").add({"kind": "search", "query": "after"})
    with pytest.warns(RetrievalWarning, match="torn"):
        (trajectory,) = read_trajectories(folder)
    assert [step.query for step in trajectory.steps] == [*(line["query"] for line in before), "after"]


@pytest.mark.parametrize("joined", [False, True])
def test_secrets_are_hidden_in_every_text(tmp_path, monkeypatch, joined):
    monkeypatch.setenv("SEARCH_API_TOKEN", "word-of-the-environment")
    sign = " a = b" if joined else ""
    session = Recorder(tmp_path).session(f"name {SECRET}", question=f"{SECRET}?{sign}", agent=SECRET)
    session.add(
        AgentStep(
            kind="search",
            query=f"with word-of-the-environment{sign}",
            where={"api_key": "abc", "url": {"eq": "https://user:pass@host/"}},
            results=(SECRET, "p1"),
            error="Bearer abcdefghijkl",
            text="password=hunter2",
            item_id=SECRET,
        )
    )
    session.add_answer(f"It is {SECRET}", [SECRET, "p1"])
    written = "".join(f"{file.name} {file.read_text()}" for file in tmp_path.iterdir())
    for secret in (SECRET, "word-of-the-environment", 'abc"', "user:pass", "abcdefghijkl", "hunter2"):
        assert secret not in written
        assert secret not in session.trajectory().model_dump_json()
    (lines,) = lines_of(tmp_path).values()
    assert lines[0]["session"] != Session(None, f"name {SECRET}x").name, "names that are hidden are still told apart"
    assert lines[0]["results"] == ["***", "p1"]
    assert lines[1]["citations"] == ["***", "p1"]


def test_names_that_look_like_keys_are_told_apart_and_an_empty_citation_is_none(tmp_path):
    for number in (1, 2):
        session = Recorder(tmp_path).session(f"{SECRET}{number}", question_id=f"{SECRET}{number}", agent="rag")
        session.add_answer("So.", ["", "p1"])
    one, other = read_trajectories(tmp_path)
    assert one.question_id != other.question_id
    assert one.cited() == other.cited() == ["p1"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\n\x00b", "x" * 500, "a-b"])
def test_no_name_of_a_session_leads_out_of_its_folder(tmp_path, name):
    recorder = Recorder(tmp_path / "sessions")
    assert recorder.session(name).add({"kind": "note", "text": "x"})
    assert recorder.session("a?b").add({"kind": "note", "text": "other"})
    files = [file.relative_to(tmp_path).parts for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == 2
    assert all(len(parts) == 2 and len(parts[1]) < 120 for parts in files)


def test_what_cannot_be_written_is_said_and_the_answer_goes_out_all_the_same(tmp_path, caplog, monkeypatch):
    recorder = Recorder(tmp_path)
    assert recorder.session("s").add({"kind": "note", "text": "first"})
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: whole(descriptor, content[:20]))  # a full disk
    assert not recorder.session("s").add({"kind": "note", "text": "second"})
    monkeypatch.undo()
    assert "the disk is full" in caplog.text
    assert recorder.session("s").add({"kind": "search", "query": "x", "where": {"in": {1, 2}}, "results": ["p1"]})
    with pytest.warns(RetrievalWarning, match="torn"):
        (trajectory,) = read_trajectories(tmp_path)
    first, odd = trajectory.steps
    assert (first.text, odd.results, odd.text) == ("first", ("p1",), "left out, cannot be kept: where")
    outside = tmp_path / "outside"
    outside.write_text("")
    recorder.path_of("link").symlink_to(outside)
    assert not recorder.session("link").add({"kind": "note", "text": "x"})
    assert outside.read_text() == ""


def test_a_search_whose_answer_came_too_late_is_recorded_as_one_without_results(searcher, tmp_path):
    (gone := threading.Event()).set()
    (search, *_) = SessionRecord(tmp_path).endpoints(IndexService(searcher).endpoints)
    with changed_context(abandoned=gone):
        search.run(SearchBody(query="dog"))
    ((late,),) = lines_of(tmp_path).values()
    assert (late["query"], late.get("results", [])) == ("dog", [])
    assert late["error"] == "it took too long: the client no longer waited"


def test_one_line_records_a_program_and_threads_that_copy_its_context(searcher, tmp_path):
    with recording(tmp_path, "s", question_id="q1", agent="react") as session:
        hits = searcher.search("dog", 2, {"year": {"gte": 2003}})
        with ThreadPoolExecutor(1) as pool:
            pool.submit(copy_context().run, searcher.search, "number4", 1).result()
            pool.submit(searcher.search, "number6", 1).result()

            def entered():
                with session.active():
                    searcher.search("number5", 1)

            pool.submit(entered).result()
        with pytest.raises(ValueError, match="near"):
            searcher.search("dog", 2, {"year": {"near": 1}})
        with record_steps([{"kind": "open", "item_id": "p4"}]):
            searcher.search("fox inside of another step", 1)
        session.add_answer("It [p4].")
    searcher.search("fox after", 1)
    trajectory = session.trajectory()
    assert [step.query or step.item_id for step in trajectory.steps] == ["dog", "number4", "number5", "dog", "p4"]
    assert trajectory.steps[0].results == tuple(hit.item.item_id for hit in hits[0])
    assert "near" in trajectory.steps[3].error
    assert (trajectory.cited(), trajectory.question_id, trajectory.agent) == (["p4"], "q1", "react")
    assert [line.get("query", line.get("item_id")) for line in lines_of(tmp_path)["s"][:-1]] == [
        "dog", "number4", "number5", "dog", "p4",
    ]  # fmt: skip


def test_processes_and_threads_share_a_session(tmp_path):
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from nlp_retrieval.agents import Recorder
recorder = Recorder(sys.argv[1])
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda n: recorder.session("s").add({"kind": "note", "text": f"{sys.argv[2]} {n}"}), range(100)))
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, tmp_path, name]) for name in "ab"]
    assert [process.wait(100) for process in processes] == [0, 0]
    assert {line["text"] for line in lines_of(tmp_path)["s"]} == {f"{name} {number}" for name in "ab" for number in range(100)}
