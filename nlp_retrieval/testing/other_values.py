"""Other valid values for parameters of a component, derived from their type hints where possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from nlp_retrieval.core.components.component import Component, parameters_of, to_plain
from nlp_retrieval.errors import ConfigurationError

ComponentT = TypeVar("ComponentT", bound=Component)


def others_of(component: ComponentT, given: Mapping[str, object]) -> Iterator[tuple[str, ComponentT | None]]:
    """Yield every parameter with a component that differs in it alone; None if no other valid value is known.

    Args:
        component: the component to vary.
        given: another value by parameter, if the type hint does not suggest one.
    """
    hints = get_type_hints(type(component).__init__, include_extras=True)
    for parameter in parameters_of(type(component)):
        if parameter in given:
            yield parameter, with_value(component, parameter, given[parameter])
            continue
        now = component._arguments.get(parameter)
        yield parameter, next(_valid(component, parameter, now, hints.get(parameter)), None)


def with_value(component: ComponentT, parameter: str, value: object) -> ComponentT:
    """Return a component with one parameter changed.

    Raises:
        ConfigurationError: the value is not valid.
    """
    return type(component)(**(component._arguments | {parameter: value}))


def _valid(component: ComponentT, parameter: str, now: object, hint: object) -> Iterator[ComponentT]:
    for value in _candidates(now, hint):
        if value == now and isinstance(value, bool) == isinstance(now, bool):
            continue
        try:
            made = with_value(component, parameter, value)
        except ConfigurationError:
            continue
        if to_plain(made._arguments[parameter]) != to_plain(now):
            yield made


def _candidates(now: object, hint: object) -> Iterator[object]:
    for option in _options(hint):
        if get_origin(option) is Literal:
            yield from get_args(option)
        elif option is bool:
            yield from (True, False)
        elif option is int:
            base = now if isinstance(now, int) else 1
            yield from (base + 1, base - 1, base * 2, base // 2)
        elif option is float:
            near = float(now) if isinstance(now, int | float) else 0.5
            yield from (near * 0.75, near * 1.5, near + 0.25, near - 0.25)


def _options(hint: object) -> Iterator[object]:
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _options(get_args(hint)[0])
    elif origin in (Union, UnionType):
        for part in get_args(hint):
            yield from _options(part)
    else:
        yield hint
