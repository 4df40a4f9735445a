"""Evaluation of rankings: measures, comparisons, and significance tests."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
