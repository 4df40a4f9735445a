"""What a corpus, a query or a name holds is text in the report, whatever markup it is made of: no script of theirs runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, benchmarker
from reports.page.test_page import Page, policy
from reports.report_data import usual_report

from nlp_retrieval import Bm25Retriever, Gold, LinkGraphRetriever, RetrievalError, SearchableItem, Searcher
from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.reports.tables import latex_table, markdown_table
from nlp_retrieval.reports.write import write_run_files

RUNS = "document.title='owned'"
PAYLOADS = {
    "out of a script": f"</script><script>{RUNS}</script>",
    "out of a style": f"</style><script>{RUNS}</script>",
    "out of a title": f"</title></textarea></select></option><script>{RUNS}</script>",
    "out of a comment": f"--><script>{RUNS}</script><!--",
    "image": f"<img src=x onerror={RUNS}>",
    "drawing": f"<svg/onload={RUNS}>",
    "out of an attribute": f'"\' autofocus onfocus={RUNS} x="',
    "address": f'<a href="javascript:{RUNS}">x</a>',
    "frame": f'<iframe srcdoc="<script>parent.{RUNS}</script>"></iframe>',
    "base": '<base href="https://evil.example/">',
    "entities": f"&lt;script&gt;{RUNS}&lt;/script&gt;&#60;script&#62;",
    "line separator": f"\u2028{RUNS}//",
    "math": f"<math><mtext></form><form><mglyph><style></math><img src onerror={RUNS}>",
}
ALL = " ".join(PAYLOADS.values())
LABEL = PAYLOADS["drawing"].replace(".", "&#46;")  # of a retriever, which has neither a stop nor a bracket
FOREIGN = {"img", "iframe", "base", "object", "embed", "link", "math", "form", "a", "mglyph", "mtext", "textarea", "template"}


class Marked(BaseLoader):
    """The texts of the small benchmark, with markup all over, and titles that are mentioned."""

    name = "marked"

    def stream(self):  # type: ignore[no-untyped-def]
        for row, text in enumerate(TEXTS):
            named = f"Zora Helm {row}"
            content = f"{ALL}. {text}, of {named if row == 0 else f'Zora Helm {row - 1}'} {PAYLOADS['out of a script']}. {ALL}"
            yield SearchableItem(item_id=f"d{row}{ALL}", content=content, metadata={"title": named, "more": ALL})


class Failing(BaseUserQueryProcessor):
    """Fails with markup in its message."""

    name = "failing"

    def process(self, nlqs: list[str]) -> list[list[str]]:
        raise RetrievalError(f"cannot {ALL}")


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a benchmark with markup in everything that users name."""
    folder = tmp_path_factory.mktemp("markup")
    queries = []
    for query in QUERIES:
        named = {"query_id": query.query_id + ALL, "metadata": {"hops": f"{query.metadata['hops']}{ALL}"}}
        queries.append(query.model_copy(update=named | {"text": f"{query.text} Zora {ALL}"}))
    gold = [Gold(query_id=one.query_id + ALL, relevance={f"{item}{ALL}": 1 for item in one.relevance}) for one in GOLD]
    graph = LinkGraphRetriever([Bm25Retriever()])
    run = benchmarker(
        folder / "index",
        searchers={
            f"plain {ALL}": Searcher({f"label {LABEL}": Bm25Retriever()}),
            f"links {ALL}": Searcher([graph]),
            f"failing {ALL}": Searcher([Bm25Retriever()], processor=Failing()),
        },
        loader=Marked(), queries=queries, gold=gold, latency_queries=1, stage_folder=folder / "stages",
    ).run()  # fmt: skip
    report = write_run_files(run, folder / "output")
    assert report.failed
    return (folder / "output" / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the small benchmark without markup."""
    folder = tmp_path_factory.mktemp("plain")
    write_run_files(benchmarker(folder / "index", latency_queries=1, stage_folder=folder / "stages").run(), folder / "output")
    return Page((folder / "output" / "report.html").read_text("utf-8"))


def test_a_report_has_no_element_and_no_attribute_of_theirs(marked: str, plain: Page) -> None:
    page = Page(marked)
    for name in PAYLOADS:
        assert page.texts("script")[-1] == plain.texts("script")[-1], name
    assert not page.open
    assert {"explained", "why"} <= {attributes.get("id") for _, attributes in page.elements}
    assert len(page.of("script")) == len(plain.of("script"))
    assert not (FOREIGN - {"a"}) & {tag for tag, _ in page.elements}
    for _, attributes in page.elements:
        assert not any(key.startswith("on") for key in attributes)
        assert attributes.get("href", "#").startswith("#")
        assert not {"src", "srcdoc", "action", "formaction", "style", "autofocus"} & attributes.keys()
    assert all(policy(page).partition(word)[1] == "" for word in ("unsafe", "http:", "https:", "*", "data:"))
    shown = "".join(page.texts("bdi")) + "".join(page.texts("code")) + "".join(page.texts("li"))
    for payload in PAYLOADS.values():
        assert payload.replace("\u2028", "\ufffd") in shown


def test_tables_in_files_hold_them_as_text() -> None:
    report = usual_report()
    latex = r"\input{/etc/passwd}\write18{id}$x$%&_#^~{}"
    renamed = [replace(one, name=f"{latex}{ALL}|\n|{n}") for n, one in enumerate(report.configurations)]
    report = replace(report, configurations=renamed, baseline=renamed[0].name, comparisons={})
    table = markdown_table(report)
    assert not re.search(r"(?<!\\)<(?:script|img|svg|iframe|a |meta|base)", table)
    assert len({line.count("|") - line.count("\\|") for line in table.splitlines() if line.startswith("|")}) == 1
    table = latex_table(report)
    assert not re.search(r"\\(?:input|write)", table)
    assert r"\textbackslash{}input\{/etc/passwd\}" in table


def shown_title(page: str, folder: Path) -> str:
    """The title of a page after Chromium has run whatever runs in it."""
    from bench.browser import chromium, opened

    (folder / "page.html").write_text(page, "utf-8")
    with chromium() as browser:
        tab = opened(browser, (folder / "page.html").as_uri(), [])
        tab.wait_for_timeout(2000)
        return tab.title()


@pytest.mark.soak
def test_no_script_of_theirs_runs_in_chromium(marked: str, tmp_path: Path) -> None:
    """Also without the page's policy, which would stop a script that got in."""
    title, *_ = re.findall(r"<title>(.*?)</title>", marked)  # further ones are of drawings
    naive = tmp_path / "naive"
    naive.mkdir()
    assert shown_title(f"<title>report</title><p>{ALL}</p>", naive) == "owned"
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", marked)
    assert without_policy != marked
    for number, page in enumerate((marked, without_policy)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert shown_title(page, folder) == title
