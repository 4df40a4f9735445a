"""HippoRAG 2 against the same by hand, and what it says of its results."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords

from nlp_retrieval import RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.core.components.registry import asked_for, plan
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.systems.hipporag.knowledge import phrase_of
from nlp_retrieval.systems.hipporag.retriever import BaseEmbeddingModel, HippoRagRetriever
from systems.hipporag.engine.by_hand import ByHand
from systems.hipporag.stored_knowledge import Said, openie_file, passage, random_passage

ENCODER = HashedWords(32)
RANDOM = random.Random(3)
ITEMS = [passage(f"d{number}", title=f"Page {number}") for number in range(2)]
ITEMS += [random_passage(RANDOM, f"d{number}") for number in range(2, 40)]
QUERIES = ["Where was Erik Hort born?", "What borders Rockland County", "Anna Lind painted Lake Mjosa", "harbour near Oslo"]

pytestmark = pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")


def retriever(knowledge: str | None, **settings: object) -> HippoRagRetriever:
    return HippoRagRetriever(ENCODER, knowledge, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> str:
    return openie_file(tmp_path_factory.mktemp("knowledge") / "openie.json", ITEMS)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, knowledge: str) -> Path:
    path = tmp_path_factory.mktemp("index")
    Searcher([retriever(knowledge)]).index(ITEMS, path)
    return path


def found(index: Path, knowledge: str | None, k: int = 100, **settings: object) -> list[list[RetrievalResult]]:
    return Searcher([retriever(knowledge, **settings)]).open(index).search(QUERIES, k)


def column(hits: Sequence[RetrievalResult], signal: str, items: Sequence[SearchableItem] = ITEMS) -> list[float]:
    by_id = {hit.item.item_id: hit.signals[signal] for hit in hits}
    return [by_id[item.item_id] for item in items]


@pytest.mark.parametrize("settings", [{}, {"passage_weight": 0.0}, {"damping": 0.8, "triple_k": 3, "entity_k": 2}])
def test_the_walk_is_that_of_a_dense_solve_from_the_seeds_of_the_paper(
    index: Path, knowledge: str, settings: dict[str, float]
) -> None:
    oracle = ByHand(ITEMS, ENCODER)
    assert oracle.synonyms, "the passages have no synonyms to test"
    by_hand = {"k" if key == "triple_k" else key: value for key, value in settings.items()}
    for query, hits in zip(QUERIES, found(index, knowledge, **settings), strict=True):
        ranks = oracle.ranks(query, **by_hand)  # type: ignore[arg-type]
        assert column(hits, "hipporag.pagerank") == pytest.approx(ranks.tolist(), abs=2e-6)
        reached = [hit for hit in hits if hit.score > 0]
        assert [hit.score for hit in reached] == pytest.approx([hit.signals["hipporag.pagerank"] for hit in reached], rel=1e-6)
        assert {hit.item.item_id for hit in hits} == {item.item_id for item in ITEMS}


def test_the_three_stages_never_multiply_by_nothing_and_rank_passages_of_which_nothing_is_known(tmp_path: Path) -> None:
    known = [
        passage("near", ("Anna Lind", "painted", "Bergen")),
        passage("two hops", ("Bergen", "borders", "Lake Mjosa")),
        passage("apart", ("Karl Berg", "lies near", "Rockland County")),
    ]
    silent = [passage("silent"), SearchableItem(item_id="about her", content="Of Anna Lind and nobody else.")]
    path = openie_file(tmp_path / "openie.json", known)
    searcher = Searcher([retriever(path, linking="entities", triple_k=1)])
    searcher.index([*known, *silent], tmp_path / "index")
    (hits,) = searcher.search(["What did Anna Lind do?"], 10)
    assert {hit.item.item_id for hit in hits} == {"near", "two hops", "apart", "silent", "about her"}
    assert all(hit.score > 0 for hit in hits)
    order = [hit.item.item_id for hit in hits]
    assert order[0] == "near"
    unrelated = [item_id for item_id in order if item_id in ("silent", "about her", "apart")]
    similarity = {hit.item.item_id: hit.signals["hipporag.similarity"] for hit in hits}
    assert unrelated == sorted(unrelated, key=lambda item_id: -similarity[item_id])
    (one_hop,) = (
        Searcher([retriever(path, linking="entities", triple_k=1, hops=1)])
        .open(tmp_path / "index")
        .search(["What did Anna Lind do?"], 10)
    )
    assert {hit.item.item_id: hit.signals["hipporag.pagerank"] for hit in one_hop}["two hops"] > 0  # it speaks of Bergen


def test_an_explanation_names_the_triples_near_the_query_and_what_the_walk_visits(tmp_path: Path) -> None:
    said: list[Said] = [
        ("Erik Hort", "was born in", "Montebello"),
        ("Montebello", "is part of", "Rockland County"),
        ("Rockland County", "borders", "Oslo"),
    ]
    items = [passage(f"p{number}", triple) for number, triple in enumerate(said)]
    one = retriever(openie_file(tmp_path / "openie.json", items), triple_k=1)
    one.index(items, tmp_path / "index")
    generation = open_generation(tmp_path / "index")
    opened = one.open(generation)
    first, second, third = opened.explain("Where was Erik Hort born?", np.arange(3), generation.items)
    assert first is not None
    assert second is not None
    assert third is not None
    assert 'the query is near "erik hort was born in montebello"' in first.origin
    assert "visits 'montebello'" in second.origin
    assert second.item.item_id == "p1"
    assert "'rockland county'" in third.origin
    assert all(json.dumps(why.as_dict()) for why in (first, second, third))


@pytest.mark.parametrize("key", ["knowledge", "added_knowledge"])
def test_a_manifest_that_names_a_file_is_not_trusted(knowledge: str, key: str) -> None:
    config = {"name": "hipporag", key: knowledge}
    asked = list(asked_for(plan("retrievers", config, "here", BaseRetriever)))
    assert len(asked) == 1
    assert knowledge in asked[0]


class Letters(BaseEmbeddingModel):
    """One method and a dimension."""

    dimension = 26

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts]


def test_an_encoder_of_one_method_and_a_dimension_is_enough(tmp_path: Path) -> None:
    items = [passage("a", ("Erik Hort", "was born in", "Montebello")), passage("b", ("Anna Lind", "painted", "Oslo"))]
    searcher = Searcher([HippoRagRetriever(Letters(), openie_file(tmp_path / "openie.json", items))])
    searcher.index(items, tmp_path / "index")
    assert searcher.search(["Where was Erik Hort born?"], 1)[0][0].item.item_id == "a"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"), ("B", "B\u266d"), ("5 MW", "\u2265 5 MW"), ("C", "C#"), ("C++", "C#"), ("-5 degrees", "5 degrees"),
        ("O+", "O"), ("O-", "O"), ("A*", "A"), ("5%", "5"), ("5\u00b0", "5"), ("$5", "5"), ("\u20b95", "5"), (">5", "<5"),
        ("~5", "5"), ("10\u00b3", "103"), (".NET", "net"), ("p<.05", "p>.05"), ("5 mW", "5 MW"),
    ],
)  # fmt: skip
def test_a_sign_that_belongs_to_a_name_or_number_tells_entities_apart(one: str, other: str) -> None:
    assert phrase_of(one) != phrase_of(other)
    assert phrase_of("Rock-and-roll, 1990-95, 1,000, @home") == phrase_of("rock and roll 1990 95 1000 home")
    assert phrase_of("U.S., R&D, 1990's, J. K. Rowling") == phrase_of("US, R and D, 1990s, J.K. Rowling")
    assert phrase_of(">5%, \u2264 2, \u22653") == phrase_of("more than 5 percent, at most 2, at least 3")
