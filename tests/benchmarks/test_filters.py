"""Queries with filters of their own are searched as if each had been searched by hand, with stages and without."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from hashed_words import HashedWords, InMemory

from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, TITLES, benchmarker, collection, configuration
from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    Gold,
    OverlapReranker,
    Query,
    RetrievalWarning,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.benchmarks.benchmarker import run_searchers
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.processors.rules import ClauseSplit
from nlp_retrieval.reports import write_run_files

COUNTRIES = ("Japan", "Kenya", "Peru", "Côte d'Ivoire")


class ByCountry(InMemory):
    """The small corpus, each passage of one of four countries and one of two editions."""

    name = "by-country"

    def stream(self):
        for row, item in enumerate(super().stream()):
            own = {"country": COUNTRIES[row % 4], "year": 2015 + 5 * (row % 2)}
            yield SearchableItem(item_id=item.item_id, content=item.content, metadata=item.metadata | own)


def asked(**changed: dict[str, Any]) -> tuple[list[Query], list[Gold]]:
    """The small queries, each of the country of its first gold passage, and what of the gold is there."""
    queries, gold = [], []
    for query, one in zip(QUERIES, GOLD, strict=True):
        first = int(next(iter(one.relevance))[1:])
        metadata = query.metadata | {"nation": COUNTRIES[first % 4]} | changed.get(query.query_id, {})
        queries.append(Query(query_id=query.query_id, text=query.text, metadata=metadata))
        there = {item: grade for item, grade in one.relevance.items() if int(item[1:]) % 4 == first % 4}
        gold.append(Gold(query_id=query.query_id, relevance=there))
    return queries, gold


QUERIES_BY_COUNTRY, GOLD_BY_COUNTRY = asked()


def searchers() -> dict[str, Any]:
    def both() -> list[Any]:
        return [Bm25Retriever(k1=1.2), FaissRetriever(HashedWords())]

    return {
        "bm25": Searcher([Bm25Retriever()]),
        "hybrid": Searcher(both(), reranker=OverlapReranker(blend="rank"), depth=12),
        "clauses": Searcher(both(), processor=ClauseSplit(), scope="per_subquery", depth=6),
        "merged clauses": Searcher(both(), processor=ClauseSplit(), reranker=OverlapReranker()),
    }


def of_countries(index: Path, **changed: Any):
    arguments = {
        "searchers": searchers(), "loader": ByCountry(TEXTS, TITLES), "queries": QUERIES_BY_COUNTRY,
        "gold": GOLD_BY_COUNTRY, "where_from": {"country": "nation"},
    } | changed  # fmt: skip
    return benchmarker(index, **arguments)


@pytest.mark.parametrize("stages", [pytest.param(False, marks=pytest.mark.soak), True])
@pytest.mark.parametrize("where", [None, {"year": {"gte": 2018}}])
def test_every_query_finds_what_it_finds_by_hand(tmp_path: Path, stages: bool, where: Any) -> None:
    gold = [
        Gold(query_id=one.query_id, relevance={item: 1 for item in one.relevance if not where or int(item[1:]) % 2})
        for one in GOLD_BY_COUNTRY
    ]  # fmt: skip
    kept = [number for number, one in enumerate(gold) if one.relevance]
    queries = [QUERIES_BY_COUNTRY[number] for number in kept]
    run = of_countries(
        tmp_path / "index", where=where, stage_folder=tmp_path / "stages" if stages else None,
        queries=queries, gold=[gold[number] for number in kept], depth=10,
    ).run()  # fmt: skip
    assert [result.name for result in run.report.configurations] == list(searchers())
    for name, searcher in searchers().items():
        opened = searcher.open(tmp_path / "index")
        for query, got in zip(queries, run.lists.rankings(name), strict=True):
            own = {"country": query.metadata["nation"]}
            (hits,) = opened.search([query.text], 10, own if where is None else {"and": [own, where]})
            assert [item for item, _ in got] == [hit.item.item_id for hit in hits]
            assert [score for _, score in got] == pytest.approx([hit.score for hit in hits])
            passing = {f"d{row}" for row in range(80) if COUNTRIES[row % 4] == own["country"] and (not where or row % 2)}
            assert {item for item, _ in got} <= passing


def test_a_key_that_no_query_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no query has a text or a number as 'hoops'"):
        of_countries(tmp_path / "index", group_by="hoops")
    with pytest.raises(ConfigurationError, match="a text or a number as 'tags'"):
        of_countries(tmp_path / "index", group_by="tags", queries=asked(q1={"tags": ["x"]})[0])
    with pytest.raises(QueryError, match=r"'q1' has no 'nation' in its metadata \(1 of 20 queries lack it\); valid: hops$"):
        of_countries(tmp_path / "index", queries=asked(q1={"nation": None})[0])


def test_filters_that_nothing_meets_and_gold_outside_them_are_counted(tmp_path: Path) -> None:
    queries, _ = asked(q1={"nation": "Atlantis"})
    # most of it is of another country; what was judged not relevant need not be found
    gold = [one.model_copy(update={"relevance": {"d79": 0} | one.relevance}) for one in GOLD]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = of_countries(
            tmp_path / "index", queries=queries, gold=gold, searchers=searchers(), stage_folder=tmp_path / "stages"
        ).run()
    told = [str(one.message) for one in caught if issubclass(one.category, RetrievalWarning)]
    assert any(
        "1 of 20 queries have a filter that no item meets (the first: 'q1', {'country': 'Atlantis'})" in one for one in told
    )
    outside = sum(
        COUNTRIES[int(item[1:]) % 4] != query.metadata["nation"]
        for query, one in zip(queries, GOLD, strict=True)
        for item in one.relevance
        if query.query_id != "q1"
    )
    assert any(f"{outside} gold items do not meet the filter of their query" in one for one in told)
    assert not run.report.failed
    for name in searchers():
        assert run.lists.rankings(name)[1] == []


def written(folder: Path, **changed: Any) -> Path:
    """The small benchmark as files, with countries."""
    data = collection(folder / "data")
    for name, key in (("corpus.jsonl", "country"), ("queries.jsonl", "nation")):
        lines = [json.loads(line) for line in (data / name).read_text().splitlines()]
        for number, line in enumerate(lines):
            line["metadata"] = line.get("metadata", {}) | {key: COUNTRIES[number % 4]}
        (data / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = configuration(folder, data)
    settings = yaml.safe_load(path.read_text())
    settings["queries"]["where_from"] = {"country": "nation"}
    path.write_text(yaml.safe_dump(settings | changed, sort_keys=False))
    return path


@pytest.mark.filterwarnings("ignore:.*gold items do not meet the filter")
def test_a_configuration_file_a_run_and_its_repetition_know_of_filters(tmp_path: Path) -> None:
    config = read_benchmark_config(written(tmp_path, where={"country": {"exists": True}}))
    settings = config.settings()
    assert settings.filters[1] == {"and": [{"country": {"exists": True}}, {"country": "Kenya"}]}
    run = run_searchers(settings)
    write_run_files(run, tmp_path / "run")
    again = run_searchers(read_benchmark_config(tmp_path / "run" / "config.yaml").settings())
    assert again.report.manifest["filters"] == run.report.manifest["filters"]
    for name in ("bm25", "clauses"):
        assert again.lists.rankings(name) == run.lists.rankings(name)
