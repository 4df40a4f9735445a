"""The service behind the page: only by its token, blind to systems, and every decision kept at once."""

from __future__ import annotations

import json
import signal
from contextlib import AbstractContextManager
from pathlib import Path

from service.running import Running, running

from .world import RUNS, make


def served(project: Path, *words: str) -> AbstractContextManager[Running]:
    return running([project, *words], verb=["judge", "serve"])


def test_a_judge_works_through_the_pairs_by_the_service(tmp_path):
    project = make(tmp_path / "judging", scale="graded")
    with served(project.path, "--judge", "Ann") as page:
        with page.client(page.token) as client:
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
            body = {"number": state["pair"]["number"], "decision": "graded", "grade": 3, "note": "n", "seconds": 2.5}
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
    with served(project.path, "--judge", "Ann") as page, page.client(page.token) as client:
        assert client.post("/next", json={}).json()["pair"]["number"] == after["pair"]["number"], "resumed where Ann was"
        assert page.end()[0] == 0
