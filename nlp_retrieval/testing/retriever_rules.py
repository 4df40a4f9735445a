"""All rules of retrievers: for results, filters, the index, and live updates."""

from __future__ import annotations

import io
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.index.generation import open_generation, verify_index
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import EngineError, RetrievalWarning
from nlp_retrieval.testing.component_rules import BatchRules
from nlp_retrieval.testing.verdict import (
    FILTERS,
    ITEMS,
    QUERIES,
    SILENT,
    STOP_WORDS_ALONE,
    TWINS,
    UNKNOWN,
    WITHOUT_TEXT,
    broken,
    close,
    difference,
    ids_of,
    pairs_of,
    shares_a_word,
    shown,
    without_warnings,
)


def template(retriever: BaseRetriever, name: str) -> Callable[..., Any]:
    """Return a retriever's ``index`` or ``retrieve``: the base's, which adapts them, if it defines these two alone."""
    return partial(getattr(BaseRetriever if retriever.is_adapted else type(retriever), name), retriever)


# Shared base of the rules of retrievers: the corpus, an index of it built once per class, and searching.


Lists = list[list[RetrievalResult]]


class RetrieverChecks(BatchRules):
    """Base of the rules of retrievers. The kit has a corpus and queries; the author may add some."""

    component: ClassVar[type[BaseRetriever]]

    def make(self) -> BaseRetriever:
        return self.component()

    def extra_items(self) -> Sequence[SearchableItem]:
        """Return additional items, indexed after the kit's own."""
        return ()

    def extra_queries(self) -> Mapping[str, str | None]:
        """Return additional queries, each with an item id that must be found if all items are requested, or None."""
        return {}

    def may_match(self, query: str, item: SearchableItem) -> bool:
        """Return whether an item may be found for a query; by default, if they share a word (the first four letters count).

        Engines that rank everything, like dense ones, return True. A hit that may not match is padding.
        """
        return shares_a_word(query, item)

    @property
    def items(self) -> list[SearchableItem]:
        """All items, by row."""
        return [*ITEMS, *self.extra_items()]

    @property
    def queries(self) -> dict[str, str | None]:
        """All queries, with the item that each must find."""
        return {**QUERIES, **self.extra_queries()}

    def index_into(self, name: str, items: Sequence[SearchableItem] | None = None) -> Path:
        """Index items (by default all) into a folder of this name, once per class."""
        if name not in self.kept:
            path = self.folder / "indexes" / name
            with without_warnings():
                template(self.make(), "index")(self.items if items is None else items, path)
            self.kept[name] = path
        return cast(Path, self.kept[name])

    @property
    def opened(self) -> BaseRetriever:
        """One retriever for all tests of the class, with its index kept open."""
        return cast(BaseRetriever, self.shared)

    @property
    def batch(self) -> list[list[str]]:
        """Every query alone, without sub-queries."""
        return [[query] for query in self.queries]

    def answers(self, batch: list[list[str]]) -> Lists:
        return self.ask(batch)

    def apart(self, first: list[RetrievalResult], other: list[RetrievalResult], tolerance: float) -> str | None:
        return difference(first, other, tolerance)

    def ask(
        self,
        processed: Sequence[Sequence[str]],
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        retriever: BaseRetriever | None = None,
    ) -> Lists:
        """Search the kit's index; by default for as many results as there are items."""
        path = self.index_into("main")
        asking = retriever or self.opened
        try:
            with without_warnings():
                return cast(Lists, template(asking, "retrieve")(processed, path, k or len(self.items), where))
        except EngineError as error:
            broken("an engine keeps to its contract", asking, str(error))

    def ask_each(self, k: int | None = None, where: Mapping[str, Any] | None = None) -> dict[str, list[RetrievalResult]]:
        """Search for every query, all in one batch."""
        return dict(zip(self.queries, self.ask([[query] for query in self.queries], k, where), strict=True))

    def ask_warned(self, processed: Sequence[Sequence[str]]) -> tuple[Lists, list[str]]:
        """Search, and return the lists and the warnings."""
        path = self.index_into("main")
        self.ask([])  # opening may warn too
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            actual = template(self.opened, "retrieve")(processed, path, len(self.items))
        return actual, [str(first.message) for first in caught if issubclass(first.category, RetrievalWarning)]

    def searching(self) -> BaseRetriever:
        """A copy of the retriever with the index open: the object for :meth:`search_batch`."""
        if "searching" not in self.kept:
            generation = open_generation(self.index_into("main"))
            with without_warnings():
                self.kept["searching"] = self.make().open(generation)
        return cast(BaseRetriever, self.kept["searching"])


