"""Titles, names and other mentions in texts, and which characters of a text may be shown."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
