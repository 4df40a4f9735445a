"""Sub-queries of a language model are kept as stages, with what they took; what was degraded is asked for again."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, MakeModel, fields

from benchmarks.small_benchmark import QUERIES, benchmarker
from benchmarks.test_language_model_costs import asked_of, failing_for
from nlp_retrieval import Bm25Retriever, ClaimPhrases, RetrievalWarning, Searcher, write_run_files
from nlp_retrieval.benchmarks.cost import LanguageModelCost
from nlp_retrieval.lm.language_model import LanguageModel

from .test_shared import quality


def two(lm: LanguageModel) -> dict[str, Searcher]:
    """Two configurations whose sub-queries are the same."""
    return {name: Searcher([Bm25Retriever(k1=k1)], ClaimPhrases(lm)) for name, k1 in (("one", 0.9), ("other", 1.6))}


def run(folder: Path, searchers: dict[str, Any], name: str = "run") -> tuple[list[LanguageModelCost], dict[str, bytes]]:
    made = benchmarker(folder / "index", searchers=searchers, stage_folder=folder / "stages").run()
    write_run_files(made, folder / name)
    return [asked_of(result.cost) for result in made.report.configurations], quality(folder / name)


def test_a_run_is_repeated_from_its_stages_whatever_the_model_says_by_then(
    server: ChatServer, model: MakeModel, tmp_path: Path
) -> None:
    (first, _), files = run(tmp_path, two(model()))
    calls = server.calls
    server.answer = lambda body: fields(phrases=["fox whale"])
    shutil.rmtree(tmp_path / "answers")
    (again, _), files_again = run(tmp_path, two(model()), "again")
    assert server.calls == calls
    assert files_again == files
    assert (again.calls, again.tokens_in, again.query_tokens_in) == (0, 0, first.query_tokens_in)
    assert (again.latency_answers, again.latency_cache_hits) == (3, 0)
    elsewhere = run(tmp_path, two(model(temperature=0.5)), "elsewhere")[1]
    assert elsewhere["one.trec"] != files["one.trec"]


def test_degraded_answers_serve_their_own_run_alone(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    unlucky = [query.text for query in QUERIES[4:10]]
    server.answer = failing_for(unlucky, 400)
    with pytest.warns(RetrievalWarning, match="6 of 20 queries") as caught:
        (one, other), files = run(tmp_path, two(model(retries=0)))
    assert len([w for w in caught if "6 of 20" in str(w.message)]) == 1  # where they were computed
    assert one.degraded == other.degraded == 6
    assert not (tmp_path / "stages" / "subqueries").exists()
    server.answer = failing_for([], 400)
    calls = server.calls
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetrievalWarning)
        (one, _), repaired = run(tmp_path, two(model(retries=0)), "again")
    assert server.calls == calls + 6
    assert one.degraded == 0
    assert repaired["one.trec"] != files["one.trec"]
    assert len(list((tmp_path / "stages" / "subqueries").iterdir())) == 1
