"""Pages of a folder, fetched by the addresses that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from nlp_retrieval.core import READS_FILE, Lock, may_set
from nlp_retrieval.errors import FetchError, SourceError
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.systems.evidence.reading.folder import read_file
from nlp_retrieval.systems.evidence.reading.text_of import SUFFIXES
from nlp_retrieval.systems.evidence.web_research.fetching.base import BaseFetcher, FetchedPage
from nlp_retrieval.systems.evidence.web_research.web.page_folder import pages_of
from nlp_retrieval.systems.evidence.web_research.web.target import shown

__all__ = ["FolderFetcher"]

_MEDIA_TYPES = {"text": "text/plain", "markdown": "text/markdown", "html": "text/html", "pdf": "application/pdf"}


class FolderFetcher(BaseFetcher):
    """Fetches pages from a folder, and nothing from outside it: for what was downloaded before, and for trying things out.

    Which file is the page at which address, ``urls.json`` in the folder says, or else its path, as in a mirrored site
    (:mod:`nlp_retrieval.systems.evidence.web_research.web.page_folder`). The date of a page is that of its file. The table of
    files is read at first use.

    Args:
        folder: holds the pages.
    """

    name = "folder"
    manifest_may_set = may_set(folder=READS_FILE)

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._pages: Mapping[str, Path] | None = None

    @property
    def pages(self) -> Mapping[str, Path]:
        """The files by the canonical forms of their addresses.

        Raises:
            SourceError: there is no such folder, or its ``urls.json`` is wrong.
        """
        with self._lock:
            if self._pages is None:
                self._pages = pages_of(self.folder)
            return self._pages

    def fetch_page(self, url: str) -> FetchedPage:
        path = self.pages.get(canonical_url(url))
        if path is None:
            raise FetchError(f"{shown(url)}: there is no such page in {self.folder}")
        try:
            content = read_file(path, follow_link=False)
            moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except (SourceError, OSError) as error:
            raise FetchError(f"{shown(url)}: {error}") from None
        media_type = _MEDIA_TYPES[SUFFIXES[path.suffix.lower()]]
        return FetchedPage(url, url, content, media_type, moment.isoformat(timespec="seconds"))
