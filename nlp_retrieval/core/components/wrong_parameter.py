"""What is said of an argument that does not fit the declared type or range of a parameter."""

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
"""Python's types in the words of a reader."""


def wrong_parameter(parameter: str, value: object, adapter: TypeAdapter[Any], error: ValidationError) -> str:
    """Say which part of an argument is wrong, and how it is written where one value was given in place of a list.

    Args:
        parameter: its name.
        value: the argument.
        adapter: what it has to fit.
        error: why it does not.
    """
    if not isinstance(value, list | tuple | Mapping) and _fits(adapter, [value]):
        shown = _shown(parameter, value)
        return f"{parameter}={shown}: a list is wanted; write {parameter}=[{shown}]"
    if isinstance(value, list | tuple) and len(value) == 1 and _fits(adapter, value[0]):
        shown = _shown(parameter, value[0])
        return f"{parameter}=[{shown}]: one is wanted, and no list; write {parameter}={shown}"
    # a union reports each of its branches; those that got furthest into the value are the ones that were meant
    places = [(_place(value, problem["loc"]), problem) for problem in error.errors(include_url=False)]
    furthest = max(len(place) for place, _ in places)
    meant = [(place, problem) for place, problem in places if len(place) == furthest]
    place, problem = meant[0]
    first, *others = dict.fromkeys(
        _MEANT.get(one["type"], _MEANT.get(one["msg"], one["msg"])) for at, one in meant if at == place
    )
    wanted = " or ".join([first, *(other.removeprefix("Input should be ") for other in others)])
    return f"{parameter}{''.join(f'[{part!r}]' for part in place)}={_shown(parameter, problem['input'], place)}: {wanted}"


def _place(value: object, location: Sequence[int | str]) -> list[int | str]:
    """The keys and numbers that lead into a value, without the names of the branches that pydantic puts between them."""
    found: list[int | str] = []
    for part in location:
        if (isinstance(value, Mapping) and part in value) or (isinstance(value, list | tuple) and isinstance(part, int)):
            found.append(part)
            value = value[part]  # type: ignore[index]
    return found


def _fits(adapter: TypeAdapter[Any], value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _shown(parameter: str, value: object, place: Sequence[int | str] = ()) -> str:
    """A value, unless it is a secret, or stands under a name that says so."""
    nested: Any = value
    for part in reversed(place):
        nested = {str(part): nested}
    found: Any = without_secrets({parameter: nested})[parameter]
    for part in place:
        found = found[str(part)] if isinstance(found, Mapping) else found
    return repr(found)
