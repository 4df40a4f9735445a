"""Fetchers: the page at an address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from nlp_retrieval.core import Component, Lock, given, may_set
from nlp_retrieval.errors import DependencyError, EngineError, FetchError, FetchRefusedError, install
from nlp_retrieval.systems.evidence.index.store import now
from nlp_retrieval.systems.evidence.source_files import FetchedPage
from nlp_retrieval.systems.evidence.web_research.addresses import USER_AGENT, WebTarget, shown, web_url

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.web_research.connections import Deadline, WebAnswer

LARGEST_ROBOTS = 512 * 2**10
"""Bytes of a robots.txt; a larger one is refused."""


class RobotRules:
    """Rules of one site, by its robots.txt."""

    def __init__(self, body: bytes) -> None:
        try:
            from protego import Protego
        except ImportError:
            raise DependencyError(f"reading robots.txt needs protego: {install('research')}") from None
        self._rules = Protego.parse(body.decode("utf-8-sig", "replace"))

    def allow(self, user_agent: str, url: str) -> bool:
        """Return whether a page may be fetched."""
        try:
            return bool(self._rules.can_fetch(url, user_agent.partition("/")[0]))
        except ValueError:
            return False


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
    """Fetch a page, and check it.

    Args:
        fetcher: a component, or a function that does the same as :meth:`BaseFetcher.fetch`.
        url: http or https.

    Raises:
        FetchRefusedError: it may not be fetched: it is not an address of the web, or leads to a forbidden one.
        FetchError: it cannot be fetched.
        EngineError: the fetcher returned something that is not a page.
    """
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

_REDIRECTS = (301, 302, 303, 307, 308)
_ROBOTS_REDIRECTS = 5
_MOST_SITES = 1_000
_ACCEPT = "text/html, application/xhtml+xml, application/pdf, text/plain, text/markdown, */*;q=0.1"
_NO_TEXT = ("audio", "font", "image", "model", "video")


def _ignores_robots(obeyed: Any) -> str | None:
    return None if obeyed is True else "fetch pages that their sites' robots.txt forbids"


class HttpFetcher(BaseFetcher):
    """Fetches pages over HTTP and HTTPS, from public addresses only.

    A host is resolved once for each request, and the connection goes to the checked address. Refused are hosts with
    an address that is private, loopback, link-local, multicast, reserved, or translated from IPv4; other ports; user names in
    addresses; and pages that robots.txt forbids. It keeps no cookies, uses no proxy of the environment, and runs no scripts.

    Args:
        private_hosts: hosts that may have any address: names or addresses as in URLs, "wiki.example", or with the only
            allowed port, "127.0.0.1:8080". Redirects to such a host are followed from itself only.
        ports: allowed for hosts given without a port, and for all others; by default 80 and 443.
        seconds: limit for a page with all its redirects.
        max_bytes: the most bytes of a page, as sent and after decompression.
        max_redirects: the most redirects that are followed.
        robots: whether robots.txt is fetched and obeyed; it is cached as long as this component exists.
        user_agent: of the requests; its name in robots.txt is the part before the first slash.

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
        *("seconds", "max_bytes", "max_redirects"),
        private_hosts=given("fetch pages from the private hosts"),
        ports=given("fetch pages from the ports"),
        robots=_ignores_robots,
        user_agent=given("name itself to servers"),
    )

    def __init__(
        self,
        private_hosts: Sequence[str] | None = None,
        ports: Sequence[Annotated[int, Field(ge=1, le=65535)]] | None = None,
        seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0,
        max_bytes: Annotated[int, Field(ge=1)] = 20 * 2**20,
        max_redirects: Annotated[int, Field(ge=0, le=20)] = 5,
        robots: bool = True,
        user_agent: Annotated[str, Field(pattern=r"^[A-Za-z][\x20-\x7e]{0,199}$")] = USER_AGENT,
    ) -> None:
        self.private_hosts = private_hosts
        self.ports = ports
        self.seconds = seconds
        self.max_bytes = max_bytes
        self.max_redirects = max_redirects
        self.robots = robots
        self.user_agent = user_agent
        self._lock = Lock()
        self._rules: dict[str, RobotRules] = {}

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the numeric addresses of a host; an ``OSError`` if it is unknown."""
        from nlp_retrieval.systems.evidence.web_research.connections import resolve_host

        return resolve_host(host, port)

    def fetch(self, url: str) -> FetchedPage:
        from nlp_retrieval.systems.evidence.web_research.connections import Deadline

        target, answer = self._answer(
            WebTarget.of(url), Deadline(self.seconds), self.max_bytes, self.max_redirects, self.robots
        )
        if answer.status != 200:
            raise FetchError(f"{shown(target.url)}: the server answered with status {answer.status}")
        media_type = answer.headers.get("content-type", "")[:200]
        if media_type.partition("/")[0].strip().lower() in _NO_TEXT:
            raise FetchError(f"{shown(target.url)}: it is {shown(media_type)!r}, which holds no text")
        return FetchedPage(url, target.url, answer.body, media_type, now())

    def _answer(
        self, target: WebTarget, deadline: Deadline, max_bytes: int, redirects: int, robots: bool
    ) -> tuple[WebTarget, WebAnswer]:
        """Return where a chain of redirects ends, and the answer there; each address in it is checked."""
        from nlp_retrieval.systems.evidence.web_research.connections import ask_web

        first = target
        for _ in range(redirects + 1):
            self._check(target)
            if robots and not self._rules_of(target, deadline).allow(self.user_agent, target.url):
                raise FetchRefusedError(f"{shown(target.url)}: the robots.txt of this site forbids it")
            private = self._is_private(target)
            answer = ask_web(target, deadline, max_bytes, self.user_agent, _ACCEPT, self.resolve, private=private)
            if answer.status not in _REDIRECTS:
                return target, answer
            target = self._redirected(target, answer)
        raise FetchError(f"{shown(first.url)}: more than {redirects} redirects")

    def _is_private(self, target: WebTarget) -> bool:
        return bool(self._own_hosts() & {target.host, target.bracketed, f"{target.bracketed}:{target.port}"})

    def _own_hosts(self) -> set[str]:
        return {host.strip().lower() for host in self.private_hosts or ()}

    def _check(self, target: WebTarget) -> None:
        ports = self.ports or (80, 443)
        if target.port not in ports and f"{target.bracketed}:{target.port}" not in self._own_hosts():
            raise FetchRefusedError(
                f"{shown(target.url)}: port {target.port} is not allowed; only {', '.join(map(str, ports[:9]))} are, and "
                "those that the user allows with a host"
            )

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

    def _rules_of(self, target: WebTarget, deadline: Deadline) -> RobotRules:
        with self._lock:
            known = self._rules.get(target.site)
        if known is not None:
            return known
        why = f"{shown(target.site)}: its robots.txt cannot be read, so nothing is fetched from it"
        try:
            _, answer = self._answer(target.at("/robots.txt"), deadline, LARGEST_ROBOTS, _ROBOTS_REDIRECTS, robots=False)
        except FetchRefusedError:
            raise
        except FetchError as error:
            raise FetchError(f"{why}: {error}") from None
        if answer.status == 429 or not (answer.status == 200 or 400 <= answer.status < 500):
            raise FetchError(f"{why}: the server answered with status {answer.status}")
        rules = RobotRules(answer.body if answer.status == 200 else b"")
        with self._lock:
            if len(self._rules) >= _MOST_SITES:
                self._rules.clear()
            self._rules[target.site] = rules
        return rules
