"""No text makes a step of a system over it work longer than in proportion to its length."""

from __future__ import annotations

import pytest
from attacks.growth import check_growth

from .evidence.patterns import EVIDENCE
from .hipporag.patterns import HIPPORAG
from .policy.patterns import POLICY


@pytest.mark.soak
@pytest.mark.parametrize("attacked", [EVIDENCE, HIPPORAG, POLICY], ids=["evidence", "hipporag", "policy"])
def test_no_text_makes_a_step_work_longer_than_in_proportion(attacked: dict[str, str], effort: int) -> None:
    check_growth(attacked, effort)
