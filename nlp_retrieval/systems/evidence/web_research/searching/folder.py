"""Searching a folder that stands for a part of the web, by BM25."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from nlp_retrieval import Bm25sRetriever, SearchableItem, Searcher
from nlp_retrieval.core import READS_FILE, Lock, may_set
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans
from nlp_retrieval.systems.evidence.reading.folder import LeftOut, read_file
from nlp_retrieval.systems.evidence.reading.text_of import read_bytes
from nlp_retrieval.systems.evidence.web_research.searching.base import BaseWebSearch, WebResult
from nlp_retrieval.systems.evidence.web_research.web.page_folder import pages_of
from nlp_retrieval.text import words_of

__all__ = ["FolderSearch"]


class FolderSearch(BaseWebSearch):
    """Searches the pages of a folder by BM25; the counterpart of the fetcher ``folder``, for work without a network.

    The pages are read at first use, into an index in a temporary folder that goes with this component.

    Args:
        folder: holds the pages; see :mod:`nlp_retrieval.systems.evidence.web_research.web.page_folder`.
    """

    name = "folder"
    manifest_may_set = may_set(folder=READS_FILE)

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._searcher: Searcher | None = None
        self._texts: dict[str, str] = {}

    def find(self, query: str, k: int) -> list[WebResult]:
        with self._lock:
            if self._searcher is None:
                self._searcher = self._indexed()
        if not self._texts:
            return []
        return [
            WebResult(result.item.item_id, str(result.item.metadata.get("title", "")), self._best_passage(query, result.item))
            for result in self._searcher.search(query, k)[0]
        ]

    def _indexed(self) -> Searcher:
        searcher, left_out, items = Searcher([Bm25sRetriever()]), LeftOut(), []
        urls: dict[Path, str] = {}
        for url, path in pages_of(self.folder).items():
            if len(urls.get(path, url)) >= len(url):
                urls[path] = url
        for path, url in urls.items():
            try:
                read = read_bytes(read_file(path, follow_link=False), name=str(path))
                self._texts[url] = normal_text(read.text)
            except SourceError as error:
                left_out.add("pages left out of the search, since they cannot be read", str(error))
                continue
            title = read.title or path.stem
            items.append(SearchableItem(item_id=url, content=self._texts[url], metadata={"title": title}))
        left_out.warn()
        if items:
            place = tempfile.mkdtemp(prefix="nlp-retrieval-")
            weakref.finalize(self, _remove, place, os.getpid())
            searcher.index(items, Path(place) / "index")
        return searcher

    def _best_passage(self, query: str, item: SearchableItem) -> str:
        text, wanted = self._texts[item.item_id], set(words_of(query))
        passages = [text[start:end] for start, end in passage_spans(text)]
        return max(passages, key=lambda passage: len(wanted & set(words_of(passage))), default="")


def _remove(place: str, process: int) -> None:
    if os.getpid() == process:  # and not a child that was forked from it
        shutil.rmtree(place, ignore_errors=True)
