"""Forty passages on whales, four questions in two families, and two systems that found some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nlp_retrieval import Query, SearchableItem
from nlp_retrieval.judging import JudgingProject

ITEMS = [
    SearchableItem(item_id=f"p{n}", content=f"Passage {n} says that whale {n} sings.", metadata={"title": f"Whale {n // 4}"})
    for n in range(40)
]
QUERIES = [Query(query_id=f"q{n}", text=f"Does whale {n} sing?", family=f"f{n // 2}") for n in range(4)]
RUNS = {
    "alpha": {query.query_id: [(f"p{5 * n + rank}", 9.0 - rank) for rank in range(4)] for n, query in enumerate(QUERIES)},
    "omega": {query.query_id: [(f"p{5 * n + 2 * rank}", 9.0 - rank) for rank in range(4)] for n, query in enumerate(QUERIES)},
}


def make(folder: Path, **settings: Any) -> JudgingProject:
    return JudgingProject.create(folder, QUERIES, RUNS, ITEMS, **settings)
