"""Loaders: they read items, queries and gold from files and databases."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
