"""The vocabulary that all rooms share: items, hits, filters, candidates; the rooms in it stand on it and on one another."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
