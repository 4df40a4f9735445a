"""A configuration that cannot be run keeps no other from it, and the report says what it was and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, FaissRetriever, Searcher, write_run_files
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.errors import ModelError

from .small_benchmark import benchmarker, searchers


class NoModel(HashedWords):
    """An encoder whose model is missing."""

    name = "no-model"

    def encode_passages(self, passages: list[str]):  # type: ignore[no-untyped-def]
        raise ModelError("the model 'acme/none' is not here; download it")


KEY = "sk-abcdefghijklmnopqrstuvwx"


class Breaks(BaseReranker):
    """A reranker that raises what no one expected, and quotes a key."""

    name = "breaks"

    def score_pairs(self, queries: Sequence[str], items: Sequence[SearchableItem]):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError(f"shape 0, key {KEY}")


class Upside(Searcher):
    """A searcher that returns the best last, which no run file can hold."""

    name = "upside"

    def search(self, *arguments, **named):  # type: ignore[no-untyped-def]
        return [hits[::-1] for hits in super().search(*arguments, **named)]


def with_failures() -> dict[str, Searcher]:
    missing = Searcher([FaissRetriever(NoModel())])
    breaking = Searcher([Bm25Retriever()], reranker=Breaks())
    whole = searchers()
    upside = Upside([Bm25Retriever()])
    return {"missing": missing, "bm25": whole["bm25"], "breaks": breaking, "upside": upside, "dense": whole["dense"]}


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared stages"])
def test_the_others_are_measured_as_if_it_were_not_there(tmp_path: Path, shared: bool) -> None:
    stages = tmp_path / "stages" if shared else None
    said: list[str] = []
    run = benchmarker(tmp_path / "one", searchers=with_failures(), stage_folder=stages, on_progress=said.append).run()
    whole = searchers()
    alone = benchmarker(tmp_path / "other", searchers={"bm25": whole["bm25"], "dense": whole["dense"]}).run()
    assert [one.measures for one in run.report.configurations] == [one.measures for one in alone.report.configurations]
    assert run.report.comparisons == alone.report.comparisons
    assert list(run.lists.listings) == list(run.per_query) == ["bm25", "dense"]
    missing, breaks, upside = run.report.failed
    assert (missing.name, missing.error, breaks.name, breaks.error) == ("missing", "ModelError", "breaks", "ZeroDivisionError")
    assert missing.reason == "the model 'acme/none' is not here; download it"
    assert breaks.reason == "ZeroDivisionError: shape 0, key ***"
    assert (upside.name, upside.error) == ("upside", "EngineError")
    assert "is not best first: rank" in upside.reason
    assert missing.traceback == ""
    assert "score_pairs" in breaks.traceback
    assert missing.config["retrievers"]
    write_run_files(run, tmp_path / "run")
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in (*written, "".join(said).encode()))


def test_the_first_that_could_be_run_stands_in_for_a_baseline_that_failed(tmp_path: Path) -> None:
    run = benchmarker(tmp_path, searchers=with_failures(), baseline="missing").run()
    assert run.report.baseline == "bm25"
    assert run.report.manifest["baseline"] == "missing"


def test_where_none_can_be_run_the_first_reason_is_raised(tmp_path: Path) -> None:
    failing = {name: one for name, one in with_failures().items() if name in ("missing", "breaks")}
    with pytest.raises(ModelError, match="acme/none"):
        benchmarker(tmp_path, searchers=failing).run()
