"""All rules of retrievers: for results, filters, the index, and live updates."""

from __future__ import annotations

import io
import shutil
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
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


class RetrieverChecks(BatchRules[BaseRetriever]):
    """Base of the rules of retrievers."""

    def may_match(self, query: str, item: SearchableItem) -> bool:
        """Return whether an item may be found for a query; by default, if they share a word (the first four letters count).

        Engines that rank everything, like dense ones, return True. A hit that may not match is padding.
        """
        return shares_a_word(query, item)

    def index_into(self, name: str, items: Sequence[SearchableItem] | None = None) -> Path:
        """Index items (by default all) into a folder of this name, once per class."""
        if name not in self.kept:
            path = self.folder / "indexes" / name
            with without_warnings():
                template(self.make(), "index")(ITEMS if items is None else items, path)
            self.kept[name] = path
        return cast(Path, self.kept[name])

    @property
    def batch(self) -> list[list[str]]:
        """Every query alone, without sub-queries."""
        return [[query] for query in QUERIES]

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
        asking = retriever or self.shared
        try:
            with without_warnings():
                return cast(Lists, template(asking, "retrieve")(processed, path, k or len(ITEMS), where))
        except EngineError as error:
            broken("an engine keeps to its contract", asking, str(error))

    def ask_each(self, k: int | None = None, where: Mapping[str, Any] | None = None) -> dict[str, list[RetrievalResult]]:
        """Search for every query, all in one batch."""
        return dict(zip(QUERIES, self.ask([[query] for query in QUERIES], k, where), strict=True))

    def ask_warned(self, processed: Sequence[Sequence[str]]) -> tuple[Lists, list[str]]:
        """Search, and return the lists and the warnings."""
        path = self.index_into("main")
        self.ask([])  # opening may warn too
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            actual = template(self.shared, "retrieve")(processed, path, len(ITEMS))
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
        return [*(item for item in ITEMS if item.item_id not in deleted), _UPDATED]

    def updated(self) -> Searcher:
        """The index after all updates, in segments."""
        if "updated" not in self.kept:
            searcher = Searcher([self.make()])
            with without_warnings():
                searcher.index(ITEMS[: self.first_items], self.folder / "indexes" / "updated")
                searcher.add(ITEMS[self.first_items :], auto_compact=False)
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
        wanted = {**QUERIES, _ASKED: _UPDATED.item_id}
        for query, actual in self._search(self.updated()).items():
            item_id, seen = wanted[query], f"{query!r}: {ids_of(actual)}, wanted {wanted[query]!r}"
            is_left = item_id in items and (item_id != _UPDATED.item_id or query == _ASKED)
            self.require(not is_left or item_id in ids_of(actual), "an item is found from when it was added", seen)
            for result in actual:
                seen, is_new = f"{query!r}: {result.item!r}", result.item == items.get(result.item.item_id)
                self.require(is_new, "a deleted item is never found, an updated one as it is now", seen)
                is_match = self.may_match(query, result.item)
                self.require(is_match, "an updated item is not found by what it said before", seen)

    def test_no_item_comes_twice_and_none_fails_a_filter(self) -> None:
        whole = self._search(self.updated())
        for where, passes in FILTERS:
            for query, actual in self._search(self.updated(), where).items():
                wanted = sorted(result.item.item_id for result in whole[query] if passes(result.item.metadata))
                seen = f"{query!r}, where={where}: {ids_of(actual)}, not {wanted}"
                rule = "filters hold over all segments, and a list holds an item once"
                self.require(sorted(ids_of(actual)) == wanted, rule, seen)

    def test_items_that_are_alike_score_alike_in_every_segment(self) -> None:
        rows, first_two = {item.item_id: row for row, item in enumerate(self.left)}, self._search(self.updated(), k=2)
        for query, actual in self._search(self.updated()).items():
            keys, seen = [(-result.score, rows[result.item.item_id]) for result in actual], f"{query!r}: {pairs_of(actual)}"
            self.require(keys == sorted(keys), "results of all segments come best first, ties by row", seen)
            first = ids_of(first_two[query])
            self.require(first == ids_of(actual)[:2], "the k best of all segments come back", f"{first} of {seen}")
            twins = [score for item_id, score in pairs_of(actual) if item_id in TWINS]
            are_close = all(close(twins[0], score, self._apart) for score in twins)
            rule = "items that differ only in their ids get equal scores, in whatever segments they are"
            self.require(len(twins) in (0, len(TWINS)) and are_close, rule, f"{seen} (tolerance {self._apart:g})")

    def test_a_new_object_finds_the_updated_index(self) -> None:
        wanted = self._search(self.updated())
        actual = self._search(self._open(self.updated().opened.path))
        rule = "a new object that opens an updated index answers as the one before"
        self.compare(rule, list(wanted), list(wanted.values()), list(actual.values()))

    def test_after_compacting_the_index_is_as_if_built_at_once(self) -> None:
        compacted = self.copy_of_updated("compacted")
        at_once = Searcher([self.make()])
        with without_warnings():
            compacted.compact()
            at_once.index(self.left, self.folder / "indexes" / "at once")
        wanted, actual = self._search(at_once), self._search(compacted)
        rule = "after compact() an index answers as one built at once"
        self.compare(rule, list(wanted), list(wanted.values()), list(actual.values()), self._apart)

    def test_what_was_deleted_can_be_added_again(self) -> None:
        searcher = self.copy_of_updated("added again")
        deleted = [item for item in ITEMS if item.item_id in _DELETED]
        with without_warnings():
            searcher.add(deleted, auto_compact=False)
        (actual,) = self._search(searcher, queries=["Velda Marsh painted"]).values()
        rule = "an item that was deleted can be added again, and is found"
        self.require("velda" in ids_of(actual), rule, ids_of(actual))

    def _open(self, path: Path) -> Searcher:
        with without_warnings():
            return Searcher([self.make()]).open(path)

    def _search(
        self, searcher: Searcher, where: Mapping[str, Any] | None = None, k: int | None = None, queries: list[str] | None = None
    ) -> dict[str, list[RetrievalResult]]:
        asked = queries or [*QUERIES, _ASKED]
        try:
            with without_warnings():
                return dict(zip(asked, searcher.search(asked, k or len(ITEMS), where), strict=True))
        except EngineError as error:
            broken("an engine keeps to its contract, in every segment", self.shared, str(error))


