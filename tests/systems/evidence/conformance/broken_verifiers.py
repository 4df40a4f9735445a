"""Verifiers that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import threading
import time

from conformance.breaking import breaks

from nlp_retrieval.systems.evidence.testing import VerifierRules
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement

_counter = itertools.count()


class Undecided(BaseVerifier):
    """Calls everything neutral; keeps every rule.

    Args:
        share: of the probability that is left for support.
    """

    def __init__(self, share: float = 0.2) -> None:
        self.share = share

    def judge_pairs(self, claims, passages):
        return [Judgement(self.share, 0.0, 1 - self.share, (0, len(passage)), {"length": 1.0}) for passage in passages]


@breaks(VerifierRules, "test_there_is_a_judgement_for_each_pair", "pairs")
class SkipsEmptyPassages(Undecided):
    def judge_pairs(self, claims, passages):
        return super().judge_pairs(claims, [passage for passage in passages if passage])


@breaks(VerifierRules, "test_probabilities_sum_to_one", "0.4")
class GivesMoreThanThereIs(Undecided):
    def judge_pairs(self, claims, passages):
        return [Judgement(0.4, 0.4, 0.4, (0, len(passage))) for passage in passages]


@breaks(VerifierRules, "test_the_deciding_sentence_stands_in_the_passage", "(0, 10000)")
class PointsBeyondTheEnd(Undecided):
    def judge_pairs(self, claims, passages):
        return [Judgement(0.2, 0.2, 0.6, (0, 10_000)) for _ in passages]


@breaks(VerifierRules, "test_signals_are_finite_numbers_of_the_same_names", "nan")
class SignalsNothing(Undecided):
    def judge_pairs(self, claims, passages):
        return [
            Judgement(0.2, 0.2, 0.6, (0, len(one)), {"share": len(one) / len(one) if one else float("nan")}) for one in passages
        ]


@breaks(VerifierRules, "test_a_judgement_does_not_depend_on_the_rest_of_the_batch")
class ComparesWithTheFirst(Undecided):
    def judge_pairs(self, claims, passages):
        return [Judgement(share := 0.5 * (one == passages[0]), 0.0, 1 - share, (0, len(one))) for one in passages]


@breaks(VerifierRules, "test_the_same_call_twice_gives_the_same_answer")
class ChangesItsMind(Undecided):
    def judge_pairs(self, claims, passages):
        share = 1 / (2 + next(_counter))
        return [Judgement(share, 0.0, 1 - share, (0, len(one))) for one in passages]


@breaks(VerifierRules, "test_threads_get_the_answers_of_one")
class KeepsItsPassagesInItself(Undecided):
    def judge_pairs(self, claims, passages):
        self.passages = passages
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
        shares = [0.5 * (one == other) for one, other in zip(passages, itertools.cycle(self.passages), strict=False)]
        return [Judgement(share, 0.0, 1 - share, (0, len(one))) for share, one in zip(shares, passages, strict=True)]
