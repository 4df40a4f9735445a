"""Feedback against its definition by hand, and what it is for: one question asked of many subjects."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, FaissRetriever, FeedbackRetriever, SearchableItem, Searcher
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.link_graph.tables import term_of
from nlp_retrieval.text.surfaces import words_of

COUNTRIES = ["Avelon", "Brask", "Costa Verde", "Dorn", "Esk", "Farrow"]
SAID = {
    "goal": "{0} pledges to cut emissions by half before the middle of the century",
    "money": "donors lend {0} the sums that its banks and budget lack for turbines",
    "coast": "dykes shelter the harbours of {0} against storms and rising water",
    "crops": "farmers in {0} sow seeds which endure drought and salty soil",
}
ALIEN = "loans in {0} come at low interest for turbines from banks abroad and from the budget"


def plans() -> list[SearchableItem]:
    """Four passages for each country; one speaks of money in words that no question uses."""
    return [
        SearchableItem(
            item_id=f"{country}-{topic}",
            content=(ALIEN if country == "Farrow" and topic == "money" else text).format(country),
            metadata={"country": country, "document": f"{country} plan", "position": place},
        )
        for country in COUNTRIES
        for place, (topic, text) in enumerate(SAID.items())
    ]


def made(**settings) -> FeedbackRetriever:
    return FeedbackRetriever([FaissRetriever(HashedWords(400)), Bm25Retriever()], subject="country", **settings)


def searched(tmp_path, retriever, question, **asked):
    searcher = Searcher([retriever])
    searcher.index(plans(), tmp_path / "index")
    return searcher.search([question], **asked)[0]


def test_what_other_countries_say_finds_what_one_says_in_words_of_its_own(tmp_path):
    question, where = "what sums do donors lend", {"country": "Farrow"}
    plain = Searcher([Bm25Retriever()])
    plain.index(plans(), tmp_path / "index")
    with pytest.warns(RetrievalWarning, match="no item that may be found matches"):
        assert plain.search([question], k=4, where=where) == [[]]
    found = searched(tmp_path, made(passages=5, neighbour_weight=0.0), question, k=4, where=where)
    assert found[0].item.item_id == "Farrow-money"


def test_passages_of_a_named_country_come_first_and_its_name_is_not_compared(tmp_path):
    named = searched(tmp_path, made(), "Which sums do donors lend Costa Verde?", k=24)
    asked = searched(tmp_path, made(), "Which sums do donors lend the country?", k=24)
    assert {hit.item.metadata["country"] for hit in named[:4]} == {"Costa Verde"}
    of_verde = [hit.item.item_id for hit in asked if hit.item.metadata["country"] == "Costa Verde"]
    assert [hit.item.item_id for hit in named[:4]] == of_verde


def test_a_subject_that_no_item_has_is_noted(tmp_path):
    with pytest.warns(RetrievalWarning, match="none of these items has a text as its 'land'; correct subject="):
        searched(tmp_path, FeedbackRetriever([FaissRetriever(HashedWords(400))], subject="land"), "donors")


def test_scores_are_those_of_the_definition(tmp_path):
    question, items = "how do dykes shelter harbours", plans()
    encoder = HashedWords(400)
    retriever = made(passages=3, terms=6, neighbour_weight=0.4, vector_weight=0.7, term_weight=1.3)
    found = {hit.item.item_id: hit for hit in searched(tmp_path, retriever, question, k=24)}
    vectors = encoder.encode_passages([item.text for item in items]).astype(np.float64)
    query = encoder.encode_queries([question])[0].astype(np.float64)
    lexical = Searcher([Bm25Retriever()])
    lexical.index(items, tmp_path / "lexical")
    bm25 = {hit.item.item_id: hit.score for hit in lexical.search([question], k=24)[0]}
    dense = vectors @ query

    first = (dense - dense.min()) / (dense.max() - dense.min())
    low, high = min(bm25.values()), max(bm25.values())
    for row, item in enumerate(items):
        if item.item_id in bm25:
            first[row] += (bm25[item.item_id] - low) / (high - low) if high > low else 1.0
    fed = np.argsort(-first, kind="stable")[:3]

    own = vectors.copy()
    for country in COUNTRIES:
        rows = [row for row, item in enumerate(items) if item.metadata["country"] == country]
        own[rows] -= vectors[rows].mean(axis=0)
    own /= np.linalg.norm(own, axis=1)[:, None]

    terms = [{term_of(word) for word in words_of(item.text)} for item in items]
    having = Counter(term for held in terms for term in held)
    idf = {term: np.log1p((len(items) - n + 0.5) / (n + 0.5)) for term, n in having.items()}
    lengths = [np.sqrt(sum(idf[term] ** 2 for term in held)) for held in terms]
    weights: Counter[int] = Counter()
    for row in fed:
        for term in terms[row]:
            weights[term] += idf[term] / lengths[row]
    best = sorted(weights, key=lambda term: (-weights[term], term))[:6]
    norm = np.sqrt(sum(weights[term] ** 2 for term in best))
    by_terms = np.array([sum(weights[t] / norm * idf[t] for t in best if t in held) for held in terms]) / lengths

    def standardised(values):
        return (values - values.mean()) / values.std()

    mean = own[fed].mean(axis=0)
    total = standardised(dense) + 0.7 * standardised(own @ (mean / np.linalg.norm(mean))) + 1.3 * standardised(by_terms)
    beside = np.zeros(len(items))
    for row, item in enumerate(items):
        for other, near in enumerate(items):
            apart = abs(row - other)
            if item.metadata["country"] == near.metadata["country"] and 1 <= apart <= 2:
                beside[row] += 0.4 / apart * total[other]
    assert [found[item.item_id].score for item in items] == pytest.approx(list(total + beside), abs=2e-4)


def test_a_query_is_encoded_once_by_all_its_parts(tmp_path):
    asked = []

    class Asked(HashedWords):
        def encode_queries(self, queries):
            asked.extend(queries)
            return super().encode_queries(queries)

    retriever = FeedbackRetriever([FaissRetriever(Asked(400))], subject="country")
    Searcher([retriever]).index(plans(), tmp_path / "index")
    retriever.retrieve([["what sums do donors lend"]], tmp_path / "index", 3)
    assert asked == ["what sums do donors lend"]