# The rules of live updates: deleted items are gone, added ones are found, and compacting cleans up.


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
        deleted = {*_DELETED, _UPDATED.item_id}
        return [*(item for item in self.items if item.item_id not in deleted), _UPDATED]

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
        return self._open(folder)

    def test_what_was_deleted_is_gone_what_was_added_found_and_what_was_updated_new(self) -> None:
        items = {item.item_id: item for item in self.left}
        found = self._search(self.updated())
        for query, wanted in {**self.queries, _ASKED: _UPDATED.item_id}.items():
            if wanted in items and (wanted != _UPDATED.item_id or query == _ASKED) and wanted not in ids_of(found[query]):
                message = f"{query!r}: {ids_of(found[query])}, no {wanted!r}"
                broken("an item is found from when it was added", self.opened, message)
        for query, actual in found.items():
            for result in actual:
                if result.item != items.get(result.item.item_id):
                    broken(
                        "a deleted item is never found, an updated one as it is now", self.opened, f"{query!r}: {result.item!r}"
                    )
                if not self.may_match(query, result.item):
                    broken("an updated item is not found by what it said before", self.opened, f"{query!r}: {result.item!r}")

    def test_no_item_comes_twice_and_none_fails_a_filter(self) -> None:
        whole = self._search(self.updated())
        for where, passes in FILTERS:
            for query, actual in self._search(self.updated(), where).items():
                wanted = {result.item.item_id for result in whole[query] if passes(result.item.metadata)}
                if len(set(ids_of(actual))) != len(actual) or set(ids_of(actual)) != wanted:
                    message = f"{query!r}, where={where}: {ids_of(actual)}, not {sorted(wanted)}"
                    broken("filters hold over all segments, and a list holds an item once", self.opened, message)

    def test_items_that_are_alike_score_alike_in_every_segment(self) -> None:
        rows, first_two = {item.item_id: row for row, item in enumerate(self.left)}, self._search(self.updated(), k=2)
        for query, actual in self._search(self.updated()).items():
            keys = [(-result.score, rows[result.item.item_id]) for result in actual]
            if keys != sorted(keys):
                broken("results of all segments come best first, ties by row", self.opened, f"{query!r}: {pairs_of(actual)}")
            if ids_of(first_two[query]) != ids_of(actual)[:2]:
                broken(
                    "the k best of all segments come back", self.opened, f"{query!r}: {first_two[query]} of {pairs_of(actual)}"
                )
            twins = [pair for pair in pairs_of(actual) if pair[0] in TWINS]
            if twins and (len(twins) < len(TWINS) or not all(close(twins[0][1], first, self._apart) for _, first in twins)):
                broken(
                    "items that differ only in their ids get equal scores, in whatever segments they are",
                    self.opened,
                    f"{query!r}: {twins} of {list(TWINS)} (tolerance {self._apart:g})",
                )

    def test_a_new_object_finds_the_updated_index(self) -> None:
        wanted = self._search(self.updated())
        actual = self._search(self._open(self.updated().opened.path))
        self._compare_all("a new object that opens an updated index answers as the one before", wanted, actual, self.tolerance)

    def test_after_compacting_the_index_is_as_if_built_at_once(self) -> None:
        compacted = self.copy_of_updated("compacted")
        at_once = Searcher([self.make()])
        with without_warnings():
            compacted.compact()
            at_once.index(self.left, self.folder / "indexes" / "at once")
        wanted, actual = self._search(at_once), self._search(compacted)
        self._compare_all("after compact() an index answers as one built at once", wanted, actual, self._apart)

    def test_what_was_deleted_can_be_added_again(self) -> None:
        searcher = self.copy_of_updated("added again")
        deleted = [item for item in self.items if item.item_id in _DELETED]
        with without_warnings():
            searcher.add(deleted, auto_compact=False)
        (actual,) = self._search(searcher, queries=["Velda Marsh painted"]).values()
        if "velda" not in ids_of(actual):
            broken("an item that was deleted can be added again, and is found", self.opened, f"{ids_of(actual)}")

    def _open(self, path: Path) -> Searcher:
        with without_warnings():
            return Searcher([self.make()]).open(path)

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
        actual: dict[str, list[RetrievalResult]],
        tolerance: float,
    ) -> None:
        """The same items with the same scores; the order may differ only within the tolerance."""
        for query, first in wanted.items():
            mine, its = dict(pairs_of(first)), dict(pairs_of(actual[query]))
            if mine.keys() != its.keys() or not all(close(mine[key], its[key], tolerance) for key in mine):
                broken(
                    rule,
                    self.opened,
                    f"{query!r}: {pairs_of(first)} wanted, {pairs_of(actual[query])} found (tolerance {tolerance:g})",
                )


