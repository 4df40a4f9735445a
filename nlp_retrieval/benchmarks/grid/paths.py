"""Where a dotted path leads in the settings of a searcher, and the settings with another value there.

A path goes through mappings by their keys and through lists by registry name, or by number where a name stands twice. A
component that is written by its name alone, or given as an object, is a mapping of its settings. All but the last key must be
there. Nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.errors import ConfigurationError, nearest

__all__ = ["Place", "with_value"]

Place = tuple[str | int, ...]
"""A path as keys and numbers: two paths that lead to one place are equal as places."""


def with_value(settings: object, segments: Sequence[str], value: object, passed: Place = ()) -> tuple[object, Place]:
    """Return settings that hold a value at a path, and the place that it is.

    Args:
        settings: plain values, or components.
        segments: the path.
        value: what is to be there.
        passed: the place where the settings are, for messages.

    Raises:
        ConfigurationError: the path leads nowhere, or to several components of one name.
    """
    head, *rest = segments
    here = _opened(settings)
    if isinstance(here, Mapping):
        if rest and head not in here:
            raise ConfigurationError(f"{_told(passed)} has no {head!r}; {nearest(head, map(str, here))}")
        inner, place = with_value(here[head], rest, value, (*passed, head)) if rest else (value, (*passed, head))
        return {**here, head: inner}, place
    if isinstance(here, list | tuple):
        number = _number_of(head, here, passed)
        inner, place = with_value(here[number], rest, value, (*passed, number)) if rest else (value, (*passed, number))
        return [*here[:number], inner, *here[number + 1 :]], place
    raise ConfigurationError(f"{_told(passed)} is {'null' if here is None else repr(here)}, which has no {head!r}")


def _opened(settings: object) -> object:
    if isinstance(settings, Component):
        return settings.config
    return {"name": settings} if isinstance(settings, str) else settings


def _number_of(head: str, listed: Sequence[object], passed: Place) -> int:
    if head.isdecimal():
        if int(head) < len(listed):
            return int(head)
        raise ConfigurationError(f"{_told(passed)} has {len(listed)} entries; the last is number {len(listed) - 1}")
    names = [_name_of(entry) for entry in listed]
    numbers = [number for number, name in enumerate(names) if name == head]
    if len(numbers) > 1:
        raise ConfigurationError(
            f"{_told(passed)} has several entries called {head!r}; write its number instead: {', '.join(map(str, numbers))}"
        )
    if not numbers:
        known = [name for name in names if name is not None]
        raise ConfigurationError(f"{_told(passed)} has no {head!r}; {nearest(head, known)}")
    return numbers[0]


def _name_of(entry: object) -> str | None:
    opened = _opened(entry)
    name = opened.get("name") if isinstance(opened, Mapping) else None
    return name if isinstance(name, str) else None


def _told(place: Place) -> str:
    return ".".join(map(str, place)) or "the searcher"
