"""The import of httpcore, so that its absence raises one error with one remedy."""

from __future__ import annotations

from nlp_retrieval.errors import DependencyError, install

try:
    import httpcore
except ImportError:
    raise DependencyError(f"fetching over HTTP needs httpcore: {install('research')}") from None

__all__ = ["httpcore"]
