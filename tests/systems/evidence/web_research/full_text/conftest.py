"""A server of a language model whose answers a test decides, and a model that asks it."""

from __future__ import annotations

from chat_server import model, server

__all__ = ["model", "server"]
