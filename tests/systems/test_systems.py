"""The systems, as users import them."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

import pytest

SYSTEMS = {entry.name: entry.value for entry in entry_points(group="nlp_retrieval.systems")}


def test_all_systems_are_registered() -> None:
    assert set(SYSTEMS) == {"hover", "hipporag", "evidence", "policy"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_has_a_short_name(system: str) -> None:
    assert import_module(f"nlp_retrieval.{system}") is import_module(SYSTEMS[system])
