"""Small studies for tests: three countries with two plans each, and encoders that need no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, MultiSignalReranker, SearchableItem, Searcher
from nlp_retrieval.rerankers.multi_signal.profile import Profile
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever
from nlp_retrieval.systems.policy.study import PolicyStudy

PROFILE = {
    "name": "energy",
    "description": "Two questions about energy",
    "subject": "country",
    "groups": {"power": ["wind", "solar"], "money": ["cost", "dollar"]},
    "patterns": {"money": [r"\d+ dollars"]},
    "questions": [
        {"number": 1, "text": "How does {subject} make its power?", "keywords": ["turbine", "panel"], "groups": ["power"]},
        {"number": 2, "text": "What does the plan of {subject} cost?", "keywords": ["budget"], "groups": ["money"]},
    ],
    "min_similarity": 0.0,
    "top_k": 3,
}

TEXTS = {
    "Ostland": [
        ("power", "Wind supplies 12% of the power.", "Wind supplies 30% of the power."),
        ("windows", "New windows keep the heat in the houses.", "New windows keep the heat in the houses."),
        ("cost", "The plan costs 400 dollars a head.", "The plan costs 650 dollars a head."),
        ("coal", "A coal station is planned at the port.", None),
        ("panel", None, "Solar panels float on the reservoir."),
    ],
    "Costa Verde": [
        ("power", "Solar panels stand on the roofs.", "Solar panels stand on the roofs."),
        ("coast", "The coast is called Costa Verde, as it is green.", "The coast is called Costa\nVerde, as it is green."),
        ("cost", "Nothing is said of money.", "All measures cost 90 dollars."),
    ],
    "Ile": [("power", "Diesel makes the power.", "Diesel makes half of the power, wind the rest.")],
}


def profile(**changes: Any) -> Profile:
    """The profile of these tests, with changes."""
    return Profile.from_mapping(PROFILE | changes)


def plans() -> list[SearchableItem]:
    """The passages, country by country, plan by plan."""
    return [
        SearchableItem(
            item_id=f"{country}-{year}-{key}".lower().replace(" ", "_"),
            content=text,
            metadata={
                "country": country,
                "document": f"{country} {year}",
                "year": year,
                "position": place,
                "title": f"{country} {year}",
            },
        )
        for country, passages in TEXTS.items()
        for edition, year in enumerate((2019, 2024))
        for place, (key, *texts) in enumerate(passages)
        if (text := texts[edition]) is not None
    ]


def study(
    index: Path, *, items: list[SearchableItem] | None = None, hop: bool = False, keywords: bool = True, **changes: Any
) -> PolicyStudy:
    """A study over an index of the plans, which is made where it is not there."""
    chosen = PROFILE | changes
    encoder = HashedWords(64)
    reranker = MultiSignalReranker(chosen, encoder=encoder, word_vectors_weight=0.0, min_similarity=0.0)
    searcher = Searcher([FaissRetriever(encoder)], reranker=reranker)
    searcher.index(plans() if items is None else items, index)
    along = None
    if hop:
        along = Searcher([HopRetriever(FaissRetriever(encoder))])
        along.index(plans() if items is None else items, index)
    return PolicyStudy(profile(**changes), searcher, along, keywords=keywords)


def answers_in(folder: Path) -> dict[str, Any]:
    """All files of answers, without the time at which they were written."""
    answers = {path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    for answer in answers.values():
        del answer["metadata"]["timestamp"]
    return answers
