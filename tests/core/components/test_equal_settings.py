"""Settings that are equal are one, however their numbers are written: as an index, as a stage, as a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from nlp_retrieval import Bm25Retriever, Searcher, WeightedSum
from nlp_retrieval.benchmarks.stage_store import identity_of
from nlp_retrieval.core.components.component import Component, canonical_json


class Settings(Component):
    """Every way in which a parameter may hold numbers."""

    kind, name = "processors", "settings"

    def __init__(
        self,
        ratio: float = 1,
        maybe: float | None = None,
        count: int = 1,
        either: int | float = 1,
        switch: bool | float = True,
        pair: tuple[float, int] = (1, 1),
        many: list[float] = [1],  # noqa: B006
        weights: dict[str, float] | None = None,
        free: Any = 1,
    ) -> None:
        pass


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Settings(ratio=0.0), Settings(ratio=-0.0)),
        (Settings(pair=(1, 1)), Settings(pair=(1.0, 1))),
        (Settings(weights={"a": 1}), Settings(weights={"a": 1.0})),
        (WeightedSum({"a": 1, "b": 2}), WeightedSum({"a": 1.0, "b": 2.0})),
        (Searcher([Bm25Retriever(k1=2)]), Searcher([Bm25Retriever(k1=2.0)])),
    ],
)
def test_equal_numbers_are_one_setting(one: Component, other: Component) -> None:
    assert one == other
    assert canonical_json(one.config) == canonical_json(other.config)
    assert canonical_json(identity_of(one)) == canonical_json(identity_of(other))
