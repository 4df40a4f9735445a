"""Retrievers whose index, or its updates, are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import json
import pickle
import uuid
from functools import cached_property

import numpy as np

from nlp_retrieval.testing import RetrieverRules

from .breaking import breaks
from .broken_retrievers import Words

_counter = itertools.count()

# the index


@breaks(RetrieverRules, "test_an_index_is_found_again_by_a_new_object")
class KeepsItInMemory(Words):
    def build(self, items, folder):
        super().build(items, folder)
        self.kept = True

    def scores(self, wanted):
        return super().scores(wanted) * (1 if hasattr(self, "kept") else 0.5 + next(_counter) % 7)


@breaks(RetrieverRules, "test_indexing_twice_and_searching_change_no_file_and_the_index_verifies", "built")
class NeverTheSameIdentity(Words):
    @cached_property
    def made(self):
        return uuid.uuid4().hex

    def index_identity(self):
        return super().index_identity() | {"made": self.made}


@breaks(RetrieverRules, "test_two_builds_of_the_same_items_answer_alike")
class BuiltByChance(Words):
    def build(self, items, folder):
        super().build(items, folder)
        (folder / "scale.json").write_text(str(1 + next(_counter)), "utf-8")

    def load(self, folder):
        super().load(folder)
        self.scale = int((folder / "scale.json").read_text("utf-8"))

    def scores(self, wanted):
        return super().scores(wanted) * self.scale


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "pickle")
class Pickles(Words):
    def build(self, items, folder):
        super().build(items, folder)
        (folder / "words.bin").write_bytes(pickle.dumps(["words"]))


@breaks(RetrieverRules, "test_a_corpus_of_one_item_or_without_text_is_a_corpus", "[]")
class NeedsTwoItems(Words):
    def scores(self, wanted):
        return super().scores(wanted) * (len(self.found) > 1)


# updates


@breaks(RetrieverRules, "test_what_was_deleted_is_gone_what_was_added_found_and_what_was_updated_new")
class FindsTheDeleted(Words):
    def find(self, queries, k, n_rows, allowed=None):
        self._live = None
        return super().find(queries, k, n_rows)


@breaks(RetrieverRules, "test_no_item_comes_twice_and_none_fails_a_filter", "filter")
class FilterForTheFirstSegment(Words):
    def search_batch(self, queries, k, allowed):
        return super().search_batch(
            queries, k, None if allowed is None or len(self.found) < 6 else allowed & (allowed.sum() > 3)
        )


@breaks(RetrieverRules, "test_items_that_are_alike_score_alike_in_every_segment", "twin-c")
class ScaledByTheSegment(Words):
    def scores(self, wanted):
        return super().scores(wanted) / len(self.found)


@breaks(RetrieverRules, "test_items_that_are_alike_score_alike_in_every_segment")
class FirstOfTheFirstSegment(Words):
    def find(self, queries, k, n_rows, allowed=None):
        if k > 3 or not self._segments:
            return super().find(queries, k, n_rows, allowed)
        live = np.zeros(n_rows, np.bool_)
        live[:5] = True
        return super().find(queries, k, n_rows, live if allowed is None else live & allowed)


@breaks(RetrieverRules, "test_a_new_object_finds_the_updated_index")
class SegmentsInMemory(KeepsItInMemory):
    pass


@breaks(RetrieverRules, "test_after_compacting_the_index_is_as_if_built_at_once", "compact")
class JoinsAsItWas(Words):
    def join(self, segments, items, folder):
        self.build(items, folder)
        words = json.loads((folder / "words.json").read_text("utf-8"))
        (folder / "words.json").write_text(json.dumps([one[:1] for one in words]), "utf-8")


@breaks(RetrieverRules, "test_what_was_deleted_can_be_added_again", "['tokyo']")
class OnceDeletedAlwaysGone(Words):
    def extend(self, items, folder, segments, everything):
        super().extend(items, folder, segments, everything)
        if "velda" in items.ids():
            (folder / "words.json").write_text(json.dumps([[] for _ in range(len(items))]), "utf-8")