# Rules for the results of a retriever: their number, order, and reproducibility.


class AnswerRules(RetrieverChecks):
    """Rules of the lists that a retriever returns."""

    def test_a_list_holds_at_most_k_items_once_each_best_first_and_ties_by_row(self) -> None:
        rows, whole = {item.item_id: row for row, item in enumerate(ITEMS)}, self.ask_each()
        for k in (*range(1, 7), len(ITEMS), len(ITEMS) * 3 + 7):
            for query, actual in self.ask_each(k).items():
                seen = f"{query!r}, k={k}: {pairs_of(actual)}; the whole list begins {pairs_of(whole[query][: k + 3])}"
                is_short = len(actual) <= k and len(set(ids_of(actual))) == len(actual)
                self.require(is_short, "at most k results come back, each item once", seen)
                keys = [(-result.score, rows[result.item.item_id]) for result in actual]
                self.require(keys == sorted(keys), "results come best first, ties by row", seen)
                is_beginning = ids_of(actual) == ids_of(whole[query])[:k]
                self.require(is_beginning, "the k best come back, ties broken by row at the cut too", seen)

    def test_items_that_are_alike_come_together_and_by_row(self) -> None:
        for query, actual in self.ask_each().items():
            twins = [pair for pair in pairs_of(actual) if pair[0] in TWINS]
            is_row_order = [item_id for item_id, _ in twins] == list(TWINS) and len({score for _, score in twins}) == 1
            rule = "items that differ only in their ids get equal scores, and come in the order of their rows"
            self.require(not twins or is_row_order, rule, f"{query!r}: {twins}; indexed as {list(TWINS)}")

    def test_what_is_found_matches_says_something_and_is_as_it_was_indexed(self) -> None:
        by_id = {item.item_id: item for item in ITEMS}
        asked = {**QUERIES, UNKNOWN: None}
        for (query, wanted), actual in zip(asked.items(), self.ask([[query] for query in asked]), strict=True):
            is_found = wanted is None or wanted in ids_of(actual)
            rule = "an item that holds the words of a query is found"
            self.require(is_found, rule, f"{query!r}: {ids_of(actual)}, no {wanted!r}")
            for result in actual:
                item, seen = by_id[result.item.item_id], f"{query!r}: {shown(result.item)}"
                rule = "a list is not padded with items that do not match (may_match says which may), or say nothing"
                self.require(self.may_match(query, item) and item.item_id not in WITHOUT_TEXT, rule, seen)
                self.require(result.item == item, "an item comes back as it was indexed, in any script", seen)

    def test_queries_that_say_nothing_get_empty_lists_and_one_warning(self) -> None:
        speaking = list(QUERIES)[:2]
        processed = [[speaking[0]], *([query] for query in SILENT), [], [speaking[1]]]
        lists, warned = self.ask_warned(processed)
        seen = f"{[len(results) for results in lists]} for {processed}; warned of: {warned}"
        self.require(not any(lists[1:-1]), "an empty query gets an empty list", seen)
        n_empty = sum(not results for results in lists)
        is_counted = len(warned) == 1 and f"{n_empty} of {len(processed)}" in warned[0]
        self.require(is_counted, "empty lists are counted in one warning per call", seen)
        is_same = ids_of(lists[0]) == ids_of(self.ask([[speaking[0]]])[0])
        self.require(is_same, "queries without content change no other list", seen)

    def test_a_query_of_stop_words_alone_is_searched_or_the_setting_that_keeps_them_named(self) -> None:
        for query in STOP_WORDS_ALONE:
            (actual,), warned = self.ask_warned([[query]])
            note = self.searching().ignored(query)
            is_told = note is not None and len(warned) == 1 and note in warned[0]
            rule = "a query of stop words alone is searched, or the warning says by ignored() which setting keeps them"
            self.require(actual or is_told, rule, f"{query!r}: nothing; ignored() says {note!r}; warned of: {warned}")

    def test_the_lists_of_sub_queries_are_merged_and_a_repeated_one_counts_once(self) -> None:
        first, second, *_ = QUERIES
        left, other, both, repeated, silent = self.ask(
            [[first], [second], [first, second], [first, first, second], [first, ""]]
        )
        seen = f"{first!r}: {ids_of(left)}; {second!r}: {ids_of(other)}; both: {ids_of(both)}; repeated: {ids_of(repeated)}"
        is_union = sorted(ids_of(both)) == sorted({*ids_of(left), *ids_of(other)})
        self.require(is_union, "a query finds what its sub-queries find, each item once", seen)
        is_same = ids_of(repeated) == ids_of(both) and ids_of(silent) == ids_of(left)
        self.require(is_same, "a sub-query that is repeated, or says nothing, changes no answer", seen)

    def test_signals_tell_score_and_rank(self) -> None:
        name = self.shared.name
        for query, actual in self.ask_each().items():
            for rank, result in enumerate(actual, 1):
                is_told = (result.signals.get(f"{name}.score"), result.signals.get(f"{name}.rank")) == (result.score, rank)
                rule = f"the signals {name}.score and {name}.rank say where a result stands"
                self.require(is_told, rule, f"{query!r}, rank {rank}, score {result.score!r}: {shown(result.signals)}")


