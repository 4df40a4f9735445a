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

from nlp_retrieval import Bm25Retriever, Gold, JsonlLoader, LinkGraphRetriever, OverlapReranker, SearchableItem, Searcher
from nlp_retrieval.cli.app import main
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.reports.write import write_run_files
from nlp_retrieval.text.printing import printable

SEQUENCES = {
    "colour": "\x1b[31;1mred",
    "title of the window": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clear": "\x1b[2J\x1b[H",
    "what was printed before": "\rerased\x1b[1A\x1b[2K",
    "backspaces": "good\b\b\b\bevil",
    "eight bit": "\x9b31mred\x9d0;owned\x9c",
    "answer back": "\x05\x1b[6n",
    "delete and bell": "\x7f\x07",
}
ALL = "".join(SEQUENCES.values())


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
    lines = [{"id": "a" + ALL, "content": f"Ada Quill {ALL} [sic] built it. {ALL}", "metadata": {"title": f"Old Tower{ALL}"}}]
    lines += [{"id": "b" + ALL, "content": "A merchant.", "metadata": {"title": "Ada Quill"}}]
    lines += [{"id": f"c{n}", "content": "Walnuts.", "metadata": {"title": f"Zora Helm {n}"}} for n in range(3)]
    (made / "linked.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Searcher([LinkGraphRetriever([Bm25Retriever()])]).index(JsonlLoader(made / "linked.jsonl"), made / "linked")
    return made


def test_what_is_printable_is_obeyed_nowhere(subtests: pytest.Subtests) -> None:
    for name, sequence in SEQUENCES.items():
        with subtests.test(name=name):
            assert obeyed(printable(sequence)) == set()
            assert printable(f"a{sequence}z").startswith("a")
            assert printable("Köln 東京 🙂 naïve") == "Köln 東京 🙂 naïve"


def test_results_are_shown_without_sequences(folder: Path, run: Run) -> None:
    for words in (["-r", "bm25"], ["-r", "bm25", "--reranker", "overlap"]):
        done = run("search", str(folder / "index"), f"fox whale {ALL}", *words, "-k", "3")
        assert done.code == 0, done.stderr
        assert done.stdout.count("Page") == 3
        assert obeyed(done.stdout + done.stderr) == set()
    done = run("search", str(folder / "linked"), f"tower {ALL}", "--explain")
    assert "because " in done.stdout
    assert obeyed(done.stdout + done.stderr) == set()


def test_json_holds_them_escaped_and_whole(folder: Path, run: Run) -> None:
    done = run("search", str(folder / "index"), f"fox {ALL}", "-r", "bm25", "--json", "-k", "2")
    assert obeyed(done.stdout) == set()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2
    assert all(line["query"] == f"fox {ALL}" and line["item"]["item_id"].endswith(ALL) for line in lines)


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
