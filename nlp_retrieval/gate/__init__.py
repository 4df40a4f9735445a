"""A gate for continuous integration: no change makes retrieval worse without anyone noticing."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
