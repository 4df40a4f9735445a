"""Vocabulary shared by the whole package: items, hits, filters, candidates. All other packages build on it."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
