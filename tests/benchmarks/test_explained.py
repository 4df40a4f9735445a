"""The part of a report that shows by which links hits were reached."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval import (
    Benchmarker,
    BenchmarkReport,
    Bm25Retriever,
    Gold,
    LinkGraphRetriever,
    Query,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.reports.page.page import render_page

BOOKS = {
    "Moby-Dick": "A whaling captain hunts a white whale. The novel is by Herman Melville.",
    "Herman Melville": "An American writer who worked in a customs house and was born <b>in Manhattan</b>.",
    "Walden": "Two years in a cabin beside a pond. The book is by Henry Thoreau.",
    "Henry Thoreau": "An American writer who made pencils in Concord.",
    "Pencil": "A thing to write with.",
}
QUERIES = [
    Query(query_id="whale", text="Who wrote about the captain that hunts a whale?"),
    Query(query_id="pencil", text="A thing to write with"),
]
GOLD = [
    Gold(query_id="whale", relevance={"Moby-Dick": 1, "Herman Melville": 1}),
    Gold(query_id="pencil", relevance={"Pencil": 1}),
]


class Books(BaseLoader):
    """The books above."""

    name = "books"

    def stream(self):  # type: ignore[no-untyped-def]
        for title, text in BOOKS.items():
            yield SearchableItem(item_id=title, content=text, metadata={"title": title})


def run(folder: Path, **searchers: Searcher) -> BenchmarkReport:
    return (
        Benchmarker(searchers, Books(), QUERIES, GOLD, [2, 4], index_path=folder / "index", latency_queries=1, main="recall@2")
        .run()
        .report
    )


def test_queries_at_which_links_gain_over_the_baseline_are_explained_first(tmp_path: Path) -> None:
    bm25 = Bm25Retriever()
    report = run(tmp_path, bm25=Searcher([bm25]), linked=Searcher([LinkGraphRetriever([bm25])]))
    first = report.explained[0]
    assert (first.configuration, first.query, first.measure) == ("linked", QUERIES[0].text, "recall@2")
    assert (first.value, first.baseline_value) == (1.0, 0.5)
    hits = {hit.item.title: hit for hit in first.hits}
    assert {title: hit.relevant for title, hit in hits.items()} == {"Moby-Dick": True, "Herman Melville": True}
    assert hits["Moby-Dick"].explanations[0].steps == ()
    (step,) = hits["Herman Melville"].explanations[0].steps
    assert step.sentence[step.start : step.end] == "Herman Melville"


def test_the_page_shows_the_sentence_with_its_mention_and_runs_no_markup_of_the_corpus(tmp_path: Path) -> None:
    bm25 = Bm25Retriever()
    BOOKS["Moby-Dick"] = "<script>alert(1)</script> hunts a whale, the captain & Herman Melville."
    try:
        page = render_page(run(tmp_path, bm25=Searcher([bm25]), linked=Searcher([LinkGraphRetriever([bm25])])))
    finally:
        BOOKS["Moby-Dick"] = "A whaling captain hunts a white whale. The novel is by Herman Melville."
    assert "&lt;script&gt;alert(1)&lt;/script&gt; hunts a whale, the captain &amp; <mark>Herman Melville</mark>." in page
    assert "<script>alert" not in page
