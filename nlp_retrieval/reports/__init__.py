"""Reports of a benchmark: one page, the terminal, tables for papers, Weights & Biases."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