# Rules for a retriever's index: built once, found again, plain files, and independent of search-only parameters.

_PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth")
_PICKLE_PROTOCOLS = (b"\x02", b"\x03", b"\x04", b"\x05")


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
            built = template(self.make(), "index")(ITEMS, path).built
        if not built:
            self.ask_each()
        after = _state(path)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        rule = "indexing again, and searching, build and change nothing"
        self.require(not built and not changed, rule, f"built {built}, changed {changed}")
        damaged = verify_index(path)
        self.require(not damaged, "the files of an index are what their checksums say", "; ".join(damaged))

    def test_two_builds_of_the_same_items_answer_alike(self) -> None:
        path = self.index_into("second build")
        with without_warnings():
            actual = template(self.make(), "retrieve")(self.batch, path, len(ITEMS))
        self.compare("two indexes of the same items give the same answers", self.batch, self.whole, actual)

    def test_the_index_is_a_flat_folder_of_files_that_run_no_code(self) -> None:
        made = self.make()
        items, folder = self.folder / "items", self.folder / "built"
        items.mkdir()
        folder.mkdir()
        write_items(ITEMS, items)
        with without_warnings():
            made.build(ItemTable(items / ITEMS_FILE), folder)
        self.require(any(folder.iterdir()), "build writes into the folder that it is given", "the folder is empty")
        for path in folder.iterdir():
            is_plain = path.is_file() and not path.is_symlink()
            self.require(is_plain, "an index is a flat folder of plain files", f"{path.name!r} is a folder, a link or a device")
            rule = "no file of an index is a pickle or an array of objects, which run code when they are read"
            self.require(not _runs_code(path.name, path.read_bytes()), rule, path.name)

    def test_a_corpus_of_one_item_or_without_text_is_a_corpus(self) -> None:
        silent = [SearchableItem(item_id=f"silent {number}", content=text) for number, text in enumerate(("", " \n", "?!"))]
        query, wanted = next(iter(QUERIES.items()))
        for name, items, expected in (("one item", ITEMS[:1], [wanted]), ("silent items", silent, [])):
            path = self.index_into(name, items)
            with without_warnings():
                (actual,) = template(self.make(), "retrieve")([[query]], path, 5)
            rule = "a corpus of one item, or without any text, is indexed"
            self.require(ids_of(actual) == expected, rule, f"{name}: {ids_of(actual)}")


