"""Retrievers whose index, or its updates, are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import json
import pickle

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


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "pickle")
class Pickles(Words):
    def build(self, items, folder):
        super().build(items, folder)
        (folder / "words.bin").write_bytes(pickle.dumps(["words"]))


# updates


@breaks(RetrieverRules, "test_what_was_deleted_is_gone_what_was_added_found_and_what_was_updated_new")
class FindsTheDeleted(Words):
    def find(self, queries, k, n_rows, allowed=None):
        self._live = None
        return super().find(queries, k, n_rows)


@breaks(RetrieverRules, "test_items_that_are_alike_score_alike_in_every_segment", "twin-c")
class ScaledByTheSegment(Words):
    def scores(self, wanted):
        return super().scores(wanted) / len(self.found)


@breaks(RetrieverRules, "test_after_compacting_the_index_is_as_if_built_at_once", "compact")
class JoinsAsItWas(Words):
    def join(self, segments, items, folder):
        self.build(items, folder)
        words = json.loads((folder / "words.json").read_text("utf-8"))
        (folder / "words.json").write_text(json.dumps([one[:1] for one in words]), "utf-8")
