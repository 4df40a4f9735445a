"""The command line: one module per family of commands."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
