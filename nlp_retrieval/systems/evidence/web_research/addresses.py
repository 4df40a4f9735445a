"""Address of the web, parsed once, so that the checked address is the one that is connected to and requested."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from nlp_retrieval.core import without_secrets
from nlp_retrieval.errors import ConfigurationError, FetchError, FetchRefusedError, InputError
from nlp_retrieval.systems.evidence.index.urls import MAX_URL, canonical_or_empty, canonical_url
from nlp_retrieval.text import printable

_PORTS = {"http": 80, "https": 443}
USER_AGENT = "nlp_retrieval/0.1 (research fetcher)"
"""Name in requests."""


@dataclass(frozen=True)
class WebTarget:
    """Target of a request: its path is path and query as sent, its host a name in ASCII, or an address without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> WebTarget:
        """Parse an http or https URL without its fragment; a ``FetchRefusedError`` for any other."""
        try:
            canonical = canonical_url(url)
        except InputError as error:
            raise FetchRefusedError(str(error)) from None
        parts = urlsplit(url.strip())
        scheme = parts.scheme.lower()
        if scheme not in _PORTS:
            raise FetchRefusedError(f"{shown(url)}: only http and https are fetched, not {scheme}")
        from w3lib.url import safe_url_string

        safe = urlsplit(safe_url_string(url.strip()))
        path = (safe.path or "/") + (f"?{safe.query}" if safe.query else "")
        if not path.isascii() or not path.isprintable() or " " in path or not path.startswith("/"):
            raise FetchRefusedError(f"{shown(url)}: its path cannot be requested; percent-encode it")
        target = cls(scheme, urlsplit(canonical).hostname or "", _PORTS[scheme] if parts.port is None else parts.port, path)
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
        """Return the target of a redirect."""
        try:
            joined = urljoin(self.url, location.strip())
        except ValueError:
            raise FetchError(f"{shown(self.url)} redirects to {shown(location)}, which is not an address") from None
        return WebTarget.of(joined)


def shown(url: str) -> str:
    """Return an address for a message: short, and without terminal commands."""
    return printable(url if len(url) <= 150 else f"{url[:147]}...")


def web_url(url: str) -> str | None:
    """Return the canonical form of an address of the web; None for anything else."""
    canonical = canonical_or_empty(url)
    return canonical if canonical.startswith("https://") else None


def service_target(url: str, component: str) -> WebTarget:
    """Return the target of a server that a user of a component named; it may hold no password or key."""
    if without_secrets(url) != url:
        raise ConfigurationError(
            f"{component}: url={without_secrets(url)!r} holds a password or a key, which would appear in configurations and "
            "messages; use a server that needs none"
        )
    try:
        return WebTarget.of(url)
    except FetchRefusedError as error:
        raise ConfigurationError(f"{component}: url: {error}") from None
