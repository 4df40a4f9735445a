"""A searcher as a DSPy retrieval model."""

from __future__ import annotations

from typing import Any

from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import DependencyError, install

try:
    from dspy import Example
except ImportError:
    raise DependencyError(f"a searcher in DSPy needs dspy: {install('llm')}") from None


class DspyRetriever:
    """Searches an opened index for DSPy: after ``dspy.configure(rm=DspyRetriever(searcher))``, ``dspy.Retrieve`` uses it.

    Args:
        searcher: a searcher with an opened index.
        k: at most this many passages, unless a call gives another number.
        where: a filter for all calls; see :mod:`nlp_retrieval.core.filters`.
    """

    def __init__(self, searcher: BaseSearcher, k: int = 3, where: Where | None = None) -> None:
        self.searcher, self.k, self.where = searcher, k, where

    def __call__(self, query: str, k: int | None = None, where: Where | None = None) -> list[Any]:
        """Return passages, best first: examples with ``long_text``, ``pid``, ``score``, ``signals`` and ``metadata``."""
        (results,) = self.searcher.search([query], self.k if k is None else k, where=self.where if where is None else where)
        return [
            Example(
                long_text=hit.item.text, pid=hit.item.item_id, score=hit.score, signals=hit.signals, metadata=hit.item.metadata
            )
            for hit in results
        ]
