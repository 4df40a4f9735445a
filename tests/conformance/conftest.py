"""The parts that components under test are made of are registered as an installed package would register them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from nlp_retrieval.core.components.naming import registered

from .broken_components import BROKEN, broken_retrievers
from .registering import PARTS, write_entry_points


@pytest.fixture(scope="package", autouse=True)
def registered_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For this folder's tests alone."""
    entries = {kind: dict(named) for kind, named in PARTS.items()}
    entries["retrievers"] = {"words": f"{broken_retrievers.Words.__module__}:Words"}
    for broken in BROKEN:
        cls = broken.component
        entries.setdefault(cls.kind, {})[cls.__name__] = f"{cls.__module__}:{cls.__qualname__}"
    folder = str(write_entry_points(tmp_path_factory.mktemp("registered"), entries))
    sys.path.append(folder)
    registered.cache_clear()
    yield
    sys.path.remove(folder)
    registered.cache_clear()
