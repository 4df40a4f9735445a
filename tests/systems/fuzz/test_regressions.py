"""Every input that a parser of a system once went wrong on, and each parser on inputs damaged at random."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from fuzz.seeds import seeds_of
from fuzz.targets import feed
from fuzz.test_regressions import BOMBS, check_damaged
from soaking import mostly_soaked

from .seeds import SEEDS
from .targets import TARGETS

CASES = Path(__file__).parent / "cases"


def test_a_seed_is_taken(subtests: pytest.Subtests) -> None:
    for target in TARGETS:
        with subtests.test(target=target):
            assert [seed for seed in seeds_of(target, SEEDS) if not feed(target, seed, TARGETS)] == []


def test_what_once_went_wrong_does_not(subtests: pytest.Subtests) -> None:
    for case in sorted(CASES.glob("*/*")):
        with subtests.test(case=f"{case.parent.name}/{case.name}"):
            feed(case.parent.name, case.read_bytes(), TARGETS)


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_input_is_refused_by_an_error_of_the_project_or_taken(target: str, effort: int) -> None:
    check_damaged(partial(feed, target, targets=TARGETS), seeds_of(target, SEEDS), effort)


@pytest.mark.parametrize("bomb", mostly_soaked(BOMBS), ids=lambda bomb: bomb[:5].decode())
def test_a_bomb_does_not_go_off(bomb: bytes, subtests: pytest.Subtests) -> None:
    for target in TARGETS:
        with subtests.test(target=target):
            feed(target, bomb, TARGETS)
