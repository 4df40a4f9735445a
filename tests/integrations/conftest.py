"""An opened searcher over a few cities; nothing that a framework would send home is sent."""

from __future__ import annotations

import os

import pytest

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"  # read when Haystack is imported
os.environ["LANGSMITH_TRACING"] = "false"

CITIES = [
    ("oslo", "Oslo", "A harbour city of Norway on a fjord.", "Norway"),
    ("bergen", "Bergen", "A harbour city between seven mountains, with much rain.", "Norway"),
    ("kyoto", "Kyoto", "A city of temples and gardens.", "Japan"),
    ("osaka", "Osaka", "A harbour city of merchants.", "Japan"),
]
QUERY = "harbour city"


@pytest.fixture(scope="session")
def items() -> list[SearchableItem]:
    return [
        SearchableItem(item_id=item_id, content=content, metadata={"title": title, "country": country})
        for item_id, title, content, country in CITIES
    ]


@pytest.fixture(scope="session")
def searcher(items: list[SearchableItem], tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    made = Searcher([Bm25Retriever()])
    made.index(items, tmp_path_factory.mktemp("cities") / "index")
    return made
