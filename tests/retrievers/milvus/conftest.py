"""What the tests of Milvus share: a collection of few words, a searcher on the shared server, and a client beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hashed_words import HashedWords
from milvus_server import milvus_url, shared_milvus
from pymilvus import MilvusClient

from nlp_retrieval import MilvusRetriever, SearchableItem, Searcher
from nlp_retrieval.retrievers.milvus.collections import CollectionRecord

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()


def corpus(count: int, first: int = 0) -> list[SearchableItem]:
    """Items of a few words each, which their numbers decide; every 64th has the words of the first."""
    return [
        SearchableItem(
            item_id=f"d{row}",
            content=" ".join(WORDS[(row * step + row % 64 // 16) % 16] for step in (1, 7, 5, 3)[: 2 + row % 3]),
            metadata={"part": row % 10},
        )
        for row in range(first, first + count)
    ]


def retriever(mode: str = "dense", **settings: Any) -> MilvusRetriever:
    """A retriever whose collections are on the shared server, by default."""
    return MilvusRetriever(settings.pop("encoder", HashedWords(dimension=24)), mode, **({"url": milvus_url()} | settings))


def searcher(mode: str = "dense", **settings: Any) -> Searcher:
    """A searcher around one."""
    return Searcher([retriever(mode, **settings)])


def found(searcher: Searcher, query: str = "fox whale", k: int = 5, where: Any = None) -> list[tuple[str, float]]:
    """Ids and scores."""
    return [(hit.item.item_id, hit.score) for hit in searcher.search([query], k, where)[0]]


def records(index: Path) -> list[CollectionRecord]:
    """The records of an index, by the names of their folders."""
    return CollectionRecord.named(index)


@pytest.fixture
def client() -> Any:
    """A client beside those of the package."""
    made = MilvusClient(shared_milvus().url, dedicated=True)
    yield made
    made.close()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert os.environ["XDG_CACHE_HOME"]
