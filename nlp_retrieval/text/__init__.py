"""Titles, names and other mentions in texts, and the characters of a text that may be shown."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
