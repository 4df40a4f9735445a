"""Settings as pydantic dataclasses: one list of fields for Python, a file and a manifest, and messages in their words.

A field's type checks it, its ``serialization_alias`` is its key in a file, its ``examples`` show the right form in a message,
and ``exclude`` keeps it out of files. A message names the place, the value, and what would be valid.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

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
_QUOTED = re.compile("'([^']*)'")
_EXPECTED = {
    "string_type": "text",
    "string_too_short": "text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "dataclass_type": "settings",
}


@dataclass_transform(frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Make a class of settings: frozen, checked, and with :class:`ConfigurationError` for what is wrong."""
    made: Any = pydantic.dataclasses.dataclass(cls, frozen=True, repr=False, config=_CONFIG)
    plain = made.__init__

    @wraps(plain)
    def checked(self: Any, *given: Any, **named: Any) -> None:
        _fill(self, ArgsKwargs(given, named), "")

    made.__init__ = checked
    made.__signature__ = _plain_signature(made)
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _shown
    return made  # type: ignore[no-any-return]


def _plain_signature(made: type[Any]) -> inspect.Signature:
    """Return the signature for help(), with the types alone."""
    own = inspect.signature(made)
    plain = [parameter.replace(annotation=_first_of_annotated(parameter.annotation)) for parameter in own.parameters.values()]
    return own.replace(parameters=plain)


def _first_of_annotated(annotation: Any) -> Any:
    if not isinstance(annotation, str) or not annotation.startswith("Annotated["):
        return annotation
    expression = ast.parse(annotation, mode="eval").body
    return (
        ast.unparse(expression.slice.elts[0])
        if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Tuple)
        else annotation
    )


def _by_text(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in values.items()}


def _shown(instance: Any) -> str:
    changed = {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}
    defaults = {field.name: field.default for field in dataclasses.fields(instance)}
    shown = (f"{name}={value!r}" for name, value in without_secrets(changed).items() if changed[name] != defaults[name])
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
    _fill(instance, ArgsKwargs((), _by_text(values)), where)
    return instance


def fields_of(cls: type[Any]) -> dict[str, FieldInfo]:
    """Return the fields of a class of settings that a file and a manifest may hold."""
    known: dict[str, FieldInfo] = cls.__pydantic_fields__
    return {name: info for name, info in known.items() if not info.exclude}


def keys_of(cls: type[Any]) -> dict[str, str]:
    """Return the key in a file of each of these fields."""
    aliases = {name: info.serialization_alias for name, info in fields_of(cls).items()}
    return {name: name if alias is None else alias for name, alias in aliases.items()}


def _fill(instance: Any, arguments: ArgsKwargs, where: str) -> None:
    try:
        type(instance).__pydantic_validator__.validate_python(arguments, self_instance=instance)
    except ValidationError as error:
        raise _in_words(type(instance), error, where) from None


def _in_words(cls: type[Any], error: ValidationError, where: str) -> InputError:
    problems = error.errors(include_url=False)
    # a mistyped key is reported before the key that is missing for it
    problem = next((detail for detail in problems if detail["type"] in _UNKNOWN), problems[0])
    kind, location, value = problem["type"], list(problem["loc"]), problem["input"]
    if location and isinstance(location[0], int):  # given by position
        location[0] = list(cls.__pydantic_fields__)[location[0]]
    known = (lambda owner: list(keys_of(owner).values())) if where else (lambda owner: list(owner.__pydantic_fields__))
    if kind in _UNKNOWN:
        owner, place = _owner(cls, location[:-1]), _place(cls, location[:-1], where)
        return ConfigurationError(f"{_start(place)}unknown key {location[-1]!r}; {nearest(str(location[-1]), known(owner))}")
    if kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
        owner, place = _owner(cls, location[:-1]), _place(cls, location[:-1], where)
        keys = keys_of(owner) if where else {}
        lacking = [
            str(detail["loc"][-1])
            for detail in problems
            if detail["type"] == kind and list(detail["loc"][:-1]) == location[:-1]
        ]
        names = ", ".join(repr(keys.get(name, name)) for name in lacking)
        return ConfigurationError(f"{_start(place)}{names} missing; keys there can be: {', '.join(known(owner))}")
    raised = problem.get("ctx", {}).get("error")
    if location[-1:] == ["[key]"]:  # an invalid key of a mapping
        location = location[:-2]
    place = _place(cls, location, where)
    if isinstance(raised, InputError):
        own, last = str(raised), str(location[-1]) if location else ""
        if last and re.match(rf"{re.escape(last)}\W", own):  # it names the field itself
            place = _place(cls, location[:-1], where)
        return (ConfigurationError if where else type(raised))(f"{_start(place)}{own}")
    shown = without_secrets({str(location[-1]) if location else "": value})
    return ConfigurationError(f"{_start(place)}{_wanted(cls, location, problem, next(iter(shown.values())))}")


def _wanted(cls: type[Any], location: list[Any], problem: Any, value: object) -> str:
    """Return what is expected at a place, and what was found there."""
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "literal_error":
        return f"{value!r}; {nearest(str(value), _QUOTED.findall(context['expected']))}"
    if kind in ("greater_than_equal", "less_than_equal"):
        bound, which = (context["ge"], "least") if "ge" in context else (context["le"], "most")
        shown = f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"
        return f"expected {'an integer' if isinstance(bound, int) else 'a number'} of at {which} {shown}, found {value!r}"
    expected = f"a {context['class']}" if kind == "is_instance_of" else _EXPECTED.get(kind, "")
    if not expected:
        return f"{value!r}: {problem['msg']}"
    examples = _examples(cls, location)
    if kind == "dataclass_type" and not examples:
        expected += f" ({', '.join(keys_of(_owner(cls, location)).values())})"
    return f"expected {expected}{f' such as {examples[0]}' if examples else ''}, found {value!r}"


def _examples(cls: type[Any], location: list[Any]) -> list[Any]:
    owner = _owner(cls, location[:-1]) if location else None
    fields: Mapping[str, FieldInfo] = getattr(owner, "__pydantic_fields__", {})
    field = fields.get(str(location[-1])) if location else None
    return list(field.examples or []) if field is not None else []


def _owner(cls: type[Any], location: list[Any]) -> type[Any]:
    """Return the class of settings at a place inside other settings."""
    type_found: Any = cls
    for part in location:
        hint = (
            get_type_hints(type_found).get(str(part))
            if dataclasses.is_dataclass(type_found)
            else (get_args(type_found) or (None,))[-1]
        )
        is_mapping = get_origin(hint) in (dict, Mapping)
        type_found = hint if is_mapping else next(filter(dataclasses.is_dataclass, get_args(hint)), hint)
    return type_found if dataclasses.is_dataclass(type_found) else cls  # type: ignore[return-value]


def _place(cls: type[Any], location: list[Any], where: str) -> str:
    """Return a place: with the keys of a file, or the names of fields; a field with an empty key is not shown."""
    keys = keys_of(cls)
    first = keys.get(str(location[0])) if location else None
    parts = [*map(str, location)]
    if first is not None and (where or not first):
        parts[0] = first
    return ": ".join(filter(None, (where, ".".join(filter(None, parts)))))


def _start(place: str) -> str:
    return f"{place}: " if place else ""
