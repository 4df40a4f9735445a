"""Compose, search with and honestly compare retrieval pipelines.

What plug-ins are written with is in the packages of the library (``nlp_retrieval.core``, ``nlp_retrieval.text``, ...), and each
system has a package of its own: ``nlp_retrieval.evidence``, ``.hipporag``, ``.hover`` and ``.policy``.
"""

from nlp_retrieval._public_names import public_names
from nlp_retrieval._version import __version__ as __version__

__getattr__, __dir__ = public_names(__name__, globals())
