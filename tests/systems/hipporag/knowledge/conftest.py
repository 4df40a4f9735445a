"""Databases and language models for these tests."""

import pytest
from chat_server import model, server

from systems.hipporag.knowledge.databases import make_store, postgresql

__all__ = ["make_store", "model", "postgresql", "server"]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nlp_retrieval.systems.hipporag.store._WAIT", 0.001)
