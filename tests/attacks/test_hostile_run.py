"""A benchmark of hostile texts, ids and names: its page runs no script, a terminal obeys nothing, its files stay its own."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, benchmarker
from reports.page.test_page import Page, policy
from reports.report_data import usual_report

from nlp_retrieval import (
    Bm25Retriever,
    Gold,
    LinkGraphRetriever,
    RetrievalError,
    SearchableItem,
    Searcher,
    read_run_folder,
    write_run_files,
)
from nlp_retrieval.cli.app import main
from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.reports.tables import latex_table, markdown_table

RUNS = "document.title='owned'"
PAYLOADS = {
    "out of a script": f"</script><script>{RUNS}</script>",
    "out of a title": f"</title></textarea></select></option><script>{RUNS}</script>",
    "image": f"<img src=x onerror={RUNS}>",
    "drawing": f"<svg/onload={RUNS}>",
    "out of an attribute": f'"\' autofocus onfocus={RUNS} x="',
    "address": f'<a href="javascript:{RUNS}">x</a>',
    "base": '<base href="https://evil.example/">',
    "entities": f"&lt;script&gt;{RUNS}&lt;/script&gt;&#60;script&#62;",
    "math": f"<math><mtext></form><form><mglyph><style></math><img src onerror={RUNS}>",
}
MARKUP = " ".join(PAYLOADS.values())
SEQUENCES = (
    "\x1b[31;1mred\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\"
    "\x1b[2J\x1b[H\rerased\x1b[1A\x1b[2Kgood\b\b\b\bevil\x9b31mred\x9d0;owned\x9c\x05\x1b[6n\x7f\x07"
)
"""Colour, title of the window, clipboard, link, clearing, what was printed before, eight bits, answering back, bell."""
ALL = f"{MARKUP} {SEQUENCES} ../../x"
NAMES = {name: f"{name}{ALL}" for name in ("plain", "links", "failing")}
LABEL = PAYLOADS["drawing"].replace(".", "&#46;")  # of a retriever, which has neither a stop nor a bracket
FOREIGN = {"img", "iframe", "base", "object", "embed", "link", "math", "form", "mglyph", "mtext", "textarea", "template"}


class Hostile(BaseLoader):
    """The texts of the small benchmark, with markup and sequences all over, and titles that are mentioned."""

    name = "hostile"

    def stream(self):  # type: ignore[no-untyped-def]
        for row, text in enumerate(TEXTS):
            named = f"Zora Helm {row}"
            content = f"{ALL}. {text}, of {named if row == 0 else f'Zora Helm {row - 1}'} {MARKUP}. {ALL}"
            yield SearchableItem(item_id=f"d{row}{ALL}", content=content, metadata={"title": named, f"key{ALL}": ALL})


class Failing(BaseUserQueryProcessor):
    """Fails with markup in its message."""

    name = "failing"

    def process(self, nlqs: list[str]) -> list[list[str]]:
        raise RetrievalError(f"cannot {ALL}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds ``work`` alone, with an index and a run."""
    made = tmp_path_factory.mktemp("hostile")
    queries = []
    for query in QUERIES:
        named = {"query_id": query.query_id + ALL, "metadata": {"hops": f"{query.metadata['hops']}{ALL}"}}
        queries.append(query.model_copy(update=named | {"text": f"{query.text} Zora {ALL}"}))
    gold = [Gold(query_id=one.query_id + ALL, relevance={f"{item}{ALL}": 1 for item in one.relevance}) for one in GOLD]
    searchers = {
        "plain": Searcher({f"label {LABEL}": Bm25Retriever()}),
        "links": Searcher([LinkGraphRetriever([Bm25Retriever()])]),
        "failing": Searcher([Bm25Retriever()], processor=Failing()),
    }
    run = benchmarker(
        made / "work" / "index", searchers={NAMES[name]: one for name, one in searchers.items()}, loader=Hostile(),
        queries=queries, gold=gold, latency_queries=1, stage_folder=made / "work" / "run" / "stages",
    ).run()  # fmt: skip
    assert write_run_files(run, made / "work" / "run").failed
    return made


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the small benchmark without markup."""
    folder = tmp_path_factory.mktemp("plain")
    write_run_files(benchmarker(folder / "index", latency_queries=1).run(), folder / "run")
    return Page((folder / "run" / "report.html").read_text("utf-8"))


# the page


def test_a_report_has_no_element_and_no_attribute_of_theirs(folder: Path, plain: Page) -> None:
    page = Page((folder / "work" / "run" / "report.html").read_text("utf-8"))
    assert page.texts("script")[-1] == plain.texts("script")[-1]
    assert not page.open
    assert "why" in {attributes.get("id") for _, attributes in page.elements}
    assert len(page.of("script")) == len(plain.of("script"))
    assert not FOREIGN & {tag for tag, _ in page.elements}
    for _, attributes in page.elements:
        assert not any(key.startswith("on") for key in attributes)
        assert attributes.get("href", "#").startswith("#")
        assert not {"src", "srcdoc", "action", "formaction", "style", "autofocus"} & attributes.keys()
    assert all(policy(page).partition(word)[1] == "" for word in ("unsafe", "http:", "https:", "*", "data:"))
    shown = "".join(page.texts("bdi")) + "".join(page.texts("code")) + "".join(page.texts("li"))
    for payload in PAYLOADS.values():
        assert payload in shown


def test_tables_in_files_hold_them_as_text() -> None:
    report = usual_report()
    latex = r"\input{/etc/passwd}\write18{id}$x$%&_#^~{}"
    renamed = [replace(one, name=f"{latex}{MARKUP}|\n|{n}") for n, one in enumerate(report.configurations)]
    report = replace(report, configurations=renamed, baseline=renamed[0].name, comparisons={})
    table = markdown_table(report)
    assert not re.search(r"(?<!\\)<(?:script|img|svg|iframe|a |meta|base)", table)
    assert len({line.count("|") - line.count("\\|") for line in table.splitlines() if line.startswith("|")}) == 1
    table = latex_table(report)
    assert not re.search(r"\\(?:input|write)", table)
    assert r"\textbackslash{}input\{/etc/passwd\}" in table


# the terminal


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Said]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands in this process, and check that a terminal obeys nothing of what they print."""

    def command(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["nlp-retrieval", *words])
        capfd.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as ended:
                main()
        said = Said(int(ended.value.code or 0), *capfd.readouterr())
        assert "Traceback" not in said.stderr
        assert said.stdout + said.stderr
        assert obeyed(said.stdout + said.stderr) == set()
        return said

    return command


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal would act upon; line ends are ours."""
    return {character for character in text if unicodedata.category(character) == "Cc" and character != "\n"}


def test_results_are_shown_without_sequences(folder: Path, run: Run) -> None:
    work = folder / "work"
    for words in (["-r", "link_graph:seeds=[bm25]"], ["-r", "bm25"]):
        done = run("search", str(work / "index"), f"fox whale {ALL}", *words, "-k", "3")
        assert done.code == 0, done.stderr
        assert done.stdout.count("red") >= 3
    first, second = (f"{work / 'run'}:{NAMES[name]}" for name in ("plain", "links"))
    commands = [["compare", str(work / "run")], ["diff", first, second]]
    commands += [["diff", first, second, "--query", f"{query}{ALL}"] for query in ("q0", "none")]
    for words in commands:
        run(*words)


# the files


def test_a_benchmark_with_odd_names_writes_into_its_folder_alone(folder: Path) -> None:
    work = folder / "work"
    assert {path.name for path in folder.iterdir()} == {"work"}
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in work.rglob("*"))
    runs = [path for path in (work / "run" / "trec").iterdir() if path.suffix == ".trec"]
    assert [len(read_run(path)) for path in runs] == [len(QUERIES)] * (len(NAMES) - 1)
    assert list(read_run_folder(work / "run").lists.listings) == [NAMES[name] for name in ("plain", "links")]


def test_results_of_an_earlier_run_name_no_file_elsewhere(tmp_path: Path) -> None:
    """The files of configurations that are gone are removed, by the names in the results that were there."""
    output, victim = tmp_path / "output", tmp_path / "victim.trec"
    (output / "trec").mkdir(parents=True)
    victim.write_text("precious")
    (output / "trec" / "old.trec").write_text("old")
    planted = {"configurations": ["../../victim", str(tmp_path / "victim"), "old"]}
    (output / "results.json").write_text(json.dumps(planted))
    write_run_files(benchmarker(tmp_path / "index", latency_queries=1).run(), output)
    assert victim.read_text() == "precious"
    assert not (output / "trec" / "old.trec").exists()


@pytest.mark.soak
def test_no_script_of_theirs_runs_in_chromium(folder: Path, tmp_path: Path) -> None:
    """Also without the page's policy, which would stop a script that got in."""
    from bench.browser import chromium, opened

    marked = (folder / "work" / "run" / "report.html").read_text("utf-8")
    title, *_ = re.findall(r"<title>(.*?)</title>", marked)  # further ones are of drawings
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", marked)
    assert without_policy != marked
    pages = {f"<title>report</title><p>{MARKUP}</p>": "owned", marked: title, without_policy: title}
    for number, (page, shown) in enumerate(pages.items()):
        (tmp_path / f"{number}.html").write_text(page, "utf-8")
        with chromium() as browser:
            tab = opened(browser, (tmp_path / f"{number}.html").as_uri(), [])
            tab.wait_for_timeout(2000)
            assert tab.title() == shown
