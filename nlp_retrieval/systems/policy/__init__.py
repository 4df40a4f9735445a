"""The same questions asked of every subject (country by country), with what each signal said of every passage."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
