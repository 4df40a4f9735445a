"""The chat server as a fixture."""

from chat_server import model, server

__all__ = ["model", "server"]
