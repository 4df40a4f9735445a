"""``nlp-retrieval policy ask``: from an index or a configuration to answers and a page, and what it says where it cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from cli.commands import refused, run

from nlp_retrieval import Bm25Retriever, Searcher
from systems.policy.study.studies import PROFILE, plans

CONFIG: dict[str, Any] = {
    "profile": "./energy.yaml",
    "corpus": {"loader": "jsonl", "path": "plans.jsonl"},
    "index": "index",
    "searcher": {
        "retrievers": ["bm25"],
        "reranker": {"name": "multi_signal", "profile": "./energy.yaml", "min_similarity": 0},
    },
    "output": "out",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plans, a profile, an index and a configuration."""
    folder = tmp_path_factory.mktemp("ask")
    lines = [{"id": item.item_id, "content": item.content, **item.metadata} for item in plans()]
    (folder / "plans.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (folder / "energy.yaml").write_text(yaml.safe_dump(PROFILE), "utf-8")
    (folder / "study.yaml").write_text(yaml.safe_dump(CONFIG), "utf-8")
    Searcher([Bm25Retriever()]).index(plans(), folder / "index")
    return folder


def answers(folder: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def test_an_index_and_a_profile_are_enough(made: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    done = run("policy", "ask", "--index", "index", "--profile", "./energy.yaml", "--output", out, folder=made)
    assert done.returncode == 0, done.stderr
    assert "asked 3 of 3 (country), 2 questions" in done.stderr
    told = answers(tmp_path / "out")
    assert sorted(told) == ["Costa_Verde", "Ile", "Ostland"]
    assert {len(one["questions"]) for one in told.values()} == {2}
    assert "Ostland" in (tmp_path / "out" / "report.html").read_text("utf-8")
    again = run("policy", "ask", "--index", "index", "--profile", "./energy.yaml", "--output", out, "--no-page", folder=made)
    assert "asked 0 of 3 (country), 2 questions" in again.stderr
    assert "3 were already answered" in again.stderr


def test_a_configuration_indexes_and_asks_and_a_log_is_written_where_it_is_wanted(made: Path, tmp_path: Path) -> None:
    for name in ("plans.jsonl", "energy.yaml", "study.yaml"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    done = run("policy", "ask", "study.yaml", "--log-file", "logs/retrieve.log", "--log-level", "DEBUG", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(answers(tmp_path / "out")) == ["Costa_Verde", "Ile", "Ostland"]
    log = (tmp_path / "logs" / "retrieve.log").read_text("utf-8")
    assert re.search(r"^\d{4}-\d\d-\d\d .* DEBUG \[VECTOR_SIMILARITY\] filter .*Ile", log, re.MULTILINE)
    assert "[4_RETRIEVE] All results completed: 3 asked" in log


def test_what_cannot_be_done_is_one_line_that_says_what_to_do(made: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    index = ["--index", "index", "-p", "./energy.yaml"]
    for words, code, said in (
        ([], 2, "give a configuration"),
        ([*index, "--country", "Ostlnd"], 2, "did you mean 'Ostland'"),
        (["--index", "index", "-p", "climat"], 2, "did you mean 'climate'"),
        ([*index, "--hop"], 2, "follows relations"),
        (["--index", "nowhere", "-p", "./energy.yaml"], 3, "nowhere"),
        (["study.yaml", "--index", "index"], 2, "omit --profile and --index"),
    ):
        with subtests.test(words=words):
            output = ["--output", str(tmp_path / "out")] if words else []
            refused(run("policy", "ask", *words, *output, folder=made), code, said)
            assert not (tmp_path / "out").exists()


def test_a_wrong_configuration_names_the_key(made: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    (tmp_path / "energy.yaml").write_bytes((made / "energy.yaml").read_bytes())
    changes: dict[str, dict[str, Any]] = {
        "unknown key 'profil'; did you mean 'profile'": {"profil": "climate"},
        "profile: expected the name of a profile": {"profile": 3},
        "where: expected a filter": {"where": "Ile"},
    }
    for said, change in changes.items():
        with subtests.test(said=said):
            (tmp_path / "study.yaml").write_text(yaml.safe_dump(CONFIG | change), "utf-8")
            refused(run("policy", "ask", "study.yaml", folder=tmp_path), 2, said)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for the socket of a PostgreSQL server."""
    with TemporaryDirectory(prefix="nlpr-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def test_the_demo_asks_both_ways_judges_and_finds_the_changes(short_path: Path) -> None:
    done = run("policy", "demo", "--output", "demo", folder=short_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(answers(short_path / "demo" / "answers")) == 12
    rows = {
        line.split("│")[1].strip(): [float(cell) for cell in line.split("│")[2:5]]
        for line in done.stdout.splitlines()
        if "│" in line
    }
    assert set(rows) == {"sentence vectors alone", "by signals", "along relations"}
    assert rows["by signals"][1] > rows["sentence vectors alone"][1]
    known, found = map(int, re.search(r"plans: (\d+) of (\d+) found", done.stderr).groups())  # type: ignore[union-attr]
    assert 0 < known == found
    page = (short_path / "demo" / "report.html").read_text("utf-8")
    assert "Windale" in page
    again = run("policy", "ask", "demo/study.yaml", "--hop", folder=short_path)
    assert "12 were already answered" in again.stderr, again.stderr
