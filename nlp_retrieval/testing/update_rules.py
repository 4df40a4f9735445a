"""The rules of live updates: deleted items are gone, added ones are found, and compacting cleans up."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import EngineError
from nlp_retrieval.testing.retriever_base import RetrieverChecks
from nlp_retrieval.testing.samples import FILTERS, TWINS
from nlp_retrieval.testing.verdict import broken, close, ids_of, pairs_of, without_warnings

_DELETED = ("velda", "glacier-2")
_UPDATED = SearchableItem(
    item_id="orrin", content="A trombone quartet played to nobody.", metadata={"country": "Norway", "year": 2020}
)
_ASKED = "trombone quartet"


class UpdateRules(RetrieverChecks):
    """Rules for adding to, updating and deleting from an index in place.

    The index starts with the first items; the others are added, one is updated, two are deleted.
    """

    update_tolerance: ClassVar[float | None] = None
    """Tolerance between scores in an updated index and in one built at once; by default ``tolerance``."""

    first_items: ClassVar[int] = 5
    """Number of items the index starts with; more for an engine that is trained on them only once."""

    @property
    def _apart(self) -> float:
        return self.tolerance if self.update_tolerance is None else self.update_tolerance

    @property
    def left(self) -> list[SearchableItem]:
        """The items that remain after all updates, in the order of their rows."""
        gone = {*_DELETED, _UPDATED.item_id}
        return [*(item for item in self.items if item.item_id not in gone), _UPDATED]

    def updated(self) -> Searcher:
        """The index after all updates, in segments."""
        if "updated" not in self.kept:
            searcher = Searcher([self.make()])
            with without_warnings():
                searcher.index(self.items[: self.first_items], self.folder / "indexes" / "updated")
                searcher.add(self.items[self.first_items :], auto_compact=False)
                searcher.update([_UPDATED], auto_compact=False)
                searcher.delete(_DELETED, auto_compact=False)
            self.kept["updated"] = searcher
        return cast(Searcher, self.kept["updated"])

    def copy_of_updated(self, name: str) -> Searcher:
        """The same in its own folder, which a test may change."""
        folder = self.folder / "indexes" / name
        shutil.copytree(self.updated().opened.path, folder)
        return Searcher([self.make()]).open(folder)

    def test_what_was_deleted_is_not_found(self) -> None:
        for where in (None, *(where for where, _ in FILTERS)):
            for query, found in self._search(self.updated(), where).items():
                if gone := set(ids_of(found)) & {*_DELETED}:
                    broken("a deleted item is never found", self.opened, f"{query!r}, where={where}: {sorted(gone)}")

    def test_what_was_added_is_found(self) -> None:
        there = {item.item_id for item in self.left}
        asked = {query: wanted for query, wanted in self.queries.items() if wanted in there - {_UPDATED.item_id}}
        found = self._search(self.updated())
        for query, wanted in {**asked, _ASKED: _UPDATED.item_id}.items():
            if wanted not in ids_of(found[query]):
                told = f"{query!r}: {ids_of(found[query])}, no {wanted!r}"
                broken("an item is found from when it was added", self.opened, told)

    def test_an_updated_item_is_the_new_one(self) -> None:
        left = {item.item_id: item for item in self.left}
        for query, found in self._search(self.updated()).items():
            for result in found:
                if result.item != left[result.item.item_id]:
                    broken("an updated item comes back as it is now", self.opened, f"{query!r}: {result.item!r}")
                if not self.may_match(query, result.item):
                    broken("an updated item is not found by what it said before", self.opened, f"{query!r}: {result.item!r}")

    def test_no_item_comes_twice_and_none_fails_a_filter(self) -> None:
        whole = self._search(self.updated())
        for where, passes in FILTERS:
            for query, found in self._search(self.updated(), where).items():
                wanted = {result.item.item_id for result in whole[query] if passes(result.item.metadata)}
                if len(set(ids_of(found))) != len(found) or set(ids_of(found)) != wanted:
                    broken(
                        "filters hold over all segments, and an item stands once in a list",
                        self.opened,
                        f"{query!r}, where={where}: {ids_of(found)}, not {sorted(wanted)}",
                    )

    def test_items_that_are_alike_score_alike_in_every_segment(self) -> None:
        rows = {item.item_id: row for row, item in enumerate(self.left)}
        for query, found in self._search(self.updated()).items():
            keys = [(-result.score, rows[result.item.item_id]) for result in found]
            if keys != sorted(keys):
                broken("results of all segments come best first, ties by row", self.opened, f"{query!r}: {pairs_of(found)}")
            twins = [pair for pair in pairs_of(found) if pair[0] in TWINS]
            if twins and (len(twins) < len(TWINS) or not all(close(twins[0][1], one, self._apart) for _, one in twins)):
                broken(
                    "items that differ in nothing but their ids score alike, in whatever segments they are",
                    self.opened,
                    f"{query!r}: {twins} of {list(TWINS)} (tolerance {self._apart:g})",
                )

    def test_a_shorter_list_is_the_beginning_of_a_longer_one_over_segments(self) -> None:
        whole = self._search(self.updated())
        for k in (1, 2, 3):
            for query, found in self._search(self.updated(), k=k).items():
                if ids_of(found) != ids_of(whole[query])[:k]:
                    broken(
                        "the k best of all segments come back",
                        self.opened,
                        f"{query!r}, k={k}: {pairs_of(found)}, of {pairs_of(whole[query])}",
                    )

    def test_a_new_object_finds_the_updated_index(self) -> None:
        wanted = self._search(self.updated())
        found = self._search(Searcher([self.make()]).open(self.updated().opened.path))
        self._compare_all("a new object that opens an updated index answers as the one before", wanted, found, self.tolerance)

    def test_after_compacting_the_index_is_as_if_built_at_once(self) -> None:
        compacted = self.copy_of_updated("compacted")
        at_once = Searcher([self.make()])
        with without_warnings():
            compacted.compact()
            at_once.index(self.left, self.folder / "indexes" / "at once")
        wanted, found = self._search(at_once), self._search(compacted)
        self._compare_all("after compact() an index answers as one built at once", wanted, found, self._apart)

    def test_what_was_deleted_can_be_added_again(self) -> None:
        searcher = self.copy_of_updated("added again")
        again = [item for item in self.items if item.item_id in _DELETED]
        with without_warnings():
            searcher.add(again, auto_compact=False)
        (found,) = self._search(searcher, queries=["Velda Marsh painted"]).values()
        if "velda" not in ids_of(found):
            broken("an item that was deleted can be added again, and is found", self.opened, f"{ids_of(found)}")

    def _search(
        self, searcher: Searcher, where: Mapping[str, Any] | None = None, k: int | None = None, queries: list[str] | None = None
    ) -> dict[str, list[RetrievalResult]]:
        asked = queries or [*self.queries, _ASKED]
        try:
            with without_warnings():
                return dict(zip(asked, searcher.search(asked, k or len(self.items), where), strict=True))
        except EngineError as error:
            broken("an engine keeps to its contract, in every segment", self.opened, str(error))

    def _compare_all(
        self,
        rule: str,
        wanted: dict[str, list[RetrievalResult]],
        found: dict[str, list[RetrievalResult]],
        tolerance: float,
    ) -> None:
        """The same items with the same scores; the order may differ only within the tolerance."""
        for query, one in wanted.items():
            mine, its = dict(pairs_of(one)), dict(pairs_of(found[query]))
            if mine.keys() != its.keys() or not all(close(mine[key], its[key], tolerance) for key in mine):
                broken(
                    rule,
                    self.opened,
                    f"{query!r}: {pairs_of(one)} wanted, {pairs_of(found[query])} found (tolerance {tolerance:g})",
                )
