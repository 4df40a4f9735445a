"""Fetchers: the page at an address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from nlp_retrieval.core import Component, given, may_set
from nlp_retrieval.errors import EngineError, FetchError, FetchRefusedError
from nlp_retrieval.systems.evidence.index.store import now
from nlp_retrieval.systems.evidence.web_research.addresses import USER_AGENT, WebTarget, shown, web_url

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.web_research.connections import Deadline, WebAnswer


@dataclass(frozen=True)
class FetchedPage:
    """A fetched page; its content is only data.

    Args:
        asked_url: the requested address.
        url: of the page, after redirects.
        content: its bytes.
        media_type: from the server, with its charset if there is one; may be empty.
        fetch_date: ISO 8601.
        title: if the content does not say it.

    Examples:
        >>> url = "https://example.org/krill"
        >>> FetchedPage(url, url, b"<title>Krill</title>", "text/html", "2026-01-19").media_type
        'text/html'
    """

    asked_url: str
    url: str
    content: bytes
    media_type: str
    fetch_date: str
    title: str = ""


class BaseFetcher(Component, ABC):
    """Fetches pages of the web."""

    kind: ClassVar[str] = "fetchers"

    @abstractmethod
    def fetch(self, url: str) -> FetchedPage | str | Mapping[str, str]:
        """Return the page at an address of the web: as it is, its text, or its "text" and "title".

        Args:
            url: http or https.

        Raises:
            FetchRefusedError: it may not be fetched.
            FetchError: it cannot be fetched.
        """


Fetch = Callable[[str], FetchedPage | str | Mapping[str, str]]


def fetch_page(fetcher: BaseFetcher | Fetch, url: str) -> FetchedPage:
    """Fetch a page, by a component or a function that does the same, and check it."""
    WebTarget.of(url)
    url = url.strip()
    page = fetcher.fetch(url) if isinstance(fetcher, BaseFetcher) else fetcher(url)
    if isinstance(page, str):
        page = {"text": page}
    if isinstance(page, Mapping) and isinstance(page.get("text"), str):
        text = page["text"].encode("utf-8", "replace")
        page = FetchedPage(url, url, text, "text/plain; charset=utf-8", now(), str(page.get("title", "")))
    if not isinstance(page, FetchedPage) or not isinstance(page.content, bytes) or not isinstance(page.media_type, str):
        raise EngineError(f"a fetcher returned a {type(page).__name__}; it must return a text, or a FetchedPage with bytes")
    if web_url(page.url) is None:
        raise EngineError(f"a fetcher returned a page from {str(page.url)[:80]!r}, which is not a web address")
    return page


# Fetching from the public internet, so that neither a page nor a host name can lead anywhere else.
#
# Every hop of a redirect is checked like the first address: its scheme, its port, the addresses of its host, its robots.txt.

_PORTS = (80, 443)
_REDIRECTS = (301, 302, 303, 307, 308)
_LARGEST_ROBOTS, _ROBOTS_REDIRECTS = 512 * 2**10, 5
_ACCEPT = "text/html, application/xhtml+xml, application/pdf, text/plain, text/markdown, */*;q=0.1"


class HttpFetcher(BaseFetcher):
    """Fetches pages over HTTP and HTTPS, from public addresses only.

    A host is resolved once for each request, and the connection goes to the checked address. Refused are hosts with an address
    that is not public, ports but 80 and 443, user names in addresses, and pages that robots.txt forbids. It keeps no cookies,
    uses no proxy of the environment, and runs no scripts.

    Args:
        private_hosts: hosts that may have any address: names or addresses as in URLs, "wiki.example", or with the only
            allowed port, "127.0.0.1:8080". Redirects to such a host are followed from itself only.
        seconds: limit for a page with all its redirects.
        max_bytes: the most bytes of a page, as sent and after decompression.
        max_redirects: the most redirects that are followed.

    Examples:
        >>> fetcher = HttpFetcher(seconds=10, max_redirects=2)
        >>> fetcher.fetch("file:///etc/hosts")
        Traceback (most recent call last):
            ...
        nlp_retrieval.errors.FetchRefusedError: ...
        >>> fetcher.fetch("https://example.org/").media_type  # doctest: +SKIP
        'text/html'
    """

    name = "http"
    manifest_may_set = may_set(
        *("seconds", "max_bytes", "max_redirects"), private_hosts=given("fetch pages from the private hosts")
    )

    def __init__(
        self,
        private_hosts: Sequence[str] | None = None,
        seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0,
        max_bytes: Annotated[int, Field(ge=1)] = 20 * 2**20,
        max_redirects: Annotated[int, Field(ge=0, le=20)] = 5,
    ) -> None:
        self.private_hosts = private_hosts
        self.seconds = seconds
        self.max_bytes = max_bytes
        self.max_redirects = max_redirects
        self._own = {host.strip().lower() for host in private_hosts or ()}
        self._rules: dict[str, Any] = {}

    def fetch(self, url: str) -> FetchedPage:
        from nlp_retrieval.systems.evidence.web_research.connections import Deadline

        deadline = Deadline(self.seconds)
        target, answer = self._answer(WebTarget.of(url), deadline, self.max_bytes, self.max_redirects)
        if answer.status != 200:
            raise FetchError(f"{shown(target.url)}: the server answered with status {answer.status}")
        media_type = answer.headers.get("content-type", "")[:200]
        return FetchedPage(url, target.url, answer.body, media_type, now())

    def _answer(
        self, target: WebTarget, deadline: Deadline, max_bytes: int, redirects: int, *, obey: bool = True
    ) -> tuple[WebTarget, WebAnswer]:
        """Return where a chain of redirects ends, and the answer there; each address in it is checked."""
        from nlp_retrieval.systems.evidence.web_research.connections import ask_web

        first = target
        for _ in range(redirects + 1):
            if target.port not in _PORTS and f"{target.bracketed}:{target.port}" not in self._own:
                raise FetchRefusedError(
                    f"{shown(target.url)}: port {target.port} is not allowed; only 80 and 443 are, and those that the user "
                    "allows with a host"
                )
            if obey:
                self._obey(target, deadline)
            answer = ask_web(target, deadline, max_bytes, _ACCEPT, private=self._is_private(target))
            if answer.status not in _REDIRECTS:
                return target, answer
            target = self._redirected(target, answer)
        raise FetchError(f"{shown(first.url)}: more than {redirects} redirects")

    def _is_private(self, target: WebTarget) -> bool:
        return bool(self._own & {target.host, target.bracketed, f"{target.bracketed}:{target.port}"})

    def _redirected(self, target: WebTarget, answer: WebAnswer) -> WebTarget:
        location = answer.headers.get("location")
        if not location:
            raise FetchError(f"{shown(target.url)}: the server redirects without a location")
        new_target = target.redirected(location)
        if self._is_private(new_target) and new_target.host != target.host:
            raise FetchRefusedError(
                f"{shown(target.url)} redirects to {shown(new_target.url)}; a page elsewhere does not lead to a private host"
            )
        return new_target

    def _obey(self, target: WebTarget, deadline: Deadline) -> None:
        """Refuse a page that its site's robots.txt forbids; a site without one allows all, one that cannot say nothing."""
        from protego import Protego

        if target.site not in self._rules:
            why = f"{shown(target.site)}: its robots.txt cannot be read, so nothing is fetched from it"
            try:
                _, answer = self._answer(target.at("/robots.txt"), deadline, _LARGEST_ROBOTS, _ROBOTS_REDIRECTS, obey=False)
            except FetchRefusedError:
                raise
            except FetchError as error:
                raise FetchError(f"{why}: {error}") from None
            if answer.status == 429 or not (answer.status == 200 or 400 <= answer.status < 500):
                raise FetchError(f"{why}: the server answered with status {answer.status}")
            self._rules[target.site] = Protego.parse(answer.body.decode("utf-8-sig", "replace"))
        try:
            allowed = self._rules[target.site].can_fetch(target.url, USER_AGENT.partition("/")[0])
        except ValueError:
            allowed = False
        if not allowed:
            raise FetchRefusedError(f"{shown(target.url)}: the robots.txt of this site forbids it")
