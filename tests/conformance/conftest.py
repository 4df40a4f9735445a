"""The parts that components under test are made of are registered as an installed package would register them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import as_described
from .broken_components import BROKEN, Words
from .registering import registered_parts


@pytest.fixture(scope="package", autouse=True)
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For this folder's tests alone."""
    words = {"words": f"{Words.__module__}:Words"}
    described = {
        kind: {cls.name: f"{cls.__module__}:{cls.__name__}" for cls in vars(as_described).values() if _is_of(kind, cls)}
        for kind in ("retrievers", "rerankers")
    }
    described["retrievers"] |= words
    with registered_parts(tmp_path_factory.mktemp("registered"), BROKEN, **described):
        yield


def _is_of(kind: str, cls: object) -> bool:
    return getattr(cls, "__module__", "") == as_described.__name__ and getattr(cls, "kind", "") == kind
