"""The message about an argument that does not fit the declared type or range of a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from nlp_retrieval.core.secrets import without_secrets

_MEANT = {
    "dict_type": "Input should be a mapping",
    "sequence_str": "Input should be a list",
    "Input should be an instance of Sequence": "Input should be a list",
}
"""pydantic's messages in plain words."""


def wrong_parameter(parameter: str, value: object, adapter: TypeAdapter[Any], error: ValidationError) -> str:
    """Return a message that says which part of an argument is wrong, and shows how to write a list or a single value.

    Args:
        parameter: name of the parameter.
        value: the argument.
        adapter: checks the declared type and range.
        error: why the argument does not fit.
    """
    if not isinstance(value, list | tuple | Mapping) and _fits(adapter, [value]):
        shown = _shown(parameter, value)
        return f"{parameter}={shown}: a list is expected; write {parameter}=[{shown}]"
    if isinstance(value, list | tuple) and len(value) == 1 and _fits(adapter, value[0]):
        shown = _shown(parameter, value[0])
        return f"{parameter}=[{shown}]: one value is expected, not a list; write {parameter}={shown}"
    # a union reports each of its branches; the branches that got furthest into the value were meant
    places = [(_place(value, problem["loc"]), problem) for problem in error.errors(include_url=False)]
    furthest = max(len(place) for place, _ in places)
    meant = [(place, problem) for place, problem in places if len(place) == furthest]
    place, problem = meant[0]
    first, *others = dict.fromkeys(
        _MEANT.get(same["type"], _MEANT.get(same["msg"], same["msg"])) for at, same in meant if at == place
    )
    wanted = " or ".join([first, *(other.removeprefix("Input should be ") for other in others)])
    return f"{parameter}{''.join(f'[{part!r}]' for part in place)}={_shown(parameter, problem['input'], place)}: {wanted}"


def _place(value: object, location: Sequence[int | str]) -> list[int | str]:
    """The keys and indices that lead into a value, without the names of branches that pydantic puts between them."""
    path: list[int | str] = []
    for part in location:
        if (isinstance(value, Mapping) and part in value) or (isinstance(value, list | tuple) and isinstance(part, int)):
            path.append(part)
            value = value[part]  # type: ignore[index]
    return path


def _fits(adapter: TypeAdapter[Any], value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _shown(parameter: str, value: object, place: Sequence[int | str] = ()) -> str:
    """A value as text, hidden if it or the name above it looks like a secret."""
    nested: Any = value
    for part in reversed(place):
        nested = {str(part): nested}
    shown: Any = without_secrets({parameter: nested})[parameter]
    for part in place:
        shown = shown[str(part)] if isinstance(shown, Mapping) else shown
    return repr(shown)
