"""Judging: pairs of question and passage, who judged them how, and what follows for a comparison of systems."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
