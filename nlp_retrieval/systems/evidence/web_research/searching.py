"""Search engines for pages of the web."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar
from urllib.parse import urlencode

from pydantic import Field

from nlp_retrieval.core import Component, check_k, check_queries, given, may_set, parse_json
from nlp_retrieval.documents import clean_title
from nlp_retrieval.errors import EngineError, FetchError, RetrievalWarning
from nlp_retrieval.systems.evidence.web_research.addresses import service_target, shown, web_url

# Merging of ranked lists by reciprocal rank, so that all lists are represented from the start.
#
# Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
# SIGIR 2009.

T = TypeVar("T")


def merged_by_rank(lists: Sequence[Sequence[T]], key: Callable[[T], Hashable]) -> list[T]:
    """Return the elements of all lists, once each, by the sum of 1 / (60 + rank); ties in the order of the lists."""
    scores: dict[Hashable, float] = {}
    first: dict[Hashable, tuple[int, int, T]] = {}
    for number, ranked in enumerate(lists):
        distinct = {key(element): (rank, element) for rank, element in reversed(list(enumerate(ranked)))}
        for same, (rank, element) in distinct.items():
            scores[same] = scores.get(same, 0.0) + 1 / (60 + 1 + rank)
            first.setdefault(same, (rank, number, element))
    return [first[same][2] for same in sorted(first, key=lambda same: (-scores[same], first[same][:2]))]


@dataclass(frozen=True)
class WebResult:
    """A page that a query found.

    Args:
        url: http or https.
        title: of the page, one line; may be empty.

    Examples:
        >>> WebResult("https://example.org/krill.html", title="Krill").title
        'Krill'
    """

    url: str
    title: str = ""


class BaseWebSearch(Component, ABC):
    """Finds pages of the web."""

    kind: ClassVar[str] = "search_engines"

    @abstractmethod
    def search(self, query: str, k: int = 10) -> Sequence[WebResult | str | Mapping[str, str]]:
        """Return about ``k`` results for a query that is not blank, best first.

        Each is a :class:`WebResult`, an address, or a mapping with "url" and perhaps "title".
        """


Search = Callable[[str, int], Sequence[WebResult | str | Mapping[str, str]]]


def find_pages(engine: BaseWebSearch | Search, query: str, k: int = 10) -> list[WebResult]:
    """Search the web, by a component or a function that does the same; each address once, and only addresses of the web."""
    (asked,), cut = check_queries([query]), check_k(k)
    results = (engine.search if isinstance(engine, BaseWebSearch) else engine)(asked, cut) if asked.strip() else []
    if not isinstance(results, list | tuple):
        raise EngineError(f"a search engine returned a {type(results).__name__}; it must return a list of WebResult")
    kept: dict[str | None, WebResult] = {}
    for each in results:
        result = WebResult(each) if isinstance(each, str) else each
        if isinstance(result, Mapping):
            result = WebResult(result.get("url", ""), str(result.get("title", "")))
        if not isinstance(result, WebResult):
            raise EngineError(f"a search engine returned a list with a {type(each).__name__}; it must return WebResult")
        kept.setdefault(web_url(result.url), result)
    if dropped := kept.pop(None, None):
        warnings.warn(
            f"results dropped that are not http or https addresses, such as {shown(str(dropped.url))!r}",
            RetrievalWarning,
            stacklevel=2,
        )
    return [WebResult(result.url.strip(), clean_title(result.title)) for result in kept.values()][:cut]


# Searching the web through a SearXNG server, or any other with its JSON format.
#
# The server is the user's choice and may run anywhere; its answers are data, and only http and https addresses pass.

_LARGEST = 4 * 2**20
_SECONDS = 15.0
_NO_JSON = "its JSON answers may be switched off; add json to search.formats in its settings.yml"


class SearxngSearch(BaseWebSearch):
    """Searches through a SearXNG server (https://docs.searxng.org/dev/search_api.html).

    The server's own host may have any address and port; requests use no proxy, and follow no redirect.

    Args:
        url: address of the server's start page, such as http://localhost:8888.
        language: of the results, such as "en" or "de-CH"; by default the server's setting.

    Raises:
        ConfigurationError: the address is none, or holds a password or a key.

    Examples:
        >>> SearxngSearch("http://localhost:8888", language="en")
        SearxngSearch(url='http://localhost:8888', language='en')
    """

    name = "searxng"
    manifest_may_set = may_set("language", url=given("send queries to the server"))

    def __init__(
        self,
        url: str,
        language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$|^all$|^auto$")] | None = None,
    ) -> None:
        self._target = service_target(url, type(self).__name__)
        self.url = url
        self.language = language

    def search(self, query: str, k: int = 10) -> list[WebResult]:
        from nlp_retrieval.systems.evidence.web_research.connections import Deadline, ask_web

        del k  # the server decides how many it gives
        asked = {"q": query, "format": "json"} | ({"language": self.language} if self.language else {})
        path = self._target.path.partition("?")[0].removesuffix("/").removesuffix("/search")
        target = self._target.at(f"{path}/search?{urlencode(asked)}")
        answer = ask_web(target, Deadline(_SECONDS), _LARGEST, "application/json", private=True)
        where = f"the search engine at {target.site}"
        if answer.status != 200:
            cure = _NO_JSON if answer.status == 403 else "look at its own page, and at its log"
            raise FetchError(f"{where} answered with status {answer.status}: {cure}")
        return results_in(answer.body, where)


def results_in(body: bytes, where: str) -> list[WebResult]:
    """Return the results in an answer, unchecked; a ``FetchError`` if it is not the JSON of such an answer."""
    try:
        content = parse_json(body, max_bytes=_LARGEST)
    except ValueError as error:
        raise FetchError(f"{where} gave an answer that is not JSON ({shown(str(error))}); {_NO_JSON}") from None
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, list):
        raise FetchError(f'{where} gave JSON without a list of "results"; is it SearXNG?')
    return [
        WebResult(row["url"], title if isinstance(title := row.get("title"), str) else "")
        for row in results
        if isinstance(row, dict) and isinstance(row.get("url"), str)
    ]
