"""What a fetcher is: an address in, the bytes of the page there out, or an error that says why not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from nlp_retrieval.core import Component
from nlp_retrieval.errors import EngineError
from nlp_retrieval.systems.evidence.web_research.web.target import WebTarget, web_url

__all__ = ["BaseFetcher", "FetchedPage"]


@dataclass(frozen=True)
class FetchedPage:
    """A page as it was fetched; what it holds is data, whatever it says.

    Args:
        asked_url: the address that was asked for.
        url: where the page was read, after redirects.
        content: its bytes.
        media_type: as the server states it, with its charset if there is one; empty where it states none.
        fetch_date: when, ISO 8601.
    """

    asked_url: str
    url: str
    content: bytes
    media_type: str
    fetch_date: str


class BaseFetcher(Component, ABC):
    """Fetches pages of the web."""

    kind: ClassVar[str] = "fetchers"

    def fetch(self, url: str) -> FetchedPage:
        """Fetch a page.

        Args:
            url: http or https.

        Raises:
            FetchRefusedError: it may not be fetched: it is not an address of the web, or leads where nothing is fetched.
            FetchError: it cannot be fetched.
            EngineError: the fetcher returned what is not a page.
        """
        WebTarget.of(url)
        page = self.fetch_page(url.strip())
        if not isinstance(page, FetchedPage) or not isinstance(page.content, bytes) or not isinstance(page.media_type, str):
            raise EngineError(
                f"{type(self).__name__} returned a {type(page).__name__}; it must return a FetchedPage with bytes"
            )
        if web_url(page.url) is None:
            raise EngineError(
                f"{type(self).__name__} says that a page was read at {str(page.url)[:80]!r}, no address of the web"
            )
        return page

    @abstractmethod
    def fetch_page(self, url: str) -> FetchedPage:
        """Return the page at an address of the web, or raise a :class:`~nlp_retrieval.errors.FetchError`."""
