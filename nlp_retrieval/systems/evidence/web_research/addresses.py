"""Address of the web, parsed once, so that the checked address is the one that is connected to and requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from nlp_retrieval.core import read_json_file
from nlp_retrieval.documents import LeftOut, files_in, is_json_lines
from nlp_retrieval.errors import DependencyError, FetchError, FetchRefusedError, InputError, SourceError, install
from nlp_retrieval.systems.evidence.index.urls import MAX_URL, canonical_url
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
        try:
            from w3lib.url import safe_url_string
        except ImportError:
            raise DependencyError(f"fetching needs w3lib: {install('research')}") from None
        parts = urlsplit(url.strip())
        scheme = parts.scheme.lower()
        if scheme not in _PORTS:
            raise FetchRefusedError(f"{shown(url)}: only http and https are fetched, not {scheme}")
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


def web_url(url: object) -> str | None:
    """Return the canonical form of an address of the web; None for anything else."""
    if not isinstance(url, str):
        return None
    try:
        canonical = canonical_url(url)
    except InputError:
        return None
    return canonical if canonical.startswith("https://") else None


# Folder as a part of the web: its files by address.
#
# An address is looked up in a table of the existing files, and never becomes a path, so nothing outside the folder is read.

URLS_FILE = "urls.json"
"""File of the addresses of pages: ``{"https://a.example/report": "report.html"}``."""

_MOST_BYTES = 64 * 2**20
_INDEX = ("index.html", "index.htm")


def pages_of(folder: str | Path) -> Mapping[str, Path]:
    """Return the pages of a folder by their addresses in canonical form.

    ``urls.json`` in the folder gives the addresses of files. A file that it does not name has the address of a mirrored site:
    ``a.example/history.html`` is ``https://a.example/history.html``, and ``a.example/index.html`` is also
    ``https://a.example/``. Other files are not pages. Symbolic links are not followed, and unsupported files are skipped.

    Args:
        folder: read to any depth.

    Raises:
        SourceError: there is no such folder, no page in it has an address, or ``urls.json`` is not such a mapping.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise SourceError(f"{root} is not a folder; name one that holds pages")
    files = {
        path.relative_to(root).as_posix(): path
        for path in files_in(root, LeftOut())
        if not is_json_lines(path) and path != root / URLS_FILE
    }
    pages: dict[str, Path] = {}
    seen_hosts: set[str] = set()
    for url, name in _read_urls(root / URLS_FILE).items():
        canonical = web_url(url)
        if canonical is None:
            raise SourceError(f"{root / URLS_FILE}: {shown(url)!r} is not an http or https address")
        if name not in files:
            raise SourceError(f"{root / URLS_FILE}: {shown(str(name))!r} is not a page below {root}; name a file that is there")
        pages[canonical] = files[name]
        seen_hosts.add(name)
    for name, path in files.items():
        host = name.partition("/")[0]
        if name in seen_hosts or "/" not in name or "." not in host:
            continue
        addresses = [name, *(name.removesuffix(end) for end in _INDEX if path.name == end)]
        for canonical in filter(None, (web_url(f"https://{address}") for address in addresses)):
            pages.setdefault(canonical, path)
    if files and not pages:
        raise SourceError(
            f"{root}: none of the {len(files):,} readable files has an address; give the files' addresses in {URLS_FILE}, "
            "or put the pages of a site into a folder named like its host (a.example/b.html)"
        )
    return pages


def _read_urls(file: Path) -> dict[str, str]:
    if file.is_symlink() or not file.is_file():
        return {}
    try:
        urls = read_json_file(file, max_bytes=_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} cannot be read: {error}") from None
    if not isinstance(urls, dict) or not all(isinstance(name, str) for name in urls.values()):
        raise SourceError(f'{file} is not a mapping of addresses to files, such as {{"https://a.example/": "a.html"}}')
    return urls
