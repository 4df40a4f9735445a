"""One name, one class: a name in configurations, indexes and stored results always means the same class."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from nlp_retrieval.core.components.code import is_own
from nlp_retrieval.errors import ConfigurationError, nearest

_KINDS = (
    "loaders",
    "processors",
    "retrievers",
    "rerankers",
    "encoders",
    "fusions",
    "searchers",
    "links",
    "answerers",
    "language_models",
)
"""The kinds of components of the library; a package adds its own by entry points of the group ``nlp_retrieval.kinds``."""


@cache
def kinds() -> tuple[str, ...]:
    """Return all kinds of components, including those of installed packages."""
    added = {entry.name for entry in entry_points(group="nlp_retrieval.kinds")} - set(_KINDS)
    return _KINDS + tuple(sorted(added))


@cache
def registered(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by their names.

    Raises:
        ConfigurationError: the kind does not exist, or two packages register the same name.
    """
    if kind not in kinds():
        raise ConfigurationError(f"there is no kind of component called {kind!r}; {nearest(kind, kinds())}")
    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"nlp_retrieval.{kind}"):
        other = entries.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigurationError(
                f"two packages register {entry.name!r} under nlp_retrieval.{kind}: {other.value} and {entry.value}; "
                "uninstall one of them"
            )
    return entries


def require_one_class_each(named: Iterable[tuple[str, str, type]]) -> None:
    """Raise an error if two classes have the same registry name.

    Args:
        named: kind, registry name and class of each component of a composition, or of a benchmark.

    Raises:
        ConfigurationError: two such classes exist.
    """
    classes: dict[tuple[str, str], type] = {}
    for kind, name, cls in named:
        other = classes.setdefault((kind, name), cls)
        if other is not cls:
            raise _two_classes(cls, kind, name, _path_of(other))
    for (kind, name), cls in classes.items():
        entry = None if is_own(cls) else registered(kind).get(name)
        if entry is not None and not _is_same(entry, cls):
            raise _two_classes(cls, kind, name, entry.value)


def _is_same(entry: EntryPoint, cls: type) -> bool:
    if entry.value == _path_of(cls):
        return True
    # a package may register a class under another module than the one that defines it
    same_package = entry.module.partition(".")[0] == cls.__module__.partition(".")[0]
    return same_package and entry.module in sys.modules and entry.load() is cls


def _path_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _two_classes(cls: type, kind: str, name: str, other: str) -> ConfigurationError:
    return ConfigurationError(
        f"{_path_of(cls)} is called {name!r}, as {other} is, and indexes and results would mix them up: give the class a name "
        f"of its own (name = ...) among nlp_retrieval.{kind}"
    )