# Rules for the results of a retriever: their number, order, and reproducibility.


class AnswerRules(RetrieverChecks):
    """Rules of the lists that a retriever returns."""

    def test_a_list_holds_at_most_k_items_once_each_best_first_and_ties_by_row(self) -> None:
        rows = {item.item_id: row for row, item in enumerate(self.items)}
        for k in (1, 3, len(self.items)):
            for query, actual in self.ask_each(k).items():
                if len(actual) > k or len(set(ids_of(actual))) != len(actual):
                    broken("at most k results come back, each item once", self.opened, f"{query!r}, k={k}: {pairs_of(actual)}")
                keys = [(-result.score, rows[result.item.item_id]) for result in actual]
                if keys != sorted(keys):
                    broken("results come best first, ties by row", self.opened, f"{query!r}: {pairs_of(actual)}; rows {rows}")

    def test_items_that_are_alike_come_together_and_by_row(self) -> None:
        for query, actual in self.ask_each().items():
            twins = [item_id for item_id in ids_of(actual) if item_id in TWINS]
            scores = {result.score for result in actual if result.item.item_id in TWINS}
            if twins and (twins != list(TWINS) or len(scores) > 1):
                broken(
                    "items that differ only in their ids get equal scores, and come in the order of their rows",
                    self.opened,
                    f"{query!r}: {[pair for pair in pairs_of(actual) if pair[0] in TWINS]}; indexed as {list(TWINS)}",
                )

    def test_a_shorter_list_is_the_beginning_of_a_longer_one(self) -> None:
        whole = self.ask_each()
        for k in (*range(1, 7), len(self.items) * 3 + 7):
            for query, actual in self.ask_each(k).items():
                if ids_of(actual) != ids_of(whole[query])[:k]:
                    broken(
                        "the k best come back, ties broken by row at the cut too",
                        self.opened,
                        f"{query!r}, k={k}: {pairs_of(actual)}; the whole list begins {pairs_of(whole[query][: k + 3])}",
                    )

    def test_what_is_found_matches_says_something_and_is_as_it_was_indexed(self) -> None:
        by_id = {item.item_id: item for item in self.items}
        asked = [*self.queries, UNKNOWN]
        for query, actual in zip(asked, self.ask([[query] for query in asked]), strict=True):
            for result in actual:
                item = by_id[result.item.item_id]
                if not self.may_match(query, item) or item.item_id in WITHOUT_TEXT:
                    rule = "a list is not padded with items that do not match (may_match says which may), or say nothing"
                    broken(rule, self.opened, f"{query!r}: {item.item_id!r}")
                if result.item != item:
                    broken(
                        "an item comes back as it was indexed, in any script", self.opened, f"{query!r}: {shown(result.item)}"
                    )

    def test_what_matches_is_found(self) -> None:
        for query, wanted in self.queries.items():
            if wanted is not None and wanted not in ids_of(actual := self.ask_each()[query]):
                broken(
                    "an item that holds the words of a query is found",
                    self.opened,
                    f"{query!r}: {ids_of(actual)}, no {wanted!r}",
                )

    def test_queries_that_say_nothing_get_empty_lists_and_one_warning(self) -> None:
        speaking = list(self.queries)[:2]
        processed = [[speaking[0]], *([query] for query in SILENT), [], [speaking[1]]]
        actual, message = self.ask_warned(processed)
        for subqueries, results in zip(processed, actual, strict=True):
            if results and subqueries and subqueries[0] in SILENT:
                broken(
                    "an empty query gets an empty list",
                    self.opened,
                    f"{subqueries}: {pairs_of(results)}",
                )
        n_empty = sum(not results for results in actual)
        if len(message) != 1 or f"{n_empty} of {len(processed)}" not in message[0]:
            broken(
                "empty lists are counted in one warning per call",
                self.opened,
                f"{n_empty} of {len(processed)} lists are empty; warned of: {message}",
            )
        if ids_of(actual[0]) != ids_of(self.ask([[speaking[0]]])[0]):
            broken("queries without content change no other list", self.opened, f"{speaking[0]!r}: {ids_of(actual[0])}")

    def test_a_query_of_stop_words_alone_is_searched_or_the_setting_that_keeps_them_named(self) -> None:
        for query in STOP_WORDS_ALONE:
            (actual,), message = self.ask_warned([[query]])
            note = self.searching().ignored(query)
            if not actual and (note is None or len(message) != 1 or note not in message[0]):
                broken(
                    "a query of stop words alone is searched, or the warning says by ignored() which setting keeps them",
                    self.opened,
                    f"{query!r}: nothing; ignored() says {note!r}; warned of: {message}",
                )

    def test_a_sub_query_that_stands_twice_counts_once(self) -> None:
        first, second, *_ = self.queries
        for single, repeated in (([first], [first, first]), ([first, second], [first, first, second]), ([first], [first, ""])):
            (left,), (other,) = self.ask([single]), self.ask([repeated])
            if ids_of(left) != ids_of(other):
                broken(
                    "a sub-query that is repeated, or says nothing, changes no answer",
                    self.opened,
                    f"{single}: {ids_of(left)}; {repeated}: {ids_of(other)}",
                )

    def test_the_lists_of_sub_queries_are_merged(self) -> None:
        first, second, *_ = self.queries
        (left,), (other,), (both,) = self.ask([[first]]), self.ask([[second]]), self.ask([[first, second]])
        if set(ids_of(both)) != set(ids_of(left)) | set(ids_of(other)) or len(set(ids_of(both))) != len(both):
            broken(
                "a query finds what its sub-queries find, each item once",
                self.opened,
                f"{first!r}: {ids_of(left)}; {second!r}: {ids_of(other)}; both: {ids_of(both)}",
            )

    def test_signals_tell_score_and_rank(self) -> None:
        name = self.opened.name
        for query, actual in self.ask_each().items():
            for rank, result in enumerate(actual, 1):
                if result.signals.get(f"{name}.score") != result.score or result.signals.get(f"{name}.rank") != rank:
                    broken(
                        f"the signals {name}.score and {name}.rank say where a result stands",
                        self.opened,
                        f"{query!r}, rank {rank}, score {result.score!r}: {shown(result.signals)}",
                    )


