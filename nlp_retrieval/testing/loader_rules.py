"""The rules of loaders: a stream of items with unique ids, the same every time, in bounded memory."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import ClassVar, cast

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.components.interfaces import BaseLoader, BaseQueryLoader
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.verdict import broken, in_threads, shown

_BIG_ITEMS = 4_000
_BIG_CHARACTERS = 4_000
_FEW = 5


class LoaderRules(ComponentRules):
    """Rules of sources of items. The author writes a small source in ``prepare`` and returns its loader from ``make``.

    A loader of queries must also follow :class:`QueryLoaderRules`.
    """

    component: ClassVar[type[BaseLoader]]

    def make(self) -> BaseLoader:
        return self.component()

    def make_big(self, items: Sequence[SearchableItem]) -> BaseLoader | None:
        """Write items (4,000 of 4,000 characters) to a source, and return a loader of it; None if sources are never large.

        The kit then checks that streaming needs less memory than half of the source.
        """
        del items
        return None

    def test_the_stream_gives_items(self) -> None:
        loader = self.make()
        stream = loader.stream()
        if isinstance(stream, Sequence) or iter(stream) is not stream:
            broken("stream() returns an iterator", loader, f"a {type(stream).__name__}")
        items = list(stream)
        if not items:
            broken("the source that prepare() writes has items", loader, "an empty stream")
        for position, item in enumerate(items):
            if not isinstance(item, SearchableItem):
                broken("a loader gives SearchableItems", loader, f"item {position + 1}: {shown(item)}")

    def test_ids_are_unique_and_not_empty(self) -> None:
        loader = self.make()
        seen: dict[str, int] = {}
        for position, item in enumerate(loader.stream()):
            if not isinstance(item.item_id, str) or not item.item_id:
                broken("every item has an id", loader, f"item {position + 1} has the id {item.item_id!r}")
            if item.item_id in seen:
                places = f"items {seen[item.item_id] + 1} and {position + 1}"
                broken("ids are unique in a source", loader, f"{item.item_id!r} is the id of {places}")
            seen[item.item_id] = position

    def test_items_hold_text_and_json_metadata(self) -> None:
        loader = self.make()
        for item in loader.stream():
            try:
                canonical_json([item.item_id, item.content, item.metadata]).encode()
            except (TypeError, ValueError) as error:
                broken("an item is valid Unicode text with metadata that JSON can hold", loader, f"{item.item_id!r}: {error}")
            try:
                SearchableItem.model_validate(item.model_dump())
            except ValueError as error:
                broken("an item is what SearchableItem says", loader, f"{item.item_id!r}: {error}")

    def test_streaming_twice_gives_the_same(self) -> None:
        loader = self.make()
        _compare("a loader gives the same items every time", loader, list(loader.stream()), list(loader.stream()))

    def test_load_is_the_stream_as_a_list(self) -> None:
        loader = self.make()
        loaded = loader.load()
        if not isinstance(loaded, list):
            broken("load() returns a list", loader, f"a {type(loaded).__name__}")
        _compare("load() returns what stream() gives", loader, list(loader.stream()), loaded)

    def test_two_streams_at_once_do_not_disturb_each_other(self) -> None:
        loader = self.make()
        wanted, pairs = list(loader.stream()), list(zip_longest(loader.stream(), loader.stream()))
        for stream in (0, 1):
            _compare("two streams of one loader do not disturb each other", loader, wanted, [pair[stream] for pair in pairs])

    def test_threads_get_the_items_of_one(self) -> None:
        loader = self.make()
        wanted = list(loader.stream())
        for _, found in in_threads([loader.load] * 2):
            _compare("a loader is safe in several threads at once", loader, wanted, found)

    def test_an_abandoned_stream_leaves_nothing_open(self) -> None:
        gc.collect()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            next(self.make().stream())
            gc.collect()
        told = [str(one.message) for one in caught if issubclass(one.category, ResourceWarning)]
        if told:
            broken("a stream that is not read to its end leaves no file or connection open", self.make(), "; ".join(told))

    def test_streaming_holds_a_part_of_a_large_source(self) -> None:
        items = [
            SearchableItem(item_id=f"big {number}", content=(f"passage {number} of many words " * 200)[:_BIG_CHARACTERS])
            for number in range(_BIG_ITEMS)
        ]
        loader = self.make_big(items)
        if loader is None:
            return
        list(islice(loader.stream(), 1))  # imports and caches of the first use are not part of the source
        for rule, wanted in (
            ("the first items come before the source is read whole", _FEW),
            ("streaming holds a bounded part of the source in memory", _BIG_ITEMS),
        ):
            gc.collect()
            tracemalloc.start()
            n_items = sum(1 for _ in islice(loader.stream(), wanted))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            if n_items < wanted:
                broken("the items that make_big() is given are in its source", loader, f"{n_items} of {wanted} items")
            if peak > _BIG_ITEMS * _BIG_CHARACTERS // 2:
                source = f"of a source of {_BIG_ITEMS * _BIG_CHARACTERS:,} characters"
                broken(rule, loader, f"{peak:,} bytes were held for the first {wanted} items {source}")


class QueryLoaderRules(ComponentRules):
    """Rules of sources of queries and their gold."""

    component: ClassVar[type[BaseQueryLoader]]

    def _loader(self) -> BaseQueryLoader:
        return cast(BaseQueryLoader, self.make())

    def test_query_ids_are_unique(self) -> None:
        loader = self._loader()
        queries = loader.queries()
        ids = [query.query_id for query in queries if isinstance(query, Query)]
        if not queries or len(ids) != len(queries):
            broken("queries() returns Query objects, at least one", loader, shown(queries))
        if len(set(ids)) != len(ids):
            broken("query ids are unique", loader, shown(sorted(one for one in set(ids) if ids.count(one) > 1)))

    def test_gold_lines_up_with_the_queries(self) -> None:
        loader = self._loader()
        asked, expected = [query.query_id for query in loader.queries()], loader.gold()
        if [gold.query_id for gold in expected if isinstance(gold, Gold)] != asked:
            broken("gold() covers exactly the queries, in their order", loader, f"{shown(expected)} for {shown(asked)}")

    def test_gold_names_items_of_the_source(self) -> None:
        loader = self._loader()
        if not isinstance(loader, BaseLoader):
            return
        items = list(loader.stream())
        known = {"item_id": {item.item_id for item in items}, "title": {item.title for item in items}}
        for gold in loader.gold():
            if unknown := sorted(gold.relevance.keys() - known[gold.by]):
                broken("gold names items that are in the source", loader, f"{gold.query_id!r} expects {unknown} by {gold.by}")

    def test_queries_are_the_same_every_time(self) -> None:
        loader = self._loader()
        if loader.queries() != loader.queries() or loader.gold() != loader.gold():
            broken("a loader gives the same queries and gold every time", loader, "two calls differ")


def _compare(rule: str, loader: BaseLoader, wanted: Sequence[SearchableItem], found: Sequence[SearchableItem | None]) -> None:
    for position, (one, other) in enumerate(zip_longest(wanted, found)):
        if one != other:
            broken(rule, loader, f"item {position + 1} is {shown(one)}, then {shown(other)}")
