"""Every fusion keeps every rule."""

from __future__ import annotations

from nlp_retrieval import CombMNZ, CombSUM, RawScore, ReciprocalRankFusion, WeightedSum
from nlp_retrieval.testing import FusionRules


class TestRawScore(FusionRules):
    component = RawScore


class TestReciprocalRankFusion(FusionRules):
    component = ReciprocalRankFusion


class TestReciprocalRankFusionWeighted(FusionRules):
    component = ReciprocalRankFusion

    def make(self):
        return ReciprocalRankFusion(k=1, weights={"one": 1.0, "other": 0.5})


class TestWeightedSum(FusionRules):
    component = WeightedSum


class TestWeightedSumOfZScores(FusionRules):
    component = WeightedSum

    def make(self):
        return WeightedSum(normalization="zscore", weights=[0.3, 0.7])


class TestCombSUM(FusionRules):
    component = CombSUM


class TestCombSUMOfZScores(FusionRules):
    component = CombSUM

    def make(self):
        return CombSUM(normalization="zscore")


class TestCombMNZ(FusionRules):
    component = CombMNZ
