"""The kit of evidence finds what it is there to find, as that of the library does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.breaking import Broken, breaks, broken_in, check_found
from conformance.registering import registered_parts

from nlp_retrieval.systems.evidence.testing import VerifierRules
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement


@breaks(VerifierRules, "test_judgements_are_of_each_pair", "sum to 1.2")
class GivesMoreThanThereIs(BaseVerifier):
    def judge_pairs(self, claims, passages):
        return [Judgement(0.4, 0.4, 0.4, (0, len(passage))) for passage in passages]


@breaks(VerifierRules, "test_judgements_are_of_each_pair", "10000")
class PointsBeyondTheEnd(BaseVerifier):
    def judge_pairs(self, claims, passages):
        return [Judgement(0.2, 0.2, 0.6, (0, 10_000)) for _ in passages]


@breaks(VerifierRules, "test_an_answer_does_not_depend_on_the_rest_of_the_batch")
class ComparesWithTheFirst(BaseVerifier):
    def judge_pairs(self, claims, passages):
        return [Judgement(share := 0.5 * (one == passages[0]), 0.0, 1 - share, (0, len(one))) for one in passages]


BROKEN = broken_in(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """They are found by name, as an installed package's would be."""
    with registered_parts(tmp_path_factory.mktemp("registered"), BROKEN):
        yield


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.component.__name__)
def test_the_kit_finds_what_is_broken_and_says_it(broken: Broken, tmp_path: Path) -> None:
    check_found(broken, tmp_path)