def _state(path: Path) -> dict[str, tuple[int, int, int]]:
    """Return a state that shows whether a file was rewritten; the store's own lock may change."""
    files = ((file, file.stat()) for file in path.rglob("*") if file.is_file() and not file.name.startswith(".lock"))
    return {str(file.relative_to(path)): (actual.st_ino, actual.st_size, actual.st_mtime_ns) for file, actual in files}


def _runs_code(name: str, content: bytes) -> bool:
    """Return whether a file, or a member of an archive, is a pickle or an array of objects."""
    if name.endswith(_PICKLES):
        return True
    if content.startswith(b"PK") and zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(_runs_code(member, archive.read(member)) for member in archive.namelist())
    if content.startswith(b"\x93NUMPY"):
        try:
            np.load(io.BytesIO(content), allow_pickle=False)
        except ValueError:
            return True
    return content[:1] == b"\x80" and content[1:2] in _PICKLE_PROTOCOLS and content.endswith(b".")


# Rules for filters: every result passes the filter, and k results are returned if k items match.


class FilterRules(RetrieverChecks):
    """Rules for filters and for the masks that an engine receives."""

    order_depends_on_filter: ClassVar[bool] = False
    """Return whether a filter may change the order of the items that pass it: True if scores depend on the other candidates."""

    def test_k_results_come_back_wherever_k_match(self) -> None:
        whole = self.ask_each()
        for where, passes in FILTERS:
            for k in (1, 2, 3, len(ITEMS)):
                for query, actual in self.ask_each(k, where).items():
                    wanted = [result.item.item_id for result in whole[query] if passes(result.item.metadata)]
                    seen = f"{query!r}, k={k}, where={dict(where)}: {pairs_of(actual)}; without a filter, {wanted} pass it"
                    is_full = len(actual) == min(k, len(wanted)) and set(ids_of(actual)) <= set(wanted)
                    self.require(is_full, "k results come back wherever k items match query and filter", seen)
                    is_same = self.order_depends_on_filter or ids_of(actual) == wanted[:k]
                    self.require(is_same, "a filter changes nothing in the order of what passes it", seen)

    def test_the_engine_returns_only_rows_that_the_mask_allows(self) -> None:
        n, queries = len(ITEMS), list(QUERIES)
        draw = np.random.default_rng(0)
        masks: list[Mask] = [np.zeros(n, np.bool_), np.arange(n) == n - 1, np.arange(n) % 2 == 0, draw.random(n) < 0.5]
        for allowed in masks:
            for k in (1, n):
                hits = self.searching().search_batch(queries, k, allowed.copy())
                self._check_hits(hits, k)
                seen = f"k={k}: rows {np.unique(hits.rows).tolist()}; allowed: {np.flatnonzero(allowed).tolist()}"
                self.require(allowed[hits.rows].all(), "search_batch returns only rows that are allowed", seen)

    def test_a_mask_of_all_rows_changes_nothing(self) -> None:
        n, queries = len(ITEMS), list(QUERIES)
        for k in (2, n):
            without = self.searching().search_batch(queries, k, None)
            everything = self.searching().search_batch(queries, k, np.ones(n, np.bool_))
            self._check_hits(without, k)
            seen = f"k={k}: {shown(_lists(without))} without, {shown(_lists(everything))} with"
            self.require(_lists(without) == _lists(everything), "a mask that allows every row changes nothing", seen)

    def _check_hits(self, hits: Hits, k: int) -> None:
        counts = np.diff(hits.offsets)
        fits = len(counts) == len(QUERIES) and counts.max(initial=0) <= k
        seen = f"{len(QUERIES)} queries, k={k}: lists of {counts.tolist()}"
        self.require(fits, "search_batch returns one list per query, of at most k rows", seen)


def _lists(hits: Hits) -> list[list[int]]:
    """The rows of each list, best first and ties by row: the order within a list is determined by the framework."""
    bounds = zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)
    return [hits.rows[a:b][np.lexsort((hits.rows[a:b], -hits.scores[a:b]))].tolist() for a, b in bounds]


class RetrieverRules(AnswerRules, FilterRules, IndexRules, UpdateRules):
    """All rules of retrievers.

    An author names the class, and overrides the defaults that do not fit: ``make`` (the configuration), ``may_match`` (possible
    hits of a query), ``tolerance`` and ``order_depends_on_filter``.
    """
