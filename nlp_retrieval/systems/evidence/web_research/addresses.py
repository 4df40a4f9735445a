"""Address of the web, parsed once, so that the checked address is the one that is connected to and requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from nlp_retrieval.core import expanded
from nlp_retrieval.documents import LeftOut, files_in, is_json_lines, read_manifest, refuse_faults
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

MANIFEST = "manifest.csv"
"""File of the addresses of pages, with the columns ``file`` and ``url``."""

_INDEX = ("index.html", "index.htm")


def pages_of(folder: str | Path) -> Mapping[str, Path]:
    """Return the pages of a folder by their addresses in canonical form.

    ``manifest.csv`` in the folder gives the addresses of files. A file that it does not name has the address of a mirrored
    site: ``a.example/history.html`` is ``https://a.example/history.html``, and ``a.example/index.html`` is also
    ``https://a.example/``. Other files are not pages. Symbolic links are not followed, and unsupported files are skipped.

    Args:
        folder: read to any depth.

    Raises:
        SourceError: there is no such folder, no page in it has an address, or the manifest is wrong.
    """
    root = expanded(folder)
    if not root.is_dir():
        raise SourceError(f"{root} is not a folder; name one that holds pages")
    manifest = root / MANIFEST
    rows, faults = read_manifest(manifest) if manifest.is_file() and not manifest.is_symlink() else ([], [])
    pages: dict[str, Path] = {}
    for row in rows:
        canonical = web_url(row.fields.get("canonical") or row.fields.get("url", ""))
        if canonical is not None and row.file is not None:
            pages[canonical] = row.file
        else:
            faults.append(f"{row.where}: write a file below {root}, and the http or https address of its page")
    refuse_faults(manifest, faults)
    listed, n_files = set(pages.values()), 0
    for path in files_in(root, LeftOut(), known=(manifest,)):
        name, n_files = path.relative_to(root).as_posix(), n_files + 1
        if is_json_lines(path) or path.resolve() in listed or "/" not in name or "." not in name.partition("/")[0]:
            continue
        addresses = [name, *(name.removesuffix(end) for end in _INDEX if path.name == end)]
        for canonical in filter(None, (web_url(f"https://{address}") for address in addresses)):
            pages.setdefault(canonical, path)
    if n_files and not pages:
        raise SourceError(
            f"{root}: none of the {n_files:,} readable files has an address; give the files' addresses in {MANIFEST}, "
            "or put the pages of a site into a folder named like its host (a.example/b.html)"
        )
    return pages
