"""The collection that comes with the package: whole, consistent, and hard enough to tell methods apart."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval import BeirLoader, Benchmarker, Bm25Retriever, HoverLoader, Searcher
from nlp_retrieval.text.titles import normalize_title

SHIPPED = Path(str(resources.files("nlp_retrieval.demo")))
CLAIMS: list[dict[str, Any]] = json.loads((SHIPPED / "claims.json").read_text("utf-8"))
PASSAGES: list[dict[str, Any]] = [json.loads(line) for line in (SHIPPED / "corpus.jsonl").read_text("utf-8").splitlines()]
TEXT_OF = {passage["title"]: passage["text"] for passage in PASSAGES}


def titles_of(claim: dict[str, Any]) -> set[str]:
    return {title for title, _ in claim["supporting_facts"]}


def test_there_are_at_least_200_passages_with_unique_ids_and_titles() -> None:
    assert len(PASSAGES) >= 200
    for field in ("_id", "title", "text"):
        counts = Counter(passage[field].strip() for passage in PASSAGES)
        assert [value for value, count in counts.items() if count > 1 or not value] == []
    assert len({normalize_title(title) for title in TEXT_OF}) == len(PASSAGES)


def test_passages_are_short() -> None:
    lengths = [len(passage["text"].split()) for passage in PASSAGES]
    assert min(lengths) >= 15
    assert max(lengths) <= 150


def test_there_are_at_least_60_claims_of_two_three_and_four_hops() -> None:
    assert len(CLAIMS) >= 60
    hops = Counter(claim["num_hops"] for claim in CLAIMS)
    assert set(hops) == {2, 3, 4}
    assert min(hops.values()) >= 15


def test_claims_are_in_hovers_format_with_unique_ids_and_texts() -> None:
    for claim in CLAIMS:
        assert set(claim) == {"uid", "claim", "supporting_facts", "label", "num_hops", "hpqa_id"}
        assert claim["label"] in {"SUPPORTED", "NOT_SUPPORTED"}
    assert len({claim["uid"] for claim in CLAIMS}) == len(CLAIMS) == len({claim["claim"] for claim in CLAIMS})
    assert {claim["label"] for claim in CLAIMS} == {"SUPPORTED", "NOT_SUPPORTED"}


def test_every_gold_title_exists() -> None:
    assert {title for claim in CLAIMS for title in titles_of(claim)} <= set(TEXT_OF)


def test_the_number_of_hops_is_the_number_of_distinct_titles() -> None:
    assert [claim["uid"] for claim in CLAIMS if claim["num_hops"] != len(titles_of(claim))] == []


def test_supporting_facts_name_sentences_that_are_there_and_none_twice() -> None:
    for claim in CLAIMS:
        facts = [tuple(fact) for fact in claim["supporting_facts"]]
        assert len(set(facts)) == len(facts), claim["uid"]
        for title, sentence in facts:
            assert 0 <= sentence < len(TEXT_OF[title].split(". ")), (claim["uid"], title)


def test_no_claim_names_all_the_titles_that_it_needs() -> None:
    assert [c["uid"] for c in CLAIMS if all(title.casefold() in c["claim"].casefold() for title in titles_of(c))] == []


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Measures of plain BM25 by number of hops."""
    claims = HoverLoader(SHIPPED / "claims.json")
    run = Benchmarker(
        {"bm25": Searcher([Bm25Retriever()])}, BeirLoader(SHIPPED / "corpus.jsonl"), claims.queries(), claims.gold(), [5, 20],
        index_path=tmp_path_factory.mktemp("demo"), latency_queries=2,
    ).run()  # fmt: skip
    return run.report.configurations[0].groups


def test_bm25_alone_does_not_find_everything_for_three_hops(bm25: dict[str, dict[str, float]]) -> None:
    assert bm25["hops=3"]["perfect_recall@5"] < 0.8


def test_bm25_finds_something(bm25: dict[str, dict[str, float]]) -> None:
    assert all(measures["recall@20"] > 0.4 for measures in bm25.values())
