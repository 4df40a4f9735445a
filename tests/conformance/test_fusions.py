"""Every fusion keeps every rule."""

from __future__ import annotations

from nlp_retrieval import CombMNZ, CombSUM, RawScore, ReciprocalRankFusion, WeightedSum
from nlp_retrieval.testing import FusionRules


class TestRawScore(FusionRules):
    component = RawScore


class TestReciprocalRankFusion(FusionRules):
    component = ReciprocalRankFusion


class TestWeightedSum(FusionRules):
    component = WeightedSum


class TestCombSUM(FusionRules):
    component = CombSUM


class TestCombMNZ(FusionRules):
    component = CombMNZ
