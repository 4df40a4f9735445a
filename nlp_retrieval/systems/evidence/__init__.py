"""Evidence: an index of the sources that were read, claims verified against it, and every citation of a report audited."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