# Rules for a retriever's index: built once, found again, plain files, and independent of search-only parameters.

_CODE = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth")
_PICKLE_PROTOCOLS = range(2, 6)


class IndexRules(RetrieverChecks):
    """Rules for building, keeping and opening an index."""

    def test_an_index_is_found_again_by_a_new_object(self) -> None:
        fresh = self.make()
        actual = self.ask(self.batch, retriever=fresh)
        self.compare("a new object that opens the index answers as the one before", self.batch, self.whole, actual)

    def test_indexing_twice_and_searching_change_no_file_and_the_index_verifies(self) -> None:
        path = self.index_into("main")
        before = _state(path)
        with without_warnings():
            built = template(self.make(), "index")(self.items, path).built
        if not built:
            self.ask_each()
        after = _state(path)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if built or changed:
            broken("indexing again, and searching, build and change nothing", self.opened, f"built {built}, changed {changed}")
        if damaged := verify_index(path):
            broken("the files of an index are what their checksums say", self.opened, "; ".join(damaged))

    def test_two_builds_of_the_same_items_answer_alike(self) -> None:
        path = self.index_into("second build")
        with without_warnings():
            actual = template(self.make(), "retrieve")(self.batch, path, len(self.items))
        self.compare("two indexes of the same items give the same answers", self.batch, self.whole, actual)

    def test_the_index_is_a_flat_folder_of_files_that_run_no_code(self) -> None:
        made = self.make()
        items, folder = self.folder / "items", self.folder / "built"
        items.mkdir()
        folder.mkdir()
        write_items(self.items, items)
        with without_warnings():
            made.build(ItemTable(items / ITEMS_FILE), folder)
        if not any(folder.iterdir()):
            broken("build writes into the folder that it is given", made, "the folder is empty")
        for path in folder.iterdir():
            if path.is_symlink() or not path.is_file():
                broken("an index is a flat folder of plain files", made, f"{path.name!r} is a folder, a link or a device")
            if reason := _runs_code(path.name, path.read_bytes()):
                broken(
                    "no file of an index can run code when it is read: no pickles, no object arrays",
                    made,
                    f"{path.name!r} {reason}",
                )

    def test_a_corpus_of_one_item_or_without_text_is_a_corpus(self) -> None:
        silent = [SearchableItem(item_id=f"silent {number}", content=text) for number, text in enumerate(("", " \n", "?!"))]
        query, wanted = next(iter(self.queries.items()))
        for name, items, expected in (("one item", self.items[:1], [wanted]), ("silent items", silent, [])):
            path = self.index_into(name, items)
            with without_warnings():
                (actual,) = template(self.make(), "retrieve")([[query]], path, 5)
            if ids_of(actual) != expected:
                broken("a corpus of one item, or without any text, is indexed", self.opened, f"{name}: {ids_of(actual)}")


