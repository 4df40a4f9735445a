"""Rerankers that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core import BaseReranker
from nlp_retrieval.testing import RerankerRules

from .breaking import breaks


class Shared(BaseReranker):
    """Scores an item by the letters that it shares with the query; keeps every rule."""

    def score_pairs(self, queries, items):
        return {"score": np.array([self.score(query, item) for query, item in zip(queries, items, strict=True)])}

    def score(self, query, item):
        return len(set(query) & set(item.text)) / (1 + len(set(item.text)))


class Rearranged(Shared):
    """Changes what comes back."""

    def rerank(self, nlqs, results, k):
        return [self.change(one) for one in super().rerank(nlqs, results, k)]


@breaks(RerankerRules, "test_candidates_are_reordered_and_none_is_added_or_lost", "lost")
class DropsTheLowest(Rearranged):
    def change(self, one):
        return [hit for hit in one if hit.score > 0.2]


@breaks(RerankerRules, "test_scores_are_finite_the_best_comes_first_and_ties_keep_the_incoming_order", "in:")
class TiesInReverse(Rearranged):
    def change(self, one):
        turned = one[::-1]
        turned.sort(key=lambda hit: -hit.score)
        return turned


@breaks(RerankerRules, "test_signals_are_kept_and_the_own_score_joins_them", "retriever.rank")
class ForgetsSignals(Rearranged):
    def change(self, one):
        own = f"{self.name}.score"
        return [hit.model_copy(update={"signals": {own: hit.signals[own]}}) for hit in one]


@breaks(RerankerRules, "test_a_score_does_not_depend_on_the_other_candidates", "fewer")
class DividesByTheHighest(Shared):
    def score_pairs(self, queries, items):
        columns = super().score_pairs(queries, items)
        return {"score": columns["score"] / max(map(len, (item.text for item in items)))}
