"""The service behind the page: only by its token, blind to systems, and every decision kept at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from cli.commands import COMMAND

from nlp_retrieval.judging import JudgingProject

from .world import RUNS, make


class Served:
    """A page that is served, by its address and token."""

    def __init__(self, project: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "judge", "serve", str(project), *words], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r" on (http://[\d.:]+)/#(\S+)", line)
        assert found, line + self.process.stderr.read()
        self.url, self.token = found[1], found[2]

    def client(self, token: str | None = None) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code


@contextmanager
def served(project: Path, *words: str) -> Iterator[Served]:
    running = Served(project, *words)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)


@pytest.fixture
def project(tmp_path: Path) -> JudgingProject:
    return make(tmp_path / "judging", scale="graded")


def test_a_judge_works_through_the_pairs_by_the_service(project):
    with served(project.path, "--judge", "Ann") as page:
        with page.client() as client:
            html = client.get("/", headers={"Authorization": ""})
            assert html.status_code == 200
            assert not any(word in html.text for word in ("whale", "Ann", *RUNS)), "the page holds nothing of the project"
            for headers in ({"Authorization": ""}, {"Authorization": "Bearer " + "x" * 32}):
                assert client.post("/next", json={}, headers=headers).status_code == 401
            assert client.post("/next", json={}, headers={"Host": "evil.example"}).status_code == 421
            state = client.post("/next", json={}).json()
            said = json.dumps(state)
            assert not any(system in said for system in RUNS)
            marked = [text for text, is_marked in state["pair"]["content"] if is_marked]
            assert "whale" in marked
            body = {
                "number": state["pair"]["number"],
                "decision": "graded",
                "grade": 3,
                "note": "n",
                "seconds": 2.5,
            }
            after = client.post("/judge", json=body).json()
            assert (after["progress"]["judged"], after["progress"]["mine"]) == (1, 1)
            assert after["pair"]["number"] != body["number"]
            refused = client.post("/judge", json=body | {"grade": 9})
            assert (refused.status_code, "grades here are 0" in refused.json()["error"]["message"]) == (422, True)
            none = client.post("/judge", json=body | {"number": 2**63})
            assert none.status_code == 422, "no number of a pair, and no fault of the service"
            again = client.post("/undo", json={}).json()
            assert (again["progress"]["judged"], again["pair"]["number"]) == (0, body["number"])
            client.post("/judge", json=body)
        page.end(signal.SIGKILL)
    (kept,) = project.judgements()
    assert (kept.grade, kept.note, kept.seconds, kept.judge) == (3, "n", 2.5, "Ann")
    with served(project.path, "--judge", "Ann") as page, page.client() as client:
        assert client.post("/next", json={}).json()["pair"]["number"] == after["pair"]["number"], "resumed where Ann was"
        assert page.end() == 0


def test_disagreements_are_settled_by_the_service(project):
    project.judge(2, 3, "Ann")
    project.judge(2, 0, "Ben")
    with served(project.path, "--judge", "Cem", "--settle") as page, page.client() as client:
        state = client.post("/next", json={}).json()
        assert (state["pair"]["number"], state["pair"]["grades"]) == (2, {"Ann": 3, "Ben": 0})
        done = client.post("/judge", json={"number": 2, "decision": "graded", "grade": 1}).json()
        assert done["pair"] is None
    assert project.pool().grades[2] == 1
