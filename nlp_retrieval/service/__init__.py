"""The HTTP service: an index, or a project of sources, searched by other programs."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
