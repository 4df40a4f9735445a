"""Folder as a part of the web: its files by address.

An address is looked up in a table of the existing files, and never becomes a path, so nothing outside the folder is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nlp_retrieval.core import read_json_file
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.reading.folder import LeftOut, files_in, is_json_lines
from nlp_retrieval.systems.evidence.web_research.web.target import shown, web_url

__all__ = ["URLS_FILE", "pages_of"]

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
    named: set[str] = set()
    for url, name in _read_urls(root / URLS_FILE).items():
        canonical = web_url(url)
        if canonical is None:
            raise SourceError(f"{root / URLS_FILE}: {shown(url)!r} is not an http or https address")
        if name not in files:
            raise SourceError(f"{root / URLS_FILE}: {shown(str(name))!r} is not a page below {root}; name a file that is there")
        pages[canonical] = files[name]
        named.add(name)
    for name, path in files.items():
        host = name.partition("/")[0]
        if name in named or "/" not in name or "." not in host:
            continue
        addresses = [name, *(name.removesuffix(end) for end in _INDEX if path.name == end)]
        for canonical in filter(None, (web_url(f"https://{address}") for address in addresses)):
            pages.setdefault(canonical, path)
    if files and not pages:
        raise SourceError(
            f"{root}: none of the {len(files):,} files that could be read here has an address; say in {URLS_FILE} which file "
            "is the page at which address, or put the pages of a site into a folder called as its host (a.example/b.html)"
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
