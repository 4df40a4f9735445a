"""Fusions that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools

import numpy as np

from nlp_retrieval.core import BaseFusion
from nlp_retrieval.core.candidates import CandidateBatch
from nlp_retrieval.core.search.joining import RRF_K
from nlp_retrieval.testing import FusionRules

from .breaking import breaks

_counter = itertools.count()


class Sum(BaseFusion):
    """Sum of reciprocal ranks; keeps every rule."""

    def combine(self, pool):
        return np.nansum(1.0 / (RRF_K + pool.ranks), axis=1)


@breaks(FusionRules, "test_every_candidate_comes_once_the_best_first_and_ties_by_row", "both found some")
class FoundByBoth(Sum):
    def fuse(self, batches):
        fused = super().fuse(batches)
        both = np.isfinite(fused.signals["one.score"]) & np.isfinite(fused.signals["other.score"])
        offsets = np.concatenate([[0], np.cumsum(np.bincount(fused.owner[both], minlength=fused.n_lists))])
        return fused.take(np.flatnonzero(both), offsets)


@breaks(FusionRules, "test_every_candidate_comes_once_the_best_first_and_ties_by_row")
class LowestOfAll(Sum):
    def fuse(self, batches):
        fused = super().fuse(batches)
        return CandidateBatch(fused.offsets, fused.rows, -fused.scores, fused.subquery, fused.signals)


@breaks(FusionRules, "test_the_same_call_twice_gives_the_same_answer")
class Tired(Sum):
    def combine(self, pool):
        return super().combine(pool) / (1 + next(_counter))
