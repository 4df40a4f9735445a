"""Entry points for components of the tests, by the way that installed packages give them: a ``.dist-info`` folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from nlp_retrieval.core.components.registry import registered

from .breaking import Broken

PARTS = {
    "encoders": {
        "hashed-words": "hashed_words:HashedWords",
        "hashed-tokens": "hashed_tokens:HashedTokens",
        "hashed-terms": "sparse_models:HashedTerms",
    },
    "loaders": {"in-memory": "hashed_words:InMemory", "loads_alone": "conformance.as_described:LoadsAlone"},
}
"""By kind and registry name, what the components under test are made of."""


def write_entry_points(folder: Path, entries: Mapping[str, Mapping[str, str]]) -> Path:
    """Write the metadata of a package that registers these into a folder for ``sys.path``; returns the folder."""
    info = folder / "conformance_parts-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: conformance-parts\nVersion: 1.0\n", "utf-8")
    lines = []
    for kind, named in entries.items():
        lines += [f"[nlp_retrieval.{kind}]", *(f"{name} = {target}" for name, target in named.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@contextmanager
def registered_parts(folder: Path, broken: Sequence[Broken] = (), **more: Mapping[str, str]) -> Iterator[None]:
    """Register the parts, components that break a rule, and more by their kinds, until the block ends.

    Args:
        folder: empty.
        broken: components that break a rule.
        more: further entry points of a kind.
    """
    entries = {kind: dict(named) for kind, named in (PARTS | more).items()}
    for cls in (one.component for one in broken):
        entries.setdefault(cls.kind, {})[cls.__name__] = f"{cls.__module__}:{cls.__qualname__}"
    sys.path.append(str(write_entry_points(folder, entries)))
    registered.cache_clear()
    yield
    sys.path.remove(str(folder))
    registered.cache_clear()
