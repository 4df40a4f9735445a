"""Loaders that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import json

from nlp_retrieval import Gold, Query, SearchableItem
from nlp_retrieval.core import BaseLoader, BaseQueryLoader
from nlp_retrieval.testing import LoaderRules, QueryLoaderRules

from .breaking import breaks


class Few(BaseLoader):
    """Four items; keeps every rule."""

    def stream(self):
        yield from self.items()

    def items(self):
        return [SearchableItem(item_id=f"d{n}", content=f"text {n}") for n in range(4)]


@breaks(LoaderRules, "test_ids_are_unique_and_not_empty", "'d1' is the id of items 2 and 5")
class RepeatsAnId(Few):
    def items(self):
        return [*super().items(), SearchableItem(item_id="d1", content="another")]


@breaks(LoaderRules, "test_streaming_twice_gives_the_same", "item 1")
class StreamsOnce(Few):
    def stream(self):
        self.left = getattr(self, "left", iter(self.items()))
        yield from self.left


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


@breaks(QueryLoaderRules, "test_gold_names_items_of_the_source", "d9")
class GoldElsewhere(Asks):
    def gold(self):
        return [Gold(query_id=query.query_id, relevance={"d9": 1}) for query in self.queries()]
