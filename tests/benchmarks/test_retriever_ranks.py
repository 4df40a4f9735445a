"""What a retriever finds by itself is what searching with it alone finds."""

from __future__ import annotations

from pathlib import Path

from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, FaissRetriever, OverlapReranker, Searcher, write_run_files
from nlp_retrieval.evaluation.ranking_files import read_retrievers
from nlp_retrieval.processors.rules import ClauseSplit

from .small_benchmark import GOLD, QUERIES, benchmarker


def expected(searcher: Searcher, depth: int) -> list[int]:
    """The rank of each gold document, query by query, by searching with one retriever; 0 where it is not found."""
    ranks = []
    for gold, hits in zip(GOLD, searcher.search([query.text for query in QUERIES], depth), strict=True):
        places = {hit.item.item_id: rank for rank, hit in enumerate(hits, start=1)}
        ranks += [places.get(item_id, 0) for item_id in gold.relevance]
    return ranks


def test_each_retriever_is_ranked_to_its_own_depth_and_called_by_its_label(tmp_path: Path) -> None:
    tuned = Bm25Retriever(k1=1.6)
    searchers = {
        "lexical": Searcher([Bm25Retriever()]),
        "both": Searcher({"tuned": tuned, "dense": FaissRetriever(HashedWords())}, depth=30),
        "reranked": Searcher({"tuned": tuned, "dense": FaissRetriever(HashedWords())}, reranker=OverlapReranker(), depth=30),
    }
    run = benchmarker(tmp_path / "index", searchers=searchers, stage_folder=tmp_path / "stages", depth=10).run()
    alone = {
        "bm25": (Bm25Retriever(), 10),
        "tuned": (tuned, 30),
        "dense": (FaissRetriever(HashedWords()), 30),
    }
    assert {name: ranks.tolist() for name, ranks in run.retrievers.items()} == {
        name: expected(Searcher([retriever]).open(tmp_path / "index"), depth) for name, (retriever, depth) in alone.items()
    }
    assert any(rank > 10 for rank in run.retrievers["dense"].tolist())
    write_run_files(run, tmp_path / "run")
    again = read_retrievers(tmp_path / "run")
    assert {name: ranks.tolist() for name, ranks in again.items()} == {n: r.tolist() for n, r in run.retrievers.items()}


def test_what_was_judged_not_relevant_has_no_rank(tmp_path: Path) -> None:
    whole = [one.model_copy(update={"relevance": one.relevance | {"other": 0, "another": -1}}) for one in GOLD]
    runs = [
        benchmarker(tmp_path / "index", gold=gold, stage_folder=tmp_path / "stages").run() for gold in (GOLD, whole)
    ]  # fmt: skip
    assert [ranks.tolist() for ranks in runs[0].retrievers.values()] == [
        ranks.tolist() for ranks in runs[1].retrievers.values()
    ]
    write_run_files(runs[1], tmp_path / "run")
    again = read_retrievers(tmp_path / "run")
    assert [ranks.tolist() for ranks in again.values()] == [ranks.tolist() for ranks in runs[0].retrievers.values()]


def test_two_retrievers_of_one_label_are_told_apart(tmp_path: Path) -> None:
    searchers = {"one": Searcher([Bm25Retriever()]), "other": Searcher([Bm25Retriever(k1=1.6)])}
    run = benchmarker(tmp_path / "index", searchers=searchers, stage_folder=tmp_path / "stages").run()
    assert list(run.retrievers) == ["bm25 (one)", "bm25 (other)"]


def test_of_sub_queries_lists_the_best_rank_counts(tmp_path: Path) -> None:
    searcher = Searcher([Bm25Retriever()], processor=ClauseSplit(), scope="per_subquery", depth=5)
    queries = [query.model_copy(update={"text": f"{query.text}, and {QUERIES[0].text}"}) for query in QUERIES]
    run = benchmarker(
        tmp_path / "index", searchers={"clauses": searcher}, queries=queries, stage_folder=tmp_path / "stages"
    ).run()
    plain = Searcher([Bm25Retriever()]).open(tmp_path / "index")
    wanted = []
    for query, gold in zip(queries, GOLD, strict=True):
        (subqueries,) = ClauseSplit().process([query.text])
        assert len(subqueries) > 1
        places: dict[str, int] = {}
        for hits in plain.search(subqueries, 5):
            for rank, hit in enumerate(hits, start=1):
                places[hit.item.item_id] = min(rank, places.get(hit.item.item_id, rank))
        wanted += [places.get(item_id, 0) for item_id in gold.relevance]
    assert run.retrievers["bm25"].tolist() == wanted


def test_without_shared_stages_nothing_is_known_of_retrievers(tmp_path: Path) -> None:
    assert benchmarker(tmp_path / "index").run().retrievers == {}
