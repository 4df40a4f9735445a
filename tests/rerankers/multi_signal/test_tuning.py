"""Weights of signals: what is fitted, by folds over groups, and what each signal is worth."""

from __future__ import annotations

import pytest
from hashed_words import HashedWords

from nlp_retrieval import (
    FaissRetriever,
    Gold,
    MultiSignalReranker,
    Query,
    SearchableItem,
    Searcher,
    tune_signals,
)
from nlp_retrieval.errors import GoldError
from nlp_retrieval.evaluation import RetrievalEvaluator

COUNTRIES = [f"country{number}" for number in range(6)]
THINGS = {"wind": "turbine", "coal": "pit", "flood": "river", "loans": "money"}
PROFILE = {"name": "p", "subject": "country", "groups": {f"g{thing}": [thing, other] for thing, other in THINGS.items()}}


def collection():
    """Each country has a passage per thing that never says its name but a keyword of its group; questions name the thing."""
    items = [
        SearchableItem(
            item_id=f"{country}-{thing}", content=f"about {THINGS[thing]} matters {country}", metadata={"country": country}
        )
        for country in COUNTRIES
        for thing in THINGS
    ]
    queries = [
        Query(
            query_id=f"q-{country}-{thing}", text=f"which {thing}", family=f"{country}-{thing}", metadata={"country": country}
        )
        for country in COUNTRIES
        for thing in THINGS
    ]
    gold = [Gold(query_id=query.query_id, relevance={query.query_id.removeprefix("q-"): 1}) for query in queries]
    return items, queries, gold


ITEMS, QUERIES, GOLD = collection()


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    reranker = MultiSignalReranker(PROFILE, word_vectors_weight=0.0, patterns_weight=0.1, fuzzy_weight=0.1)
    made = Searcher([FaissRetriever(HashedWords())], reranker=reranker, depth="all")
    made.index(ITEMS, tmp_path_factory.mktemp("tuned") / "index")
    return made


@pytest.fixture(scope="module")
def report(searcher):
    return tune_signals(searcher, QUERIES, GOLD, (1, 3), folds=3, where_from={"country": "country"})


def test_the_signal_that_finds_the_gold_gets_the_weight(report):
    """Only the keywords tell that a turbine has to do with wind."""
    assert report.out_of_fold.means()["recall@1"] == 1.0
    assert report.weights["patterns"] > 0
    assert report.missing == ["word_vectors"]
    assert report.unreachable == 0


def test_what_is_reported_before_is_what_the_searcher_finds(searcher, report):
    """The oracle: the searcher itself, with its own weights, and the evaluator."""
    lists = []
    rows = {item.item_id: row for row, item in enumerate(ITEMS)}
    plain = Searcher(searcher.retrievers, reranker=MultiSignalReranker(
        PROFILE, word_vectors_weight=0.0, patterns_weight=0.1, fuzzy_weight=0.1, min_similarity=0.0
    ), depth="all").open(searcher.opened.path)  # fmt: skip
    for query in QUERIES:
        (found,) = plain.search(query.text, 3, where={"country": query.metadata["country"]})
        lists.append([rows[result.item.item_id] for result in found])
    expected = RetrievalEvaluator(GOLD, list(rows), None, (1, 3)).evaluate_lists(lists)
    for measure, values in expected.per_query.items():
        assert report.before.per_query[measure] == pytest.approx(values), measure


def test_gold_of_a_fold_has_no_part_in_its_weights(searcher, report):
    """Spoil the gold of one country: the weights of its own fold stay, for they were fitted without it."""
    spoilt = [
        Gold(query_id=one.query_id, relevance={f"{COUNTRIES[0]}-{list(THINGS)[(number + 1) % 4]}": 1})
        if QUERIES[number].metadata["country"] == COUNTRIES[0] else one
        for number, one in enumerate(GOLD)
    ]  # fmt: skip
    again = tune_signals(searcher, QUERIES, spoilt, (1, 3), folds=3, where_from={"country": "country"})
    fold = int(report.folds[0])
    assert again.fold_weights[fold] == report.fold_weights[fold]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "contry"}, "has no 'contry' in its metadata; did you mean 'country'"),
        ({"folds": 7}, "6 groups of queries for 7 folds"),
        ({"gold": GOLD[1:]}, "1 of 24 queries have no gold"),
    ],
)
def test_what_does_not_fit_is_refused(searcher, settings, message):
    gold = settings.pop("gold", GOLD)
    with pytest.raises(GoldError, match=message):
        tune_signals(searcher, QUERIES, gold, (3,), **settings)
