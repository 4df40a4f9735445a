"""Searched index: the passages that it holds, updating it from the sources, and searching it.

It is derived from the sources. The ids of its items are the SHA-256 of a text and the number of the passage in it, and its
state is read from these items, so that another update repairs any interruption. An index that is damaged, or that was built
for another searcher, is rebuilt.
"""

from __future__ import annotations

import copy
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.core import MANIFEST_FILE, BaseSearcher, Generation, Lock, Where, open_generation, suppress_empty_notes
from nlp_retrieval.errors import IndexDamagedError, IndexMismatchError, IndexMissingError
from nlp_retrieval.systems.evidence.index.store import EvidenceStore, SourceVersion


def place_of(item_id: str) -> tuple[str, int]:
    """Return the SHA-256 of a text, and the number of a passage in it, from the id of the passage."""
    sha256, _, number = item_id.rpartition("::")
    return sha256, int(number) if number.isdecimal() and number.isascii() else -1


class SearchablePassages:
    """The index of a project's passages; a copy of the searcher is opened, so that it can serve several projects."""

    def __init__(self, folder: Path, searcher: BaseSearcher) -> None:
        self.folder = folder
        self.searcher = copy.copy(searcher)
        self._is_open = False
        self._held: tuple[Generation, Counter[str]] | None = None
        self._lock = Lock()

    @property
    def is_built(self) -> bool:
        """Return whether there is an index to search."""
        return (self.folder / MANIFEST_FILE).is_file()

    def held(self) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """Return the number of passages of each text by SHA-256, and kinds of metadata by key; empty without a sound index."""
        with self._lock:
            try:
                if self._held is None or not self._held[0].is_current():
                    generation = open_generation(self.folder)
                    self._held = generation, Counter(place_of(item_id)[0] for item_id in generation.items.ids() if item_id)
                return self._held[1], self._held[0].items.kinds
            except (IndexMissingError, IndexDamagedError):
                self._held = None
                return {}, {}

    def current(self) -> BaseSearcher | None:
        """Return the searcher, opened on the newest generation; None if there is no index."""
        if not self.is_built:
            return None
        with self._lock:
            try:
                if self._is_open:
                    self.searcher.refresh()
                else:
                    self.searcher.open(self.folder)
                    self._is_open = True
            except (IndexMissingError, IndexMismatchError, IndexDamagedError) as error:
                if not self.is_built:  # removed meanwhile
                    return None
                raise type(error)(f"{error}. Or call build_index, which builds it again from the sources.") from error
        return self.searcher

    def find(
        self, queries: Sequence[str], k: int, where: Where | None, wanted: Callable[[RetrievalResult], bool]
    ) -> list[list[RetrievalResult]]:
        """Return the best passages that are still wanted; the index may hold some of sources that have changed since."""
        searcher = self.current()
        answered: list[list[RetrievalResult]] = [[] for _ in queries]
        mask = None if searcher is None else searcher.opened.items.mask(where)
        if searcher is None or (mask is not None and not mask.any()):
            return answered
        depth, left = k, list(range(len(queries)))
        while left:
            with suppress_empty_notes():
                batch = dict(zip(left, searcher.search([queries[number] for number in left], depth, where), strict=True))
            for number, results in batch.items():
                answered[number] = [result for result in results if wanted(result)][:k]
            left = [number for number, results in batch.items() if len(answered[number]) < k and len(results) >= depth]
            depth *= 4
        return answered

    def bring_up(self, store: EvidenceStore) -> None:
        """Make the index hold the passages of all live texts, and no others; by one process at a time."""
        live = {sha256: text for sha256, text in store.texts().items() if text.newest}
        if not live:
            if self.is_built:  # readers that have opened it keep it
                (self.folder / MANIFEST_FILE).unlink()
                shutil.rmtree(self.folder, ignore_errors=True)
            return
        spans = {sha256: own for sha256, own in store.spans().items() if sha256 in live}
        searcher, stored = None, dict[str, dict[str, Any]]()
        with suppress(IndexMissingError, IndexMismatchError, IndexDamagedError):
            if (held := self.current()) is not None:
                stored = {item.item_id: item.metadata for item in held.opened.items.stream_live()}
                searcher = held
        if searcher is None:
            self.searcher.index(_items(store, live, spans), self.folder, replace=True)
            self._is_open = True
            return
        wanted = {
            f"{sha256}::{number}": _columns(sha256, live[sha256], span)
            for sha256, own in spans.items()
            for number, span in enumerate(own)
        }
        changed = {place_of(item_id)[0] for item_id, columns in wanted.items() if stored.get(item_id) != columns}
        if changed:
            searcher.update(_items(store, live, {sha256: own for sha256, own in spans.items() if sha256 in changed}))
        if unwanted := [item_id for item_id in stored if item_id not in wanted]:
            searcher.delete(unwanted)


def _items(
    store: EvidenceStore, texts: Mapping[str, SourceVersion], spans: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[SearchableItem]:
    for sha256, own in spans.items():
        stored = store.stored(sha256)
        if stored is not None:  # else it was deleted meanwhile
            for number, (start, end) in enumerate(own):
                columns = _columns(sha256, texts[sha256], (start, end))
                yield SearchableItem.trusted(f"{sha256}::{number}", stored.content[start:end], columns)


def _columns(sha256: str, text: SourceVersion, span: tuple[int, int]) -> dict[str, Any]:
    """Return the metadata of a passage, for filters; an empty title or date has no column value."""
    columns = {
        "source": sha256,
        "url": text.canonical,
        "title": text.title,
        "quality": text.quality,
        "fetch_date": text.fetch_date,
        "start": span[0],
        "end": span[1],
    }
    return {key: value for key, value in columns.items() if value != ""}
