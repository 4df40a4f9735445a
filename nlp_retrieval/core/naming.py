"""One name, one class: what goes by a name in configurations, indexes and kept results is one thing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from nlp_retrieval.core.code import is_own
from nlp_retrieval.errors import ConfigurationError


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
        entry = None if is_own(cls) else _registered(kind, name)
        if entry is not None and not _is_same(entry, cls):
            raise _two(cls, kind, name, entry.value)


@cache
def _registered(kind: str, name: str) -> EntryPoint | None:
    """The entry point of a name, or None."""
    return next(iter(entry_points(group=f"nlp_retrieval.{kind}", name=name)), None)


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
