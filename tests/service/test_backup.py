"""Backups taken while others write, what is restored from them, and folders that cannot be written to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.errors import IndexLockedError
from nlp_retrieval.evidence import ClaimVerifier, EvidenceIndex, LexicalVerifier

from .running import error_of, make_index, running

PAGE = (Path(__file__).parents[2] / "docs" / "SERVICE.md").read_text("utf-8")
COMMANDS = [block.replace("$ ", "") for block in re.findall(r"```console\n(.*?)```", PAGE.partition("## Backup")[2], re.DOTALL)]
GROUP = 3


def back_up(block: str, folder: Path) -> None:
    """Run the commands of the page."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-ec", block], cwd=folder, env=os.environ | {"PATH": path}, check=True)


def river(number: int) -> dict[str, str]:
    return {"content": f"River number{number} is {number + 100} kilometres long.", "url": f"https://example.org/{number}"}


def while_writing(write, act) -> None:
    """Act while another thread writes; at least one write is done before, and one after."""
    began, ended, errors = threading.Event(), threading.Event(), []

    def writing():
        try:
            for number in range(1000):
                write(number)
                began.set()
                if ended.is_set():
                    return
        except Exception as error:
            errors.append(error)
            began.set()

    thread = threading.Thread(target=writing)
    thread.start()
    began.wait(120)
    act()
    ended.set()
    thread.join(120)
    assert not errors, errors


def test_an_index_is_backed_up_whole_while_it_is_written_to(tmp_path):
    make_index(tmp_path / "indexes" / "wiki")
    writer = Searcher([Bm25Retriever()]).open(tmp_path / "indexes" / "wiki")

    def write(number):
        pair = [SearchableItem(item_id=f"{word}{number}", content=word) for word in ("heron", "stork")]
        with suppress(IndexLockedError):  # during the copy
            writer.add(pair)

    while_writing(write, lambda: back_up(COMMANDS[0], tmp_path))
    copy = Searcher([Bm25Retriever()]).open(tmp_path / "backup" / "wiki")
    herons, storks = copy.search(["heron", "stork"], 10_000)
    assert len(herons) == len(storks) > 0
    assert len(copy.search("fox", 100)[0]) == 30


def test_a_project_is_backed_up_while_it_is_written_to_and_restored_and_answers_alike(tmp_path):
    project = EvidenceIndex(tmp_path / "my-project", Searcher([Bm25Retriever()]))
    project.add_documents([river(number) for number in range(10)])
    project.build_index()

    def write(number):
        project.add_documents([river(1000 + GROUP * number + part) for part in range(GROUP)])
        project.build_index()

    while_writing(write, lambda: back_up(COMMANDS[1], tmp_path))
    shutil.copytree(tmp_path / "backup" / "my-project", tmp_path / "restored")
    with project, EvidenceIndex(tmp_path / "restored", Searcher([Bm25Retriever()])) as restored:
        urls = {source.url for source in restored.sources()}
        added = urls - {river(number)["url"] for number in range(10)}
        assert added
        assert added == {river(1000 + number)["url"] for number in range(len(added))}, "no source before another is missing"
        assert urls <= {source.url for source in project.sources()}
        restored.build_index()
        for url in sorted(urls):
            number = int(url.rpartition("/")[2])
            assert [passage.url for passage in restored.search(f"number{number}", 1)] == [url]
        claim = "River number3 is 103 kilometres long."
        verdicts = [ClaimVerifier(index, LexicalVerifier()).verify(claim) for index in (project, restored)]
        assert verdicts[0].verification_status == verdicts[1].verification_status
        assert [e.quote for e in verdicts[0].supporting_evidence] == [e.quote for e in verdicts[1].supporting_evidence]


def without_writing(folder: Path) -> list[str]:
    """Words before a command that may not write to a folder, also where root runs it."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] if os.geteuid() == 0 else []


@pytest.fixture
def project(tmp_path):
    with EvidenceIndex(tmp_path / "project", Searcher([Bm25Retriever()])) as index:
        index.add_documents([river(number) for number in range(5)])
        index.build_index()
    return tmp_path / "project"


def test_a_project_is_served_where_it_cannot_be_written(project):
    with running([project, "--warm"], before=without_writing(project)) as service, service.client() as client:
        (found,) = client.post("/search", json={"query": "number3", "k": 1}).json()["passages"]
        assert found["url"] == river(3)["url"]
        assert client.post("/verify", json={"claim": river(3)["content"]}).json()["verification_status"] == "SUPPORTED"
        assert "cannot write" in error_of(client.post("/index", json={"documents": [river(9)]}), 503, "index_not_writable")
        assert client.get("/stats").json()["document_count"] == 5
        assert client.get("/metrics").status_code == 200
