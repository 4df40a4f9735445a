"""All configurations of a run are measured on the items that were there when it began, or are left out and say why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cli.commands import run
from hashed_words import InMemory

from nlp_retrieval import Bm25Retriever, OverlapReranker, RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.core.index.build import IndexReport

from .small_benchmark import TEXTS, TITLES, benchmarker


class Meddling(Searcher):
    """Does something when a search is timed."""

    name = "meddling"
    act: Callable[[], object] | None = None

    def search(self, queries, k=10, where=None):  # type: ignore[no-untyped-def]
        act, self.act = self.act, None
        if act is not None:
            act()
        return super().search(queries, k, where)


class WithoutGeneration:
    """A searcher of another package: it keeps the items in its own way, and finds the same ones for every query."""

    fingerprint = "theirs"
    stages = ("all",)
    config: dict[str, Any] = {"name": "theirs"}  # noqa: RUF012

    def __init__(self, found: Sequence[SearchableItem]) -> None:
        self.found = found

    def index(self, items: object, path: object) -> IndexReport:
        return IndexReport(Path(str(path)), len(self.found), [], [], 0.0)

    def open(self, path: object) -> WithoutGeneration:
        return self

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        return [[RetrievalResult(item=item, score=1.0 / at) for at, item in enumerate(self.found, 1)][:k] for _ in queries]

    def index_records(self) -> list[object]:
        return []

    def provenance(self) -> dict[str, str]:
        return {}


def test_an_update_while_latency_is_measured_changes_no_figure(tmp_path: Path) -> None:
    others = {"k1": Searcher([Bm25Retriever(k1=1.2)]), "overlap": Searcher([Bm25Retriever()], reranker=OverlapReranker())}
    undisturbed = benchmarker(tmp_path / "other", searchers={"bm25": Searcher([Bm25Retriever()]), **others}).run().report
    first = Meddling([Bm25Retriever()])
    first.act = lambda: run("delete", str(tmp_path / "index"), "d5")
    report = benchmarker(tmp_path / "index", searchers={"bm25": first, **others}).run().report
    assert {one.name: one.measures for one in report.configurations} == {
        one.name: one.measures for one in undisturbed.configurations
    }
    assert report.manifest["corpus"]["fingerprint"] == undisturbed.manifest["corpus"]["fingerprint"]


def test_a_searcher_without_generations_is_held_to_the_items_of_the_corpus(tmp_path: Path) -> None:
    items = list(InMemory(TEXTS, TITLES).stream())
    entries = {
        "theirs": WithoutGeneration(items[:4]),
        "bm25": Searcher([Bm25Retriever()]),
        "unknown": WithoutGeneration([items[0], SearchableItem(item_id="new", content="fox whale tree river")]),
    }
    report = benchmarker(tmp_path / "index", searchers=entries).run().report
    assert [one.name for one in report.configurations] == ["theirs", "bm25"]
    assert "found 1 items that are not in the corpus of 80 (the first: 'new')" in report.failed[0].reason
