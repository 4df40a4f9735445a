"""Searching the web through a SearXNG server, or any other that answers in its JSON form.

The server is the user's choice and may run anywhere; what it answers is data, of which http and https addresses pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal
from urllib.parse import urlencode

from pydantic import Field

from nlp_retrieval.core import given, may_set, parse_json, without_secrets
from nlp_retrieval.errors import ConfigurationError, FetchError, FetchRefusedError
from nlp_retrieval.systems.evidence.web_research.searching.base import BaseWebSearch, WebResult
from nlp_retrieval.systems.evidence.web_research.web.target import WebTarget, shown, web_url

__all__ = ["SearxngSearch"]

_LARGEST = 4 * 2**20
_MOST_PAGES = 5
_CURES = {
    403: "its JSON answers are switched off; add json to search.formats in its settings.yml",
    404: "there is no search at this address; give the address of its start page",
    429: "it asks for fewer requests; wait, or switch off its limiter for this machine",
}


class SearxngSearch(BaseWebSearch):
    """Searches through a SearXNG server (https://docs.searxng.org/dev/search_api.html).

    The server's own host may have any address and port; it is asked directly, without a proxy, and no redirect is followed.

    Args:
        url: address of the server's start page, such as http://localhost:8888.
        language: of the results, such as "en" or "de-CH"; by default what the server says.
        categories: of SearXNG, such as "general" or "science".
        engines: of SearXNG, such as "wikipedia".
        safe_search: 0 none, 1 moderate, 2 strict; by default what the server says.
        seconds: limit for each of its answers.
        user_agent: who asks.

    Raises:
        ConfigurationError: the address holds a password or a key.
    """

    name = "searxng"
    manifest_may_set = may_set(
        *("language", "categories", "engines", "safe_search", "seconds"),
        url=given("send queries to the server"),
        user_agent=given("name itself to servers"),
    )

    def __init__(
        self,
        url: str,
        language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$|^all$|^auto$")] | None = None,
        categories: Sequence[str] | None = None,
        engines: Sequence[str] | None = None,
        safe_search: Literal[0, 1, 2] | None = None,
        seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 15.0,
        user_agent: Annotated[str, Field(pattern=r"^[A-Za-z][\x20-\x7e]{0,199}$")] = "nlp_retrieval/0.1 (research fetcher)",
    ) -> None:
        if without_secrets(url) != url:
            raise ConfigurationError(
                f"SearxngSearch: url={without_secrets(url)!r} holds a password or a key, which would stand in "
                "configurations and messages; use a server that needs none"
            )
        self.url = url
        self.language = language
        self.categories = categories
        self.engines = engines
        self.safe_search = safe_search
        self.seconds = seconds
        self.user_agent = user_agent

    def find(self, query: str, k: int) -> list[WebResult]:
        found: dict[str, WebResult] = {}
        for page in range(1, _MOST_PAGES + 1):
            results = self._page(query, page)
            new = [one for one in results if one.url not in found]
            found |= {one.url: one for one in new}
            if not new or sum(web_url(url) is not None for url in found) >= k:
                break
        return list(found.values())

    def _page(self, query: str, page: int) -> list[WebResult]:
        from nlp_retrieval.systems.evidence.web_research.web.connections import Deadline, resolve_host
        from nlp_retrieval.systems.evidence.web_research.web.exchange import ask_web

        target = self._target(query, page)
        answer = ask_web(
            target, Deadline(self.seconds), _LARGEST, self.user_agent, "application/json", resolve_host, private=True
        )
        where = f"the search engine at {target.site}"
        if answer.status != 200:
            cure = _CURES.get(answer.status, "look at its own page, and at its log")
            raise FetchError(f"{where} answered with status {answer.status}: {cure}")
        media_type = answer.headers.get("content-type", "")
        if "html" in media_type.lower():
            raise FetchError(f"{where} answered with a page and not with JSON; {_CURES[403]}")
        return results_in(answer.body, where)

    def _target(self, query: str, page: int) -> WebTarget:
        settings = {
            "q": query,
            "format": "json",
            "pageno": page if page > 1 else None,
            "language": self.language,
            "categories": ",".join(self.categories) if self.categories else None,
            "engines": ",".join(self.engines) if self.engines else None,
            "safesearch": self.safe_search,
        }
        asked = urlencode({key: value for key, value in settings.items() if value is not None})
        try:
            place = WebTarget.of(self.url)
        except FetchRefusedError as error:
            raise ConfigurationError(f"SearxngSearch: url: {error}") from None
        path = place.path.partition("?")[0].removesuffix("/").removesuffix("/search")
        return place.at(f"{path}/search?{asked}")


def results_in(body: bytes, where: str) -> list[WebResult]:
    """Return the results in an answer, as they stand there.

    Args:
        body: of the answer.
        where: who gave it, for messages.

    Raises:
        FetchError: it is not the JSON of such an answer.
    """
    try:
        content = parse_json(body, max_bytes=_LARGEST)
    except ValueError as error:
        raise FetchError(f"{where} gave an answer that is not JSON ({shown(str(error))}); is it SearXNG?") from None
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, list):
        raise FetchError(f'{where} gave JSON without a list of "results"; is it SearXNG?')
    return [
        WebResult(row["url"], _text(row.get("title")), _text(row.get("content")))
        for row in results
        if isinstance(row, dict) and isinstance(row.get("url"), str)
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
