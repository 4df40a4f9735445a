"""The parts that components under test are made of are registered as an installed package would register them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance.registering import registered_parts

from .test_kit import BROKEN


@pytest.fixture(scope="package", autouse=True)
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For this folder's tests alone."""
    with registered_parts(tmp_path_factory.mktemp("registered"), BROKEN):
        yield
