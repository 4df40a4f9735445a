"""Nothing that a corpus, a query, a run or an error holds is obeyed by the terminal that shows it."""

from __future__ import annotations

import json
import sys
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, benchmarker

from nlp_retrieval import Bm25Retriever, Gold, OverlapReranker, SearchableItem, Searcher
from nlp_retrieval.cli.app import main
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.reports.write import write_run_files
from nlp_retrieval.text.printing import printable

ALL = (
    "\x1b[31;1mred\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\"
    "\x1b[2J\x1b[H\rerased\x1b[1A\x1b[2Kgood\b\b\b\bevil\x9b31mred\x9d0;owned\x9c\x05\x1b[6n\x7f\x07"
)
"""Colour, title of the window, clipboard, link, clearing, what was printed before, eight bits, answering back, bell."""


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal would act upon; line ends are ours."""
    return {character for character in text if unicodedata.category(character) == "Cc" and character != "\n"}


class Escaping(BaseLoader):
    """The texts of the small benchmark, with escape sequences all over."""

    name = "escaping"

    def stream(self):  # type: ignore[no-untyped-def]
        for row, text in enumerate(TEXTS):
            metadata = {"title": f"Page {row}{ALL}", f"key{ALL}": ALL}
            yield SearchableItem(item_id=f"d{row}{ALL}", content=f"{ALL} {text} {ALL}", metadata=metadata)


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Said]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands in this process: a process each would take seconds."""

    def command(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["nlp-retrieval", *words])
        capfd.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as ended:
                main()
        said = capfd.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index, and a run with escape sequences in the names of its configurations and in its queries."""
    made = tmp_path_factory.mktemp("terminal")
    names = [f"plain{ALL}", f"overlap{ALL}"]
    queries = [query.model_copy(update={"query_id": query.query_id + ALL, "text": query.text + ALL}) for query in QUERIES]
    gold = [Gold(query_id=one.query_id + ALL, relevance={f"{item}{ALL}": 1 for item in one.relevance}) for one in GOLD]
    searchers = [Searcher([Bm25Retriever()]), Searcher([Bm25Retriever()], reranker=OverlapReranker())]
    done = benchmarker(
        made / "index", searchers=dict(zip(names, searchers, strict=True)), loader=Escaping(), queries=queries, gold=gold,
        latency_queries=1,
    ).run()  # fmt: skip
    write_run_files(done, made / "run")
    return made


def test_what_is_printable_is_obeyed_nowhere() -> None:
    assert obeyed(printable(ALL)) == set()
    assert printable("Köln 東京 🙂 naïve") == "Köln 東京 🙂 naïve"


def test_results_are_shown_without_sequences(folder: Path, run: Run) -> None:
    for words in (["-r", "bm25"], ["-r", "bm25", "--reranker", "overlap"]):
        done = run("search", str(folder / "index"), f"fox whale {ALL}", *words, "-k", "3")
        assert done.code == 0, done.stderr
        assert done.stdout.count("Page") == 3
        assert obeyed(done.stdout + done.stderr) == set()


def test_runs_are_shown_without_sequences(folder: Path, run: Run) -> None:
    first, second = (f"{folder / 'run'}:{name}{ALL}" for name in ("plain", "overlap"))
    run_folder = str(folder / "run")
    commands = [["compare", run_folder], ["report", run_folder], ["diff", first, second]]
    commands += [["diff", first, second, "--query", f"{query}{ALL}"] for query in ("q0", "none")]
    for words in commands:
        done = run(*words)
        assert done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert obeyed(done.stdout + done.stderr) == set(), words[0]


def test_errors_and_notes_are_said_without_sequences(tmp_path: Path, run: Run) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps({"id": "a", f"content{ALL}": "x"}) + "\n")
    (tmp_path / "bad.yaml").write_text(json.dumps({f"key{ALL}": 1}))
    for words in (["index", str(tmp_path / "bad.jsonl"), str(tmp_path / "index"), "-r", "bm25"],
                  ["benchmark", str(tmp_path / "bad.yaml")], ["verify", f"{tmp_path}/{ALL.replace('/', '')}"],
                  ["search", str(tmp_path), "x", "-r", f"bm25:{ALL}=1"], ["components", "retrievers", ALL]):  # fmt: skip
        done = run(*words)
        assert done.code in (2, 3), done.stderr
        assert done.stderr.startswith("error: ")
        assert obeyed(done.stdout + done.stderr) == set(), words[0]
