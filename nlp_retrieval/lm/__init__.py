"""Language models: their settings, and calls that are retried, limited, counted, and answered from disk the second time."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
