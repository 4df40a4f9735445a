"""The import of httpcore, so that its absence is one error with one cure."""

from __future__ import annotations

from nlp_retrieval.errors import DependencyError

try:
    import httpcore
except ImportError:
    raise DependencyError("fetching over HTTP needs httpcore: pip install 'nlp_retrieval[research]'") from None

__all__ = ["httpcore"]
