"""One name, one class: what goes by a name in configurations, indexes and kept results is one thing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from nlp_retrieval.core.components.code import is_own
from nlp_retrieval.errors import ConfigurationError, nearest

KINDS = ("loaders", "processors", "retrievers", "rerankers", "encoders", "fusions", "searchers", "links", "language_models")


@cache
def registered(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by their names.

    Raises:
        ConfigurationError: there is no such kind, or two packages register one name.
    """
    if kind not in KINDS:
        raise ConfigurationError(f"there is no kind of component called {kind!r}; {nearest(kind, KINDS)}")
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"nlp_retrieval.{kind}"):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigurationError(
                f"two packages register {entry.name!r} under nlp_retrieval.{kind}: {other.value} and {entry.value}; "
                "uninstall one of them"
            )
    return found


def require_one_class_each(named: Iterable[tuple[str, str, type]]) -> None:
    """Refuse a class that has the registry name of another, and two classes of one name.

    Args:
        named: kind, registry name and class of each component of a composition, or of a benchmark.

    Raises:
        ConfigurationError: there is such a class.
    """
    classes: dict[tuple[str, str], type] = {}
    for kind, name, cls in named:
        other = classes.setdefault((kind, name), cls)
        if other is not cls:
            raise _two(cls, kind, name, _place(other))
    for (kind, name), cls in classes.items():
        entry = None if is_own(cls) else registered(kind).get(name)
        if entry is not None and not _is_same(entry, cls):
            raise _two(cls, kind, name, entry.value)


def _is_same(entry: EntryPoint, cls: type) -> bool:
    if entry.value == _place(cls):
        return True
    # a package may register a class by another place than that where it stands
    same_package = entry.module.partition(".")[0] == cls.__module__.partition(".")[0]
    return same_package and entry.module in sys.modules and entry.load() is cls


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _two(cls: type, kind: str, name: str, other: str) -> ConfigurationError:
    return ConfigurationError(
        f"{_place(cls)} is called {name!r}, as {other} is; what goes by one name is taken for one thing: give the class a name "
        f"of its own (name = ...) among nlp_retrieval.{kind}"
    )
