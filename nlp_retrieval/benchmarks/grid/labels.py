"""What a value is called: the text that stands for it in names of configurations, in conditions and in plans.

A component is called by its registry name. Values that would be called the same take along what tells them apart. Two
values are equal where the components that they describe are: ``10`` and ``10.0``, ``rrf`` and ``{name: rrf}``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nlp_retrieval.core.components.component import to_plain

__all__ = ["labels_of", "says_itself", "value_key"]


def value_key(value: object) -> str:
    """Return a text that equal values share, and no others.

    Args:
        value: plain values, or components.
    """
    return json.dumps(_normal(to_plain(value)), sort_keys=True, ensure_ascii=False, default=repr)


def labels_of(values: Sequence[object]) -> list[str]:
    """Return what each value is called.

    Args:
        values: no two of them equal; plain values, or components.

    Returns:
        One per value. Two are the same only where nothing but their types or keys tells the values apart (``10`` and ``"10"``).
    """
    plain = [to_plain(value) for value in values]
    labels = [_short(value) for value in plain]
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    for alike in places.values():
        if len(alike) > 1:
            for place, label in zip(alike, _told_apart([plain[place] for place in alike]), strict=True):
                labels[place] = label
    return labels


def says_itself(value: object) -> bool:
    """Whether a label can stand alone: text and components say what they are, ``10`` and ``none`` do not."""
    plain = to_plain(value)
    if isinstance(plain, dict):
        return isinstance(plain.get("name"), str) or (bool(plain) and all(map(says_itself, plain.values())))
    if isinstance(plain, list):
        return bool(plain) and all(map(says_itself, plain))
    return isinstance(plain, str)


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        alone = len(value) == 1 and isinstance(value.get("name"), str)
        return value["name"] if alone else {key: _normal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_normal(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _short(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        name = value.get("name")
        return name if isinstance(name, str) else "+".join(map(_short, value.values()))
    return "+".join(map(_short, value)) if isinstance(value, list) else str(_normal(value))


def _told_apart(values: list[Any]) -> list[str]:
    """Labels of values that are called the same when they are told briefly."""
    if all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        return _joined(values)
    fields = [{"name": value} if isinstance(value, str) else value for value in values]
    if all(isinstance(value, dict) and isinstance(value.get("name"), str) for value in fields):
        return _with_parameters(fields)
    if all(isinstance(value, dict) and list(value) == list(values[0]) for value in values):
        return _joined([list(value.values()) for value in values])
    return [_short(value) for value in values]


def _joined(rows: list[list[Any]]) -> list[str]:
    columns = [_column(list(column)) for column in zip(*rows, strict=True)]
    return ["+".join(parts) for parts in zip(*columns, strict=True)]


def _with_parameters(fields: list[dict[str, Any]]) -> list[str]:
    """The name, and the parameters in which components of one name differ."""
    labels = [value["name"] for value in fields]
    for key in dict.fromkeys(key for value in fields for key in value):
        having = [place for place, value in enumerate(fields) if key in value]
        told = _column([fields[place][key] for place in having])
        if len(having) < len(fields) or len(set(told)) > 1:
            for place, label in zip(having, told, strict=True):
                labels[place] += f" {key}={label}"
    return labels


def _column(values: list[Any]) -> list[str]:
    distinct = {value_key(value): value for value in values}
    labels = dict(zip(distinct, labels_of(list(distinct.values())), strict=True))
    return [labels[value_key(value)] for value in values]
