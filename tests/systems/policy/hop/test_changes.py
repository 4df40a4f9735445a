"""Questions about changes: what they ask for, and that relations between versions answer them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import HashedWords
from plans import COUNTRIES, LATER, chunk, two_versions

from nlp_retrieval import Bm25Retriever, FaissRetriever, Searcher
from nlp_retrieval.systems.policy.hop.ranking import change_asked
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever

ENCODER = HashedWords(64)
DENSE = FaissRetriever(ENCODER)
ITEMS = [item for country in COUNTRIES for item in two_versions(country)]
NEW = "What is new about buses and carbon in the later plan of Alder?"
GONE = "Which statements on a tram line and waste in open landfills were removed since the earlier plan?"


@pytest.mark.parametrize(
    ("question", "kind", "rest"),
    [
        ("What is new about the power sector in the later assessment of Norway?", "added", "the power sector of Norway"),
        ("How has the 2030 target changed since the last NDC?", "added", "How has the 2030 target"),
        ("Which statements on transport were removed since the earlier edition?", "dropped", "transport"),
    ],
)
def test_a_question_says_which_change_it_asks_for(question: str, kind: str, rest: str) -> None:
    asked = change_asked(question)
    assert asked is not None
    assert (asked.kind, asked.rest) == (kind, rest)


@pytest.mark.parametrize(
    "question",
    [
        "What is the 2030 target?",
        "Which forests were removed for cattle?",
        "How much solar power is added each year?",
        "What does the new plan say about buses?",
    ],
)
def test_other_questions_ask_for_no_change(question: str) -> None:
    assert change_asked(question) is None


def ids(searcher: Searcher, question: str, k: int = 20, **where: object) -> list[str]:
    (hits,) = searcher.search([question], k, where or None)
    return [hit.item.item_id for hit in hits]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")
    Searcher([DENSE, HopRetriever(DENSE)]).index(ITEMS, folder)
    return folder


@pytest.mark.parametrize("start", [DENSE, Bm25Retriever()])
def test_what_a_version_added_comes_first_and_what_it_kept_does_not(start: object, tmp_path: Path) -> None:
    searcher = Searcher([HopRetriever(start)])  # type: ignore[arg-type]
    searcher.index(ITEMS, tmp_path)
    # the moved passage 2 was edited; passage 1 has another figure in it; passage 0 is as it was
    assert set(ids(searcher, NEW, 2, country="Alder")) == {"a-new-3", "a-new-4"}
    found = ids(searcher, "What is new about solar power capacity in the later plan?", 4, country="Alder")
    assert found[0] == "a-new-1"
    assert "a-new-0" not in found


def test_what_a_version_dropped_comes_from_the_earlier_one(index: Path) -> None:
    searcher = Searcher([HopRetriever(DENSE)]).open(index)
    assert set(ids(searcher, GONE, 2, country="Brenn")) == {"b-old-2", "b-old-4"}


def test_of_three_versions_the_last_one_is_asked_for(tmp_path: Path) -> None:
    third = [chunk(f"a-third-{n}", item.content, "Alder", 2026, n) for n, item in enumerate(ITEMS[5:9])]
    third.append(
        chunk("a-third-4", "Buses of the capital are replaced by boats on the river, run by the port.", "Alder", 2026, 4)
    )
    searcher = Searcher([HopRetriever(DENSE)])
    searcher.index([*ITEMS, *third], tmp_path)
    assert ids(searcher, NEW, 1, country="Alder") == ["a-third-4"]
    assert ids(searcher, "What is new about buses in the later plan?", 1, country="Alder", year={"lte": LATER}) == ["a-new-4"]
    assert ids(searcher, "What about buses no longer stands?", 1, country="Alder") == ["a-new-4"]


def test_a_question_that_asks_for_no_change_is_ranked_as_ever(index: Path) -> None:
    question = "Which buses run in the capital?"
    plain = Searcher([HopRetriever(DENSE, changes="none")]).open(index)
    auto = Searcher([HopRetriever(DENSE)]).open(index)
    assert ids(auto, question) == ids(plain, question)
    assert ids(auto, NEW, 4) != ids(plain, NEW, 4)
