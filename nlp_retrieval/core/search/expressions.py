"""Operators that write a :class:`~nlp_retrieval.core.search.searcher.Searcher` in one line. They build searchers, nothing else.

With retrievers or searchers ``x`` and ``y``:

==========================  ===================================================================
``x % 50``                  ``x`` gives 50 candidates.
``x + y``                   Fuse the lists of both by reciprocal rank.
``x & y``                   The items that both find, by reciprocal rank (``x | y`` is ``x + y``).
``0.7 * x + 0.3 * y``       Fuse them by the weighted sum of normalised scores.
``x >> reranker``           Rerank the candidates of ``x``.
``x >> reranker % 10``      Rerank the first 10 of them; the others follow in their order.
``processor >> x``          Search ``x`` for the sub-queries of the processor.
``function >> x``           A function of a query, which returns what to search for.
``x >> function``           A function of a query and its results, which returns them in another order.
==========================  ===================================================================

Python evaluates ``*`` and ``%`` first, then ``+``, then ``>>``, each from left to right: most expressions need no parentheses.
``&``, then ``|``, come last, also after ``>>``: ``(x & y) >> reranker``.

>>> from nlp_retrieval import Bm25Retriever, OverlapReranker, Searcher
>>> bm25, short, overlap = Bm25Retriever(), Bm25Retriever(b=0.2), OverlapReranker()
>>> hybrid = bm25 % 50 + short % 20 >> overlap % 10
>>> hybrid == Searcher([bm25, short], reranker=overlap, depth={"bm25": 50, "bm25-2": 20, "overlap": 10})
True
>>> (0.7 * bm25 + 0.3 * short).fusion
WeightedSum(weights=[0.7, 0.3])

``x + y + z`` is one fusion of three, with parentheses or without. A searcher with a processor, a reranker or another fusion
becomes one retriever, and so does a sum that is cut or weighted: ``(x + y) % 50``, ``0.7 * (x + y) + 0.3 * z``.

An expression is a new searcher, without an index: call ``index`` or ``open``. Expressions without a meaning raise a
:class:`~nlp_retrieval.errors.ConfigurationError`.
"""

from __future__ import annotations

from typing import Any

from nlp_retrieval.core.components.registry import component_class
from nlp_retrieval.core.tables import html_text


class Expression:
    """Gives a class the operators of this module."""

    __array_ufunc__ = None  # numpy's numbers are weights too, and do not make arrays of objects

    def draw(self) -> str:
        """Return a picture of the stages, left to right, as the text of an SVG file; a notebook shows it by itself.

        Examples:
            >>> _ = Path("hybrid.svg").write_text((Bm25Retriever() % 50 >> OverlapReranker() % 10).draw())
        """
        from nlp_retrieval.core.search.drawing import drawing  # which names the classes of the components that it draws

        part: Any = self.reranker if isinstance(self, FirstCandidates) else self
        return drawing(part.config, part.kind, self.n if isinstance(self, FirstCandidates) else None)

    def _repr_html_(self) -> str:
        return f"{self.draw()}<br><code>{html_text(repr(self))}</code>"

    def __mod__(self, n: int) -> Any:
        return _expressed(self, "%", n)

    def __mul__(self, weight: float) -> Any:
        return _expressed(weight, "*", self)

    def __rmul__(self, weight: float) -> Any:
        return _expressed(weight, "*", self)

    def __add__(self, other: Any) -> Any:
        return _expressed(self, "+", other)

    def __radd__(self, other: Any) -> Any:
        return _expressed(other, "+", self)

    def __or__(self, other: Any) -> Any:
        return _expressed(self, "+", other)

    def __ror__(self, other: Any) -> Any:
        return _expressed(other, "+", self)

    def __and__(self, other: Any) -> Any:
        return _expressed(self, "&", other)

    def __rand__(self, other: Any) -> Any:
        return _expressed(other, "&", self)

    def __rshift__(self, other: Any) -> Any:
        return _expressed(self, ">>", other)

    def __rrshift__(self, other: Any) -> Any:
        return _expressed(other, ">>", self)


class FirstCandidates(Expression):
    """A reranker and its depth in the searcher that it is given to: ``reranker % n``."""

    def __init__(self, reranker: Any, n: int) -> None:
        self.reranker = reranker
        self.n = n

    @property
    def name(self) -> str:
        """The expression, for messages."""
        return f"{self.reranker.name} % {self.n}"

    def __repr__(self) -> str:
        return f"{self.reranker!r} % {self.n}"


def _expressed(left: Any, operator: str, right: Any) -> Any:
    searchers: Any = component_class("searchers", "searcher")  # by its name: retrievers and rerankers do not import it
    return searchers.expressed(left, operator, right)
