"""Evidence: an index of sources, verification of claims against it, and the audit of a report's citations."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
