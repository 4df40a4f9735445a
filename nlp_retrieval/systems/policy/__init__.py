"""The same questions for every subject (country by country), with the value of each signal for every passage."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
