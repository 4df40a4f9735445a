"""Agents that search: what they did as data, measured step by step, and asked again of another searcher."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
