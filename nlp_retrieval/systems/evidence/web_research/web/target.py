"""Address of the web, parsed once, so that the checked address is the one that is connected to and requested."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from nlp_retrieval.errors import DependencyError, FetchError, FetchRefusedError, InputError, install
from nlp_retrieval.systems.evidence.index.urls import MAX_URL, canonical_url
from nlp_retrieval.text import printable

__all__ = ["WebTarget", "shown", "web_url"]

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class WebTarget:
    """Target of a request: the connection and the path.

    Args:
        scheme: "http" or "https".
        host: a name in ASCII, or a numeric address without brackets.
        port: of the connection.
        path: path and query, as sent.
    """

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> WebTarget:
        """Parse a URL; its fragment is dropped.

        Raises:
            FetchRefusedError: it is not http or https, holds a user name or control characters, or names no host.
            DependencyError: w3lib or idna is not installed.
        """
        try:
            canonical = canonical_url(url)
        except InputError as error:
            raise FetchRefusedError(str(error)) from None
        try:
            from w3lib.url import safe_url_string
        except ImportError:
            raise DependencyError(f"fetching needs w3lib: {install('research')}") from None
        given = urlsplit(url.strip())
        scheme = given.scheme.lower()
        if scheme not in _PORTS:
            raise FetchRefusedError(f"{shown(url)}: only http and https are fetched, not {scheme}")
        safe = urlsplit(safe_url_string(url.strip()))
        path = (safe.path or "/") + (f"?{safe.query}" if safe.query else "")
        if not path.isascii() or not path.isprintable() or " " in path or not path.startswith("/"):
            raise FetchRefusedError(f"{shown(url)}: its path cannot be asked for; write it percent-encoded")
        target = cls(scheme, urlsplit(canonical).hostname or "", _PORTS[scheme] if given.port is None else given.port, path)
        if len(target.url) > MAX_URL:
            raise FetchRefusedError(f"{shown(url)}: percent-encoded it has more than {MAX_URL:,} characters")
        return target

    @property
    def site(self) -> str:
        """Return scheme, host and port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """Return host and port, for the header ``Host``."""
        return self.bracketed if self.port == _PORTS[self.scheme] else f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        """Return the host, with brackets around an IPv6 address."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def url(self) -> str:
        """Return the whole address."""
        return self.site + self.path

    def at(self, path: str) -> WebTarget:
        """Return another path of the same site."""
        return WebTarget(self.scheme, self.host, self.port, path)

    def redirected(self, location: str) -> WebTarget:
        """Return the target of a redirect.

        Args:
            location: the header, relative or not.

        Raises:
            FetchError: it is not an address.
            FetchRefusedError: as for :meth:`of`.
        """
        try:
            joined = urljoin(self.url, location.strip())
        except ValueError:
            raise FetchError(f"{shown(self.url)} redirects to {shown(location)}, which is not an address") from None
        return WebTarget.of(joined)


def shown(url: str) -> str:
    """Return an address for a message: short, and without terminal commands."""
    return printable(url if len(url) <= 150 else f"{url[:147]}...")


def web_url(url: object) -> str | None:
    """Return the canonical form of an address of the web; None for anything else."""
    if not isinstance(url, str):
        return None
    try:
        canonical = canonical_url(url)
    except InputError:
        return None
    return canonical if canonical.startswith("https://") else None
