"""Retrievers that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import json
import re

import numpy as np

from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.candidates import Hits
from nlp_retrieval.testing import RetrieverRules

from .breaking import breaks

_WORD = re.compile(r"\w+")


class Words(BaseRetriever):
    """Scores an item by the share of the query's words that it holds; keeps every rule.

    Args:
        shortest: shorter words are not indexed.
        factor: on the scores.
    """

    name = "words"
    search_only = frozenset({"factor"})

    def __init__(self, shortest: int = 4, factor: float = 1.0) -> None:
        self.shortest = shortest
        self.factor = factor

    def build(self, items, folder):
        words = [sorted(self.words(text)) for texts in items.texts(100) for text in texts]
        (folder / "words.json").write_text(json.dumps(words), "utf-8")

    def load(self, folder):
        self.found = [set(words) for words in json.loads((folder / "words.json").read_text("utf-8"))]

    def search_batch(self, queries, k, allowed):
        return Hits.from_lists([self.best(self.scores(self.words(query)), k, allowed) for query in queries])

    def ignored(self, query):
        return None if self.words(query) else f"words that are too short for shortest={self.shortest}; shortest=1 keeps them"

    def words(self, text):
        return {word for word in _WORD.findall(text.lower()) if len(word) >= self.shortest or not word.isascii()}

    def scores(self, wanted):
        return np.array([self.factor * len(wanted & found) / (len(wanted) or 1) for found in self.found])

    def best(self, scores, k, allowed):
        rows = np.flatnonzero((scores > 0) & (True if allowed is None else allowed))
        rows = rows[np.lexsort((rows, -scores[rows]))][:k]
        return rows, scores[rows]


# answers


@breaks(RetrieverRules, "test_what_is_found_matches_says_something_and_is_as_it_was_indexed")
class FindsWhatHasNoText(Words):
    by_words = True  # so that the framework does not leave it out

    def scores(self, wanted):
        return 1 + super().scores(wanted)


@breaks(RetrieverRules, "test_items_that_are_alike_come_together_and_by_row", "twin-c")
class LastBit(Words):
    def scores(self, wanted):
        scores = super().scores(wanted)
        return scores * (1 + 1e-15 * np.arange(len(scores)))


@breaks(RetrieverRules, "test_a_list_holds_at_most_k_items_once_each_best_first_and_ties_by_row", "k=1")
class TiesAtTheCut(Words):
    def best(self, scores, k, allowed):
        rows = np.flatnonzero((scores > 0) & (True if allowed is None else allowed))
        rows = rows[np.lexsort((-rows, -scores[rows]))][:k]
        return rows, scores[rows]


@breaks(RetrieverRules, "test_the_lists_of_sub_queries_are_merged_and_a_repeated_one_counts_once")
class FirstSubqueryAlone(Words):
    def candidates(self, processed, *args, **kwargs):
        return super().candidates([one[:1] for one in processed], *args, **kwargs)


# filters


@breaks(RetrieverRules, "test_k_results_come_back_wherever_k_match", "k=1")
class FiltersAfterTheCut(Words):
    def best(self, scores, k, allowed):
        rows, found = super().best(scores, k, None)
        keep = slice(None) if allowed is None else allowed[rows]
        return rows[keep], found[keep]


@breaks(RetrieverRules, "test_the_engine_returns_only_rows_that_the_mask_allows", "rows")
class IgnoresTheMask(Words):
    def best(self, scores, k, allowed):
        return super().best(scores, k, None)
