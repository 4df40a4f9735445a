"""Retrievers: engines that find items for queries, a folder each."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
