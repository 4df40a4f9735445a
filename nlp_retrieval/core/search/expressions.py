"""Operators that write a :class:`~nlp_retrieval.core.search.searcher.Searcher` in one line: docs/SEARCH.md has a table of them.

>>> from nlp_retrieval import Bm25Retriever, OverlapReranker, Searcher
>>> bm25, short, overlap = Bm25Retriever(), Bm25Retriever(b=0.2), OverlapReranker()
>>> hybrid = bm25 % 50 + short % 20 >> overlap % 10
>>> hybrid == Searcher([bm25, short], reranker=overlap, depth={"bm25": 50, "bm25-2": 20, "overlap": 10})
True

``x + y + z`` is one fusion of three, with parentheses or without. A searcher with a processor, a reranker or another fusion
becomes one retriever, and so does a sum that is cut or weighted: ``(x + y) % 50``, ``0.7 * (x + y) + 0.3 * z``. An expression
has no index yet. One without a meaning raises a :class:`~nlp_retrieval.errors.ConfigurationError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nlp_retrieval.core.components.registry import component_class
from nlp_retrieval.core.search.drawing import drawing
from nlp_retrieval.core.tables import html_text


def _operator(sign: str, *, turned: bool = False) -> Any:
    def expressed(self: Any, other: Any) -> Any:
        searchers: Any = component_class("searchers", "searcher")  # by its name: retrievers and rerankers do not import it
        return searchers.expressed(other, sign, self) if turned else searchers.expressed(self, sign, other)

    return expressed


class Expression:
    """Gives a class the operators of this module."""

    __array_ufunc__ = None  # numpy's numbers are weights too, and do not make arrays of objects

    def draw(self) -> str:
        """Return a picture of the stages, left to right, as the text of an SVG file; a notebook shows it by itself.

        Examples:
            >>> _ = Path("hybrid.svg").write_text((Bm25Retriever() % 50 >> OverlapReranker() % 10).draw())
        """
        part: Any = self.reranker if isinstance(self, FirstCandidates) else self
        return drawing(part.config, part.kind, self.n if isinstance(self, FirstCandidates) else None)

    def _repr_html_(self) -> str:
        return f"{self.draw()}<br><code>{html_text(repr(self))}</code>"

    __mod__ = _operator("%")
    __mul__ = __rmul__ = _operator("*", turned=True)
    __add__ = __or__ = _operator("+")
    __radd__ = __ror__ = _operator("+", turned=True)
    __and__, __rand__ = _operator("&"), _operator("&", turned=True)
    __rshift__, __rrshift__ = _operator(">>"), _operator(">>", turned=True)


@dataclass(frozen=True, repr=False)
class FirstCandidates(Expression):
    """A reranker and its depth in the searcher that it is given to: ``reranker % n``."""

    reranker: Any
    n: int

    @property
    def name(self) -> str:
        """The expression, for messages."""
        return f"{self.reranker.name} % {self.n}"

    def __repr__(self) -> str:
        return f"{self.reranker!r} % {self.n}"
