"""What a search engine is: a query in, addresses of the web with titles and snippets out, best first."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from nlp_retrieval.core import Component, check_k, check_queries
from nlp_retrieval.errors import EngineError, RetrievalWarning
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.web_research.web.target import shown, web_url

__all__ = ["BaseWebSearch", "WebResult"]

_LONGEST_SNIPPET = 1_000


@dataclass(frozen=True)
class WebResult:
    """A page that a query found.

    Args:
        url: http or https.
        title: of the page, one line; may be empty.
        snippet: a part of its text; may be empty.
    """

    url: str
    title: str = ""
    snippet: str = ""


class BaseWebSearch(Component, ABC):
    """Finds pages of the web."""

    kind: ClassVar[str] = "search_engines"

    def search(self, query: str, k: int = 10) -> list[WebResult]:
        """Search.

        Args:
            query: a question, or keywords.
            k: at most this many results.

        Returns:
            Results, best first, each address once. What is no address of the web is left out, with a warning.

        Raises:
            QueryError: the query is not a string, or k is less than 1.
            FetchError: the search engine gave no usable answer.
            EngineError: it returned what is no list of results.
        """
        (asked,), cut = check_queries([query]), check_k(k)
        found = self.find(asked, cut) if asked.strip() else []
        if not isinstance(found, list) or not all(isinstance(one, WebResult) for one in found):
            raise EngineError(f"{type(self).__name__} returned something else than a list of WebResult")
        kept: dict[str, WebResult] = {}
        left_out = []
        for one in found:
            canonical = web_url(one.url)
            if canonical is None:
                left_out.append(one.url)
            else:
                kept.setdefault(canonical, WebResult(one.url.strip(), clean_title(one.title)[0], _snippet(one.snippet)))
        if left_out:
            warnings.warn(
                f"{self.name}: results left out, since they are no http or https addresses: {len(left_out):,} (first: "
                f"{shown(str(left_out[0]))!r})",
                RetrievalWarning,
                stacklevel=2,
            )
        return list(kept.values())[:cut]

    @abstractmethod
    def find(self, query: str, k: int) -> list[WebResult]:
        """Return about ``k`` results for a query that is not blank, best first."""


def _snippet(text: str) -> str:
    return " ".join(clean_text(text)[0].split())[:_LONGEST_SNIPPET]
