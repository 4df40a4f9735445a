"""The chat server, and models that ask it, as fixtures."""

from chat_server import model, server

__all__ = ["model", "server"]
