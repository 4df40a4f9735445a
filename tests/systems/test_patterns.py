"""No text makes a step of a system over it work longer than in proportion to its length."""

from __future__ import annotations

import pytest
from attacks.conftest import Tally, tally
from attacks.growth import ROOM, check_growth, modules_with_patterns
from soaking import mostly_soaked

from .evidence.patterns import EVIDENCE
from .hipporag.patterns import HIPPORAG
from .policy.patterns import POLICY

__all__ = ["tally"]

ATTACKED = {"evidence": EVIDENCE, "hipporag": HIPPORAG, "hover": {}, "policy": POLICY}


@pytest.mark.parametrize("system", ATTACKED)
def test_every_module_with_a_pattern_is_attacked(system: str) -> None:
    assert modules_with_patterns(ROOM / "systems" / system) - set(ATTACKED[system]) == set()


def test_no_text_makes_a_step_of_evidence_work_longer_than_in_proportion(tally: Tally) -> None:
    names = ("index/passages.py",)
    check_growth({name: EVIDENCE[name] for name in EVIDENCE if name.removeprefix("systems/evidence/") in names}, 1, tally)


@pytest.mark.parametrize("system", mostly_soaked(["hipporag", "policy", "evidence"]))
def test_no_text_makes_a_step_work_longer_than_in_proportion(system: str, effort: int, tally: Tally) -> None:
    check_growth(ATTACKED[system], effort, tally)
