"""An index of the demonstration's pages, as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

import nlp_retrieval
from nlp_retrieval import BeirLoader, Bm25Retriever, Searcher

DEMO = Path(nlp_retrieval.__file__).parent / "demo"


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the demonstration's pages by bm25."""
    folder = tmp_path_factory.mktemp("hover") / "index"
    Searcher([Bm25Retriever()]).index(BeirLoader(DEMO / "corpus.jsonl"), folder)
    return folder
