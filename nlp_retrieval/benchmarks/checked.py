"""Settings as pydantic dataclasses: one list of fields for Python, a file and a manifest, and messages in their words.

A field's type checks it, its ``serialization_alias`` is its key in a file, its ``examples`` show the right form in a message,
and ``exclude`` keeps it out of files. A message names the place, the value, and what would be valid.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform

import pydantic
from pydantic import BeforeValidator, ConfigDict, Strict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ArgsKwargs

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, InputError, nearest

T = TypeVar("T")


def _plain_integers(value: Any) -> Any:
    """Turn numpy's integers into Python's."""
    return int(value.__index__()) if hasattr(value, "__index__") and not isinstance(value, bool) else value


Integer = Annotated[int, Strict(), BeforeValidator(_plain_integers)]

_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
_QUOTED = re.compile("'([^']*)'")


@dataclass_transform(frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Make a class of settings: frozen, checked, and with :class:`ConfigurationError` for what is wrong."""
    made: Any = pydantic.dataclasses.dataclass(cls, frozen=True, repr=False, config=_CONFIG)

    @wraps(made.__init__)
    def checked(self: Any, *given: Any, **named: Any) -> None:
        _fill(self, ArgsKwargs(given, named), "")

    made.__init__ = checked
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _shown
    return made  # type: ignore[no-any-return]


def _shown(instance: Any) -> str:
    """Return the settings that differ from the defaults, without secrets."""
    values = {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}
    defaults = {field.name: field.default for field in dataclasses.fields(instance)}
    shown = (f"{name}={value!r}" for name, value in without_secrets(values).items() if values[name] != defaults[name])
    return f"{type(instance).__name__}({', '.join(shown)})"


def read_settings(cls: type[T], content: object, where: str) -> T:
    """Read settings from plain values."""
    return values_of(cls, by_field(cls, content, where), where)


def by_field(cls: type[Any], content: object, where: str, lacking: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the values of a file by field."""
    names = {key: name for name, key in keys_of(cls).items()}
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{where}: expected settings ({', '.join(names)}), found {without_secrets(content)!r}")
    for key in content:
        if key not in names:
            raise ConfigurationError(f"{where}: unknown key {key!r}; {nearest(str(key), names)}")
    needed = (key for key, name in names.items() if cls.__pydantic_fields__[name].is_required() and key not in content)
    if missing := list(needed if lacking is None else lacking):
        raise ConfigurationError(f"{where}: {', '.join(map(repr, missing))} missing; keys there can be: {', '.join(names)}")
    return {names[key]: value for key, value in content.items()}


def values_of(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Return settings with these values; messages name their keys in a file, after its place."""
    instance = object.__new__(cls)
    _fill(instance, ArgsKwargs((), dict(values)), where)
    return instance


def keys_of(cls: type[Any]) -> dict[str, str]:
    """Return the key of each field that a file and a manifest may hold."""
    fields: dict[str, FieldInfo] = cls.__pydantic_fields__
    shown = {name: info.serialization_alias for name, info in fields.items() if not info.exclude}
    return {name: name if alias is None else alias for name, alias in shown.items()}


def _fill(instance: Any, arguments: ArgsKwargs, where: str) -> None:
    try:
        type(instance).__pydantic_validator__.validate_python(arguments, self_instance=instance)
    except ValidationError as error:
        raise _in_words(type(instance), error, where) from None


def _in_words(cls: type[Any], error: ValidationError, where: str) -> InputError:
    """Return the first problem in words: with the keys of a file after its place, or the names of fields."""
    problems, fields = error.errors(include_url=False), cls.__pydantic_fields__
    # a mistyped key is reported before the key that is missing for it
    problem = next((detail for detail in problems if detail["type"] in _UNKNOWN), problems[0])
    names = keys_of(cls) if where else dict(zip(fields, fields, strict=True))
    start = f"{where}: " if where else ""
    kind, location = problem["type"], list(problem["loc"])
    if location and isinstance(location[0], int):  # given by position
        location[0] = list(fields)[location[0]]
    field = str(location[0]) if location else ""
    if kind in _UNKNOWN:
        return ConfigurationError(f"{start}unknown key {location[-1]!r}; {nearest(str(location[-1]), names.values())}")
    if kind in _MISSING:
        lacking = str(location[-1])
        known = f"; keys there can be: {', '.join(names.values())}" if len(location) == 1 else ""
        return ConfigurationError(f"{start}{names.get(lacking, lacking)!r} missing{known}")
    inside = [] if location[-1:] == ["[key]"] else location[1:]
    place = ".".join(filter(None, [names.get(field, field), *map(str, inside)]))
    raised = problem.get("ctx", {}).get("error")
    if isinstance(raised, InputError):
        said = str(raised)
        if place and not re.match(rf"{re.escape(field)}\W", said):  # unless it names the field itself
            said = f"{place}: {said}"
        return (ConfigurationError if where else type(raised))(start + said)
    value = without_secrets({field: problem["input"]})[field]
    return ConfigurationError(f"{start}{f'{place}: ' if place else ''}{_wanted(fields.get(field), problem, value)}")


def _wanted(field: FieldInfo | None, problem: Any, value: object) -> str:
    """Return what is expected, and what was found."""
    if problem["type"] == "literal_error":
        return f"{value!r}; {nearest(str(value), _QUOTED.findall(problem['ctx']['expected']))}"
    example = f", such as {field.examples[0]}" if field is not None and field.examples else ""
    return f"{problem['msg']}{example}; found {value!r}"
