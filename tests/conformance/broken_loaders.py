"""Loaders that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import json

from nlp_retrieval import Gold, Query, SearchableItem
from nlp_retrieval.core import BaseLoader, BaseQueryLoader
from nlp_retrieval.testing import LoaderRules, QueryLoaderRules

from .breaking import breaks

_counter = itertools.count()


class Few(BaseLoader):
    """Four items; keeps every rule."""

    def stream(self):
        yield from self.items()

    def items(self):
        return [SearchableItem(item_id=f"d{n}", content=f"text {n}") for n in range(4)]


@breaks(LoaderRules, "test_the_stream_gives_items", "list")
class StreamsAList(Few):
    def stream(self):
        return self.items()


@breaks(LoaderRules, "test_ids_are_unique_and_not_empty", "'d1' is the id of items 2 and 5")
class RepeatsAnId(Few):
    def items(self):
        return [*super().items(), SearchableItem(item_id="d1", content="another")]


@breaks(LoaderRules, "test_items_hold_text_and_json_metadata", "Out of range float")
class NotANumber(Few):
    def items(self):
        return [SearchableItem.trusted("d0", "text", {"year": float("nan")})]


@breaks(LoaderRules, "test_streaming_twice_gives_the_same", "item 1")
class StreamsOnce(Few):
    def stream(self):
        self.left = getattr(self, "left", iter(self.items()))
        yield from self.left


@breaks(LoaderRules, "test_load_is_the_stream_as_a_list", "item 4")
class LoadsLess(Few):
    def load(self):
        return super().load()[:3]


@breaks(LoaderRules, "test_streams_and_threads_at_once_do_not_disturb_each_other")
class OneCursor(Few):
    def stream(self):
        self.at = 0
        while self.at < 4:
            self.at += 1
            yield self.items()[self.at - 1]


@breaks(LoaderRules, "test_an_abandoned_stream_leaves_nothing_open", "unclosed")
class LeavesItOpen(Few):
    def stream(self):
        self.file = open(__file__)  # noqa: PTH123, SIM115
        for number, line in enumerate(self.file):
            yield SearchableItem(item_id=str(number), content=line)

    def __del__(self):
        pass


class _Big(LoaderRules):
    def make_big(self, items):
        self.component.written = json.dumps([item.model_dump() for item in items])
        return self.component()


@breaks(_Big, "test_streaming_holds_a_part_of_a_large_source", "first 5 items")
class ReadsAll(Few):
    written = "[]"

    def items(self):
        return [SearchableItem(**row) for row in json.loads(self.written)]


class Asks(Few, BaseQueryLoader):
    """Two queries; keeps every rule."""

    def queries(self):
        return [Query(query_id=name, text="?") for name in "ab"]

    def gold(self):
        return [Gold(query_id=query.query_id, relevance={"d1": 1}) for query in self.queries()]


@breaks(QueryLoaderRules, "test_query_ids_are_unique", "['a']")
class AsksTwice(Asks):
    def queries(self):
        return [Query(query_id=name, text="?") for name in "aba"]


@breaks(QueryLoaderRules, "test_gold_lines_up_with_the_queries", "['a', 'b']")
class GoldInReverse(Asks):
    def gold(self):
        return super().gold()[::-1]


@breaks(QueryLoaderRules, "test_gold_names_items_of_the_source", "d9")
class GoldElsewhere(Asks):
    def gold(self):
        return [Gold(query_id=query.query_id, relevance={"d9": 1}) for query in self.queries()]


@breaks(QueryLoaderRules, "test_queries_are_the_same_every_time")
class OtherQueries(Asks):
    def queries(self):
        return [Query(query_id="a", text=f"{next(_counter)}?")]
