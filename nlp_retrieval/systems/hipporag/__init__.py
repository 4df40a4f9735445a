"""HippoRAG 2 as one system with one settings file: extraction, index, search and answers."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
