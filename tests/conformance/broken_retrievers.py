"""Retrievers that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np

from nlp_retrieval import RetrievalResult
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.candidates import Hits
from nlp_retrieval.testing import RetrieverRules

from .breaking import breaks

_WORD = re.compile(r"\w+")
_counter = itertools.count()


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


def rescored(results: list[RetrievalResult], score) -> list[RetrievalResult]:
    return [result.model_copy(update={"score": score(result)}) for result in results]


class Changed(Words):
    """Changes what comes back."""

    def retrieve(self, processed_queries, output_path, k, where=None):
        return self.change(super().retrieve(processed_queries, output_path, k, where), processed_queries, k)


# answers


@breaks(
    RetrieverRules,
    "test_a_query_of_stop_words_alone_is_searched_or_the_setting_that_keeps_them_named",
    "'the': nothing; ignored() says None",
)
class LeavesOutShortWords(Words):
    def ignored(self, query):
        return None


@breaks(RetrieverRules, "test_what_is_found_matches_says_something_and_is_as_it_was_indexed")
class FindsWhatHasNoText(Words):
    by_words = True  # so that the framework does not leave it out

    def scores(self, wanted):
        return 1 + super().scores(wanted)


@breaks(RetrieverRules, "test_a_list_holds_at_most_k_items_once_each_best_first_and_ties_by_row", "k=1")
class GivesOneMore(Words):
    def retrieve(self, processed_queries, output_path, k, where=None):
        return super().retrieve(processed_queries, output_path, k + 1, where)


@breaks(RetrieverRules, "test_items_that_are_alike_come_together_and_by_row", "twin-c")
class LastBit(Words):
    def scores(self, wanted):
        scores = super().scores(wanted)
        return scores * (1 + 1e-15 * np.arange(len(scores)))


@breaks(RetrieverRules, "test_a_shorter_list_is_the_beginning_of_a_longer_one", "k=1")
class TiesAtTheCut(Words):
    def best(self, scores, k, allowed):
        rows = np.flatnonzero((scores > 0) & (True if allowed is None else allowed))
        rows = rows[np.lexsort((-rows, -scores[rows]))][:k]
        return rows, scores[rows]


@breaks(RetrieverRules, "test_what_matches_is_found", "harpsichord")
class ReadsTheBeginning(Words):
    def words(self, text):
        return super().words(text[:1000])


@breaks(RetrieverRules, "test_a_shorter_list_is_the_beginning_of_a_longer_one")
class NothingBeyondTheCorpus(Changed):
    def change(self, lists, queries, k):
        return lists if k < 30 else [[] for _ in lists]


@breaks(RetrieverRules, "test_queries_that_say_nothing_get_empty_lists_and_one_warning", "['']")
class AnswersNothing(Changed):
    def change(self, lists, queries, k):
        full = next((one for one in lists if one), [])
        return [one or (full if query and not query[0] else []) for one, query in zip(lists, queries, strict=True)]


@breaks(RetrieverRules, "test_a_sub_query_that_stands_twice_counts_once")
class OneLongQuery(Words):
    def candidates(self, processed, *args, **kwargs):
        self.weights = [{word: " ".join(one).lower().count(word) for word in self.words(" ".join(one))} for one in processed]
        return super().candidates([[" ".join(one)] if any(one) else one for one in processed], *args, **kwargs)

    def scores(self, wanted):
        weights = next((one for one in self.weights if one.keys() == wanted), {})
        return np.array([sum(weights.get(word, 0) ** 3 for word in wanted & found) for found in self.found], np.float64)


@breaks(RetrieverRules, "test_the_lists_of_sub_queries_are_merged")
class FirstSubqueryAlone(Words):
    def candidates(self, processed, *args, **kwargs):
        return super().candidates([one[:1] for one in processed], *args, **kwargs)


@breaks(RetrieverRules, "test_signals_tell_score_and_rank", ".score")
class NoSignals(Changed):
    def change(self, lists, queries, k):
        return [[hit.model_copy(update={"signals": {}}) for hit in one] for one in lists]


# filters


@breaks(RetrieverRules, "test_k_results_come_back_wherever_k_match", "Norway")
class ForgetsTheFilter(Words):
    def retrieve(self, processed_queries, output_path, k, where=None):
        return super().retrieve(processed_queries, output_path, k)


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


@breaks(RetrieverRules, "test_a_mask_of_all_rows_changes_nothing", "without")
class OtherOrderWithAMask(Words):
    def best(self, scores, k, allowed):
        return super().best(scores if allowed is None else np.where(scores > 0, 2 - scores, 0), k, allowed)
