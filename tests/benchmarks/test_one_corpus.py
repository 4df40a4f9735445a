"""All configurations of a run are measured on the items that were there when it began, or are left out and say why."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed_words import InMemory
from linked_pages import questions, wiki
from soaking import mostly_soaked

from nlp_retrieval import (
    Bm25Retriever,
    Gold,
    LinkGraphRetriever,
    OverlapReranker,
    Query,
    RetrievalResult,
    RetrievalWarning,
    SearchableItem,
    Searcher,
    tune,
)
from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.benchmarks.pinned import PinnedCorpus
from nlp_retrieval.benchmarks.shared_stages import SharedStages
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.index.build import IndexReport
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.search.stages import using_stages
from nlp_retrieval.errors import GoldError, IndexConflictError
from nlp_retrieval.evaluation.trec import write_run

from .small_benchmark import QUERIES, TEXTS, TITLES, benchmarker, searchers

NEW = SearchableItem(item_id="new", content="fox whale tree river")


class Meddling(Searcher):
    """Does something when it is opened, when a search is timed, or when it explains."""

    name = "meddling"
    explains = True  # type: ignore[assignment]
    before_opening: Callable[[], object] | None = None
    while_timing: Callable[[], object] | None = None
    while_explaining: Callable[[], object] | None = None

    def open(self, path):  # type: ignore[no-untyped-def]
        _once(self, "before_opening")
        return super().open(path)

    def search(self, queries, k=10, where=None):  # type: ignore[no-untyped-def]
        if len(queries) == 1:
            _once(self, "while_timing")
        return super().search(queries, k, where)

    def explain(self, query, results):  # type: ignore[no-untyped-def]
        _once(self, "while_explaining")
        return super().explain(query, results)


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


def _once(searcher: Meddling, moment: str) -> None:
    act = getattr(searcher, moment)
    setattr(searcher, moment, None)
    if act is not None:
        act()


def delete(index: Path, item_id: str = "d5") -> None:
    """What ``nlp-retrieval delete`` does, in a process of its own."""
    program = (
        "from nlp_retrieval import Bm25Retriever, Searcher\n"
        f"Searcher([Bm25Retriever()]).open({str(index)!r}).delete([{item_id!r}], auto_compact=False)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def add(index: Path) -> None:
    Searcher([Bm25Retriever()]).open(index).add([NEW])


@contextmanager
def told() -> Iterator[list[str]]:
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += [str(one.message) for one in caught if issubclass(one.category, RetrievalWarning)]


@pytest.fixture(params=mostly_soaked(["shared stages", "alone"]))
def stages(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "stages" if request.param == "shared stages" else None


def test_a_configuration_that_opens_the_index_after_a_delete_is_left_out_and_says_why(
    tmp_path: Path, stages: Path | None
) -> None:
    index = tmp_path / "index"
    late = Meddling([Bm25Retriever(k1=1.2)])
    late.index(InMemory(TEXTS, TITLES), index)
    late.before_opening = lambda: delete(index)
    made = benchmarker(index, searchers={"bm25": Searcher([Bm25Retriever()]), "late": late}, stage_folder=stages)
    with told() as warned:
        run = made.run()
    (failed,) = run.report.failed
    assert (failed.name, failed.error) == ("late", "IndexConflictError")
    assert f"{index} was changed while the benchmark ran" in failed.reason
    assert "79 items" in failed.reason
    assert "the others 80" in failed.reason
    assert [one.name for one in run.report.configurations] == ["bm25"]
    assert run.report.n_items == 80
    assert any("measured on the 80 items that it held before" in text for text in warned)


@pytest.mark.parametrize("change", [delete, pytest.param(add, marks=pytest.mark.soak)])
def test_an_update_while_latency_is_measured_changes_no_figure_and_is_told(
    tmp_path: Path, stages: Path | None, change: Callable[[Path], None]
) -> None:
    others = {"k1": Searcher([Bm25Retriever(k1=1.2)]), "overlap": Searcher([Bm25Retriever()], reranker=OverlapReranker())}
    undisturbed = benchmarker(tmp_path / "other", searchers={"bm25": Searcher([Bm25Retriever()]), **others}).run().report
    index = tmp_path / "index"
    first = Meddling([Bm25Retriever()])
    first.while_timing = lambda: change(index)
    made = benchmarker(index, searchers={"bm25": first, **others}, stage_folder=stages)
    with told() as warned:
        report = made.run().report
    assert {one.name: one.measures for one in report.configurations} == {
        one.name: one.measures for one in undisturbed.configurations
    }
    assert report.manifest["corpus"]["fingerprint"] == undisturbed.manifest["corpus"]["fingerprint"]
    assert any(f"{index} was changed while the benchmark ran" in text for text in warned)


@pytest.mark.parametrize("moment", mostly_soaked(["while_timing", "before its turn"]))
def test_a_searcher_that_takes_up_an_update_is_left_out(tmp_path: Path, stages: Path | None, moment: str) -> None:
    first, second = Meddling([Bm25Retriever()]), Meddling([Bm25Retriever(k1=1.2)])
    meddling = first if moment == "before its turn" else second
    meddling.while_timing = lambda: second.delete(["d5"])
    made = benchmarker(tmp_path / "index", searchers={"first": first, "second": second}, stage_folder=stages)
    with told():
        report = made.run().report
    assert [one.name for one in report.configurations] == ["first"]
    assert "was changed while the benchmark ran" in report.failed[0].reason


def test_what_is_explained_after_an_update_is_left_out(tmp_path: Path) -> None:
    searcher = Meddling([Bm25Retriever()])
    searcher.while_explaining = lambda: searcher.delete(["d5"])
    with told() as warned:
        report = benchmarker(tmp_path / "index", searchers={"bm25": searcher}).run().report
    assert [one.name for one in report.configurations] == ["bm25"]
    assert any("bm25: cannot say why it found what it found" in text and "was changed" in text for text in warned)


def test_an_index_that_another_configuration_completes_is_the_same_corpus(tmp_path: Path, stages: Path | None) -> None:
    report = benchmarker(tmp_path / "index", stage_folder=stages).run().report
    assert not report.failed
    assert len({one.opened.manifest.corpus.fingerprint for one in searchers_of(tmp_path / "index")}) == 1


def searchers_of(index: Path) -> list[Searcher]:
    return [searcher.open(index) for searcher in searchers().values()]


def test_a_searcher_without_generations_is_held_to_the_items_of_the_corpus(tmp_path: Path, stages: Path | None) -> None:
    items = list(InMemory(TEXTS, TITLES).stream())
    changed = items[2].model_copy(update={"content": "another text"})
    entries = {
        "theirs": WithoutGeneration(items[:4]),
        "bm25": Searcher([Bm25Retriever()]),
        "unknown": WithoutGeneration([items[0], NEW]),
        "changed": WithoutGeneration([items[0], changed]),
    }
    report = benchmarker(tmp_path / "index", searchers=entries, stage_folder=stages).run().report
    assert [one.name for one in report.configurations] == ["theirs", "bm25"]
    reasons = {one.name: one.reason for one in report.failed}
    assert "found 1 items that are not in the corpus of 80 (the first: 'new')" in reasons["unknown"]
    assert "1 of the 2 items that it found have another text than in the corpus (the first: 'd2')" in reasons["changed"]


def test_an_index_is_the_loaders_corpus_whoever_stands_first(tmp_path: Path) -> None:
    index = tmp_path / "index"
    Searcher([Bm25Retriever()]).index(InMemory(TEXTS[:40], TITLES[:40]), index)
    entries = {"theirs": WithoutGeneration([]), "bm25": Searcher([Bm25Retriever()])}
    report = benchmarker(index, searchers=entries).run().report
    assert [(one.name, one.error) for one in report.failed] == [("bm25", "IndexConflictError")]
    assert report.n_items == 80


def test_a_corpus_has_the_same_fingerprint_with_and_without_an_index(tmp_path: Path) -> None:
    write_run(tmp_path / "o.trec", [QUERIES[0].query_id], [[("d1", 1.0)]])
    with told():
        alone = benchmarker(tmp_path / "none", searchers={"file": TrecRun(str(tmp_path / "o.trec"))}).run().report
    indexed = benchmarker(tmp_path / "index", searchers={"bm25": Searcher([Bm25Retriever()])}).run().report
    assert not (tmp_path / "none").exists()
    assert alone.manifest["corpus"]["fingerprint"] == indexed.manifest["corpus"]["fingerprint"]


def test_an_unknown_item_of_a_run_file_is_an_error_at_any_rank(tmp_path: Path) -> None:
    hits = [(f"d{row}", 99.0 - row) for row in range(30)] + [("nowhere", 1.0)]
    write_run(tmp_path / "o.trec", [QUERIES[0].query_id], [hits])
    entries = {"file": TrecRun(str(tmp_path / "o.trec")), "bm25": Searcher([Bm25Retriever()])}
    with told():
        report = benchmarker(tmp_path / "index", searchers=entries).run().report
    assert "not in the corpus (the first: 'nowhere')" in report.failed[0].reason


class CountsBuilds(BaseRetriever):
    """Finds all items, scored by how many indexes were built before its own."""

    name = "counts-builds"
    builds = 0

    def build(self, items: ItemTable, folder: Path) -> None:
        CountsBuilds.builds += 1
        (folder / "built.json").write_text(f"[{CountsBuilds.builds}, {len(items)}]")

    def load(self, folder: Path) -> None:
        self._built, self._size = json.loads((folder / "built.json").read_text())

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        rows = np.arange(min(k, self._size))
        return Hits.from_lists([(rows, np.full(len(rows), float(self._built)))] * len(queries))


def test_equal_items_in_an_index_that_was_built_again_are_not_searched_in_the_old_one(tmp_path: Path) -> None:
    items = list(InMemory(TEXTS, TITLES).stream())
    searcher, other = Searcher([CountsBuilds()]), Searcher([CountsBuilds()])
    searcher.index(items, tmp_path / "index")
    before = searcher.opened
    stages = SharedStages(StageStore(tmp_path / "stages"))
    with using_stages(stages):
        searcher.open(tmp_path / "index")
        scores = [hits[0].score for hits in searcher.search(["fox"], 1)]
        other.open(tmp_path / "index").delete(["d79"], auto_compact=False)
        other.add([items[79]], auto_compact=False)
        other.compact()
        assert other.opened.manifest.corpus.fingerprint == before.manifest.corpus.fingerprint
        assert [hits[0].score for hits in other.search(["fox"], 1)] > scores
    pinned = PinnedCorpus()
    pinned.check(searcher)
    with pytest.raises(IndexConflictError, match="its index of 'counts-builds' has other files"):
        pinned.check(other)


def test_weights_are_fitted_on_the_generation_that_was_opened(tmp_path: Path) -> None:
    retriever = LinkGraphRetriever([Bm25Retriever()], pool=30)
    pages = wiki(40, seed=2)
    searcher = Searcher([retriever])
    searcher.index(pages, tmp_path)
    generation = searcher.opened
    queries = [Query(query_id=f"q{number}", text=text) for number, text in enumerate(questions(pages, 6))]
    gold = [Gold(query_id=query.query_id, relevance={"d1": 1, "d5": 1}) for query in queries]
    Searcher([retriever]).open(tmp_path).delete(["d5"])
    assert tune(retriever, generation, queries, gold, folds=2).groups == [None] * 6
    with pytest.raises(GoldError, match="'d5'"):
        tune(retriever, tmp_path, queries, gold, folds=2)
