"""What rankings are worth: measures, comparisons, and whether a difference is more than chance."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
