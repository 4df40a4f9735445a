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


@breaks(RetrieverRules, "test_indexing_twice_is_free", "built")
class NeverTheSameIdentity(Words):
    @cached_property
    def made(self):
        return uuid.uuid4().hex

    def index_identity(self):
        return super().index_identity() | {"made": self.made}


@breaks(RetrieverRules, "test_searching_changes_no_file_and_the_index_verifies", "words.json")
class TidiesUpWhileSearching(Words):
    def load(self, folder):
        super().load(folder)
        self.file = folder / "words.json"

    def search_batch(self, queries, k, allowed):
        self.file.write_text(json.dumps([sorted(words) for words in self.found], indent=1), "utf-8")
        return super().search_batch(queries, k, allowed)


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


@breaks(RetrieverRules, "test_search_parameters_change_no_index_and_the_others_do", "shortest")
class CallsItSearchOnly(Words):
    search_only = frozenset({"factor", "shortest"})

    def build(self, items, folder):
        words = [sorted(self.words(text))[-self.shortest :] for texts in items.texts(100) for text in texts]
        (folder / "words.json").write_text(json.dumps(words), "utf-8")


@breaks(RetrieverRules, "test_search_parameters_change_no_index_and_the_others_do", "shortest")
class LeftOutOfTheIdentity(Words):
    def index_identity(self):
        return {key: value for key, value in super().index_identity().items() if key != "shortest"}


@breaks(RetrieverRules, "test_search_parameters_change_no_index_and_the_others_do", "no other value is known for 'path'")
class CannotBeChecked(Words):
    def __init__(self, path: str = "x") -> None:
        super().__init__()
        self.path = path


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "pickle")
class Pickles(Words):
    def build(self, items, folder):
        super().build(items, folder)
        (folder / "words.bin").write_bytes(pickle.dumps(["words"]))


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "array of objects")
class ObjectArrays(Words):
    def build(self, items, folder):
        super().build(items, folder)
        np.savez(folder / "words.npz", words=np.array([{"a"}, None], object))


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "is a folder")
class Nested(Words):
    def build(self, items, folder):
        super().build(items, folder)
        (folder / "inner").mkdir()


@breaks(RetrieverRules, "test_a_corpus_of_one_item_is_a_corpus", "[]")
class NeedsTwoItems(Words):
    def scores(self, wanted):
        return super().scores(wanted) * (len(self.found) > 1)


@breaks(RetrieverRules, "test_items_without_text_can_be_indexed", "silent")
class FindsTheSilent(Words):
    by_words = True  # so that the framework does not leave them out

    def scores(self, wanted):
        return np.array([1.0 if not found else 0.0 for found in self.found])


# updates


@breaks(RetrieverRules, "test_what_was_deleted_is_not_found", "velda")
class FindsTheDeleted(Words):
    def find(self, queries, k, n_rows, allowed=None):
        self._live = None
        return super().find(queries, k, n_rows)


@breaks(RetrieverRules, "test_what_was_added_is_found", "no 'lodz'")
class FirstSegmentAlone(Words):
    def load_segments(self, segments):
        self.load(segments[0].folder)

    def best(self, scores, k, allowed):
        return super().best(scores, k, None if allowed is None else allowed[: len(scores)])


@breaks(RetrieverRules, "test_an_updated_item_is_the_new_one", "lighthouse")
class RemembersTheOldText(Words):
    def extend(self, items, folder, segments, everything):
        super().extend(items, folder, segments, everything)
        if len(items) == 1:
            (folder / "words.json").write_text(json.dumps([["lighthouse", "trombone", "quartet"]]), "utf-8")


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


@breaks(RetrieverRules, "test_a_shorter_list_is_the_beginning_of_a_longer_one_over_segments", "k=1")
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