def _state(path: Path) -> dict[str, tuple[int, int, int]]:
    """Return a state that shows whether a file was rewritten; the store's own lock may change."""
    files = ((file, file.stat()) for file in path.rglob("*") if file.is_file() and not file.name.startswith(".lock"))
    return {str(file.relative_to(path)): (actual.st_ino, actual.st_size, actual.st_mtime_ns) for file, actual in files}


def _runs_code(name: str, content: bytes) -> str | None:
    """Return why a file could run code when it is read, or None."""
    if name.endswith(_CODE):
        return "is named as a pickle"
    if len(content) > 2 and content[0] == 0x80 and content[1] in _PICKLE_PROTOCOLS and content.endswith(b"."):
        return f"is a pickle of protocol {content[1]}"
    if content.startswith(b"\x93NUMPY"):
        return _of_array(content)
    return next(filter(None, (_runs_code(inner, data) for inner, data in _unzipped(content))), None)


def _of_array(content: bytes) -> str | None:
    try:
        np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except ValueError as error:
        return f"is an array of objects, or none: {error}"
    return None


def _unzipped(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())


# Rules for filters: every result passes the filter, and k results are returned if k items match.


class FilterRules(RetrieverChecks):
    """Rules for filters and for the masks that an engine receives."""

    order_depends_on_filter: ClassVar[bool] = False
    """Return whether a filter may change the order of the items that pass it: True if scores depend on the other candidates."""

    def test_k_results_come_back_wherever_k_match(self) -> None:
        whole = self.ask_each()
        for where, passes in FILTERS:
            for k in (1, 2, 3, len(self.items)):
                for query, actual in self.ask_each(k, where).items():
                    wanted = [result.item.item_id for result in whole[query] if passes(result.item.metadata)]
                    message = f"{query!r}, k={k}, where={dict(where)}: {pairs_of(actual)}; without a filter, {wanted} pass it"
                    if len(actual) != min(k, len(wanted)) or not set(ids_of(actual)) <= set(wanted):
                        broken("k results come back wherever k items match query and filter", self.opened, message)
                    if not self.order_depends_on_filter and ids_of(actual) != wanted[:k]:
                        broken("a filter changes nothing in the order of what passes it", self.opened, message)

    def test_the_engine_returns_only_rows_that_the_mask_allows(self) -> None:
        n, queries = len(self.items), list(self.queries)
        draw = np.random.default_rng(0)
        masks: list[Mask] = [np.zeros(n, np.bool_), np.arange(n) == n - 1, np.arange(n) % 2 == 0, draw.random(n) < 0.5]
        for allowed in masks:
            for k in (1, n):
                hits = self.searching().search_batch(queries, k, allowed.copy())
                self._check_hits(hits, k)
                if not allowed[hits.rows].all():
                    rows = np.unique(hits.rows[~allowed[hits.rows]]).tolist()
                    allows = np.flatnonzero(allowed).tolist()
                    broken(
                        "search_batch returns only rows that are allowed", self.opened, f"k={k}: rows {rows}; allowed: {allows}"
                    )

    def test_a_mask_of_all_rows_changes_nothing(self) -> None:
        n, queries = len(self.items), list(self.queries)
        for k in (2, n):
            without = self.searching().search_batch(queries, k, None)
            everything = self.searching().search_batch(queries, k, np.ones(n, np.bool_))
            self._check_hits(without, k)
            if _lists(without) != _lists(everything):
                broken(
                    "a mask that allows every row changes nothing",
                    self.opened,
                    f"k={k}: {shown(_lists(without))} without, {shown(_lists(everything))} with",
                )

    def _check_hits(self, hits: Hits, k: int) -> None:
        counts = np.diff(hits.offsets)
        if len(counts) != len(self.queries) or (len(counts) and counts.max() > k):
            broken(
                "search_batch returns one list per query, of at most k rows",
                self.opened,
                f"{len(self.queries)} queries, k={k}: lists of {counts.tolist()}",
            )


def _lists(hits: Hits) -> list[list[int]]:
    """The rows of each list, best first and ties by row: the order within a list is determined by the framework."""
    bounds = zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)
    return [hits.rows[a:b][np.lexsort((hits.rows[a:b], -hits.scores[a:b]))].tolist() for a, b in bounds]


class RetrieverRules(AnswerRules, FilterRules, IndexRules, UpdateRules):
    """All rules of retrievers.

    An author names the class, and overrides the defaults that do not fit: ``make`` (the configuration), ``may_match`` (possible
    hits of a query), ``other_values`` (other values of parameters whose type hint suggests none), ``tolerance`` and
    ``order_depends_on_filter``; ``extra_items`` and ``extra_queries`` add to the kit's own.
    """
