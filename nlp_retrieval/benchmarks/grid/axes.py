"""The axes of a grid as they are written: values and their names, and combinations to leave out.

A list gives an axis its values, a mapping gives them names of their own too. A mapping whose ``name`` is text is a component,
for which a list was meant. ``skip`` names values by their labels. What can never take effect is an error, for nobody writes it
on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nlp_retrieval.benchmarks.grid.labels import labels_of, value_key
from nlp_retrieval.core.components.component import to_plain
from nlp_retrieval.errors import ConfigurationError, nearest

__all__ = ["Axis", "Skip", "read_axes", "read_skips"]

Skip = dict[str, frozenset[str]]
"""Labels by the path of their axis: a combination is left out where it has one of them on every axis that is named."""


@dataclass(frozen=True)
class Axis:
    """What is varied at one place.

    Args:
        path: of the place in the settings of a searcher, with dots.
        labels: of the values; no two equal.
        values: plain values, or components.
        named: whether the user gave the labels.
    """

    path: str
    labels: tuple[str, ...]
    values: tuple[object, ...]
    named: bool

    @property
    def segments(self) -> list[str]:
        """The parts of the path."""
        return self.path.split(".")


def read_axes(vary: object, where: str) -> list[Axis]:
    """Read axes, in the order in which they are written.

    Args:
        vary: by path, the values.
        where: place in a configuration, for messages.

    Raises:
        ConfigurationError: no axes; an axis without values, with two equal ones or two of one label, or with a condition.
    """
    if not isinstance(vary, Mapping) or not vary:
        raise ConfigurationError(
            f"{where}: expected axes by their paths, such as {{fusion: [rrf, combsum]}}, found {_shown(vary)}"
        )
    for path in vary:
        if not isinstance(path, str) or not all(segment.strip() for segment in path.split(".")):
            raise ConfigurationError(f"{where}: {path!r} is not a path; write keys with dots between them, such as fusion.k")
    return [_axis(path, given, f"{where}.{path}") for path, given in vary.items()]


def read_skips(skip: object, axes: Sequence[Axis], where: str) -> list[Skip]:
    """Read the combinations that are left out.

    Args:
        skip: a list of mappings from paths to labels.
        axes: of the grid.
        where: place in a configuration, for messages.

    Raises:
        ConfigurationError: it names an unknown axis or value.
    """
    if isinstance(skip, str | Mapping) or not isinstance(skip, Sequence):
        raise ConfigurationError(
            f"{where}: expected a list of combinations, such as [{{fusion: combsum, reranker: none}}], found {_shown(skip)}"
        )
    by_path = {axis.path: axis for axis in axes}
    return [_read_skip(given, by_path, f"{where}[{number}]") for number, given in enumerate(skip)]


def _axis(path: str, values: object, where: str) -> Axis:
    if isinstance(values, Mapping) and values and values.keys() <= {"values", "when"}:
        raise ConfigurationError(
            f"{where}: 'values' and 'when' are no names for values, and an axis has no condition; write the values themselves, "
            "leave combinations out under 'skip', or vary whole components: [{name: rrf, k: 10}, {name: rrf, k: 60}, combsum]"
        )
    if isinstance(values, Mapping) and isinstance(values.get("name"), str):
        raise ConfigurationError(
            f"{where}: a component stands where its values are expected; write them as a list, even if it is one: [{{name: "
            f"{values['name']}, ...}}]"
        )
    if isinstance(values, Mapping):
        named, labels = True, list(values)
        found: list[object] = list(values.values())
        for label in labels:
            if not isinstance(label, str) or not label.strip():
                raise ConfigurationError(f"{where}: {label!r} is not a name for a value; write text, in quotation marks")
    elif isinstance(values, Sequence) and not isinstance(values, str):
        named, found = False, list(values)
        labels = []
    else:
        raise ConfigurationError(f"{where}: expected a list of values, or values by name, found {_shown(values)}")
    if not found:
        raise ConfigurationError(f"{where}: no values; give at least one, or leave the axis out")
    seen: dict[str, int] = {}
    for place, value in enumerate(found):
        before = seen.setdefault(value_key(value), place)
        if before != place:
            raise ConfigurationError(f"{where}: values {before + 1} and {place + 1} are equal ({_shown(value)}); leave one out")
    labels = labels if named else labels_of(found)
    for place, label in enumerate(labels):
        before = labels.index(label)
        if before != place or not label.strip():
            what = f"values {before + 1} and {place + 1} would both be" if before != place else f"value {place + 1} would be"
            raise ConfigurationError(f"{where}: {what} called {label!r}; give them names of their own: {{name: value, ...}}")
    return Axis(path, tuple(labels), tuple(found), named)


def _read_skip(given: object, axes: Mapping[str, Axis], where: str) -> Skip:
    if not isinstance(given, Mapping) or not given:
        raise ConfigurationError(f"{where}: expected values by axis, such as {{fusion: rrf}}, found {_shown(given)}")
    labels: Skip = {}
    for path, wanted in given.items():
        if path not in axes:
            raise ConfigurationError(f"{where}: there is no axis {path!r}; {nearest(str(path), axes)}")
        several = isinstance(wanted, Sequence) and not isinstance(wanted, str)
        chosen = list(wanted) if isinstance(wanted, Sequence) and several else [wanted]
        if not chosen:
            raise ConfigurationError(f"{where}.{path}: no values; name at least one")
        labels[path] = frozenset(_label(one, axes[path], f"{where}.{path}") for one in chosen)
    return labels


def _label(wanted: object, axis: Axis, where: str) -> str:
    """The label that is meant: itself, or that of the number, truth value or null that is given."""
    if isinstance(wanted, str) and wanted in axis.labels:
        return wanted
    if wanted is None or isinstance(wanted, bool | int | float):
        for label, value in zip(axis.labels, axis.values, strict=True):
            if value_key(value) == value_key(wanted):
                return label
    shown = "none" if wanted is None else str(wanted)
    raise ConfigurationError(f"{where}: {axis.path!r} has no value called {shown!r}; {nearest(shown, axis.labels)}")


def _shown(value: object) -> str:
    """A value as it can stand in a message."""
    text = repr(to_plain(value))
    return text if len(text) <= 80 else f"{text[:77]}..."
