"""The weights of walking along shared knowledge are as those of every link."""

from __future__ import annotations

import pytest
from retrievers.link_graph.links.test_base import check_refused, check_weights

KNOWLEDGE = "sha256:" + "0" * 64


def test_weights_of_walking_change_no_index() -> None:
    check_weights("shared_knowledge", knowledge=KNOWLEDGE)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), "1", None])
def test_weights_that_are_none_are_refused(weight: object) -> None:
    check_refused("shared_knowledge", weight, knowledge=KNOWLEDGE)
