"""Databases and language models for these tests."""

from chat_server import model, server

from systems.hipporag.knowledge.databases import make_store, postgresql

__all__ = ["make_store", "model", "postgresql", "server"]
