"""The axes of a grid as they are written: values and their names, conditions, and combinations to leave out.

A list gives an axis its values, a mapping gives them names of their own too. A mapping that holds ``values`` or ``when`` is an
axis with a condition, and holds nothing else; one whose ``name`` is text is a component, for which a list was meant. Conditions
and ``skip`` name values by their labels. What can never take effect is an error, for nobody writes it on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nlp_retrieval.benchmarks.grid.labels import labels_of, value_key
from nlp_retrieval.core.components.component import to_plain
from nlp_retrieval.errors import ConfigurationError, nearest

__all__ = ["Axis", "Terms", "read_axes", "read_skips"]

Terms = dict[str, frozenset[str]]
"""By the path of an axis, the labels that are meant: holds where every axis is varied and has one of its labels."""

_LONG_FORM = ("values", "when")


@dataclass(frozen=True)
class Axis:
    """What is varied at one place.

    Args:
        path: of the place in the settings of a searcher, with dots.
        labels: of the values; no two equal.
        values: plain values, or components.
        named: whether the user gave the labels.
        when: where the axis is varied; empty: everywhere.
    """

    path: str
    labels: tuple[str, ...]
    values: tuple[object, ...]
    named: bool
    when: Terms

    @property
    def segments(self) -> list[str]:
        """The parts of the path."""
        return self.path.split(".")


def read_axes(vary: object, where: str) -> list[Axis]:
    """Read axes, and put each behind those that its condition names; otherwise their order stays.

    Args:
        vary: by path, the values.
        where: place in a configuration, for messages.

    Raises:
        ConfigurationError: no axes; an axis without values, with two equal ones or two of one label; a condition that names
            an unknown axis or value, that leads back to its own axis, or that can never hold.
    """
    if not isinstance(vary, Mapping) or not vary:
        raise ConfigurationError(
            f"{where}: expected axes by their paths, such as {{fusion: [rrf, combsum]}}, found {_shown(vary)}"
        )
    axes: dict[str, Axis] = {}
    conditions: dict[str, object] = {}
    for path, given in vary.items():
        if not isinstance(path, str) or not all(segment.strip() for segment in path.split(".")):
            raise ConfigurationError(f"{where}: {path!r} is no path; write keys with dots between them, such as fusion.k")
        values, condition = _long_form(given, f"{where}.{path}")
        axes[path] = _axis(path, values, f"{where}.{path}")
        if condition is not None:
            conditions[path] = condition
    terms = {path: _read_terms(one, axes, f"{where}.{path}.when") for path, one in conditions.items()}
    conditioned = {path: Axis(path, axis.labels, axis.values, axis.named, terms.get(path, {})) for path, axis in axes.items()}
    ordered = _ordered(conditioned, where)
    for axis in ordered:
        if (conflict := _impossible(axis.when, conditioned)) is not None:
            raise ConfigurationError(
                f"{where}.{axis.path}.when: can never hold, because {conflict!r} would need two values at once; change one of "
                "the conditions"
            )
    return ordered


def read_skips(skip: object, axes: Sequence[Axis], where: str) -> list[Terms]:
    """Read the combinations that are left out.

    Args:
        skip: a list of mappings from paths to labels.
        axes: of the grid.
        where: place in a configuration, for messages.

    Raises:
        ConfigurationError: it names an unknown axis or value, or what no combination has.
    """
    if isinstance(skip, str | Mapping) or not isinstance(skip, Sequence):
        raise ConfigurationError(
            f"{where}: expected a list of combinations, such as [{{fusion: combsum, reranker: none}}], found {_shown(skip)}"
        )
    by_path = {axis.path: axis for axis in axes}
    skips = []
    for place, given in enumerate(skip):
        terms = _read_terms(given, by_path, f"{where}[{place}]")
        if (conflict := _impossible(terms, by_path)) is not None:
            raise ConfigurationError(
                f"{where}[{place}]: no combination is like that, because {conflict!r} would need two values at once; leave it "
                "out"
            )
        skips.append(terms)
    return skips


def _long_form(given: object, where: str) -> tuple[object, object | None]:
    """The values of an axis, and its condition, which may be None."""
    if not isinstance(given, Mapping) or not any(key in given for key in _LONG_FORM):
        return given, None
    for key in given:
        if key not in _LONG_FORM:
            raise ConfigurationError(
                f"{where}: {key!r} stands beside 'values' or 'when', which make it an axis with a condition; valid there: "
                "values, when (values with names of their own: {values: {name: value}})"
            )
    if "values" not in given:
        raise ConfigurationError(f"{where}: 'values' missing; write {{values: [...], when: {{axis: value}}}}")
    if "when" in given and not given["when"]:
        raise ConfigurationError(f"{where}.when: no condition; leave 'when' out, or write {{axis: value}}")
    return given["values"], given.get("when")


def _axis(path: str, values: object, where: str) -> Axis:
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
                raise ConfigurationError(f"{where}: {label!r} is no name for a value; write text, in quotation marks")
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
    return Axis(path, tuple(labels), tuple(found), named, {})


def _read_terms(given: object, axes: Mapping[str, Axis], where: str) -> Terms:
    if not isinstance(given, Mapping) or not given:
        raise ConfigurationError(f"{where}: expected values by axis, such as {{fusion: rrf}}, found {_shown(given)}")
    terms: Terms = {}
    for path, wanted in given.items():
        if path not in axes:
            raise ConfigurationError(f"{where}: there is no axis {path!r}; {nearest(str(path), axes)}")
        several = isinstance(wanted, Sequence) and not isinstance(wanted, str)
        chosen = list(wanted) if isinstance(wanted, Sequence) and several else [wanted]
        if not chosen:
            raise ConfigurationError(f"{where}.{path}: no values; name at least one")
        terms[path] = frozenset(_label(one, axes[path], f"{where}.{path}") for one in chosen)
    return terms


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


def _ordered(axes: Mapping[str, Axis], where: str) -> list[Axis]:
    placed: dict[str, Axis] = {}
    while len(placed) < len(axes):
        ready = (axis for path, axis in axes.items() if path not in placed and all(one in placed for one in axis.when))
        chosen = next(ready, None)
        if chosen is None:
            stuck = [path for path in axes if path not in placed]
            raise ConfigurationError(
                f"{where}.{stuck[0]}.when: conditions lead in a circle ({', '.join(stuck)}); take one of them out"
            )
        placed[chosen.path] = chosen
    return list(placed.values())


def _impossible(terms: Terms, axes: Mapping[str, Axis]) -> str | None:
    """The axis that would need two values at once for these terms to hold, conditions of their axes included; or None."""
    allowed: dict[str, frozenset[str]] = {}
    pending = list(terms.items())
    while pending:
        path, labels = pending.pop()
        allowed[path] = allowed.get(path, frozenset(axes[path].labels)) & labels
        if not allowed[path]:
            return path
        pending += axes[path].when.items()
    return None


def _shown(value: object) -> str:
    """A value as it can stand in a message."""
    text = repr(to_plain(value))
    return text if len(text) <= 80 else f"{text[:77]}..."
