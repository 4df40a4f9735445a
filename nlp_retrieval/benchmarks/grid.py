"""Many configurations from one: the varied settings, and the names of the results."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from nlp_retrieval.benchmarks.entrants import Benchmarkable, Entry, TrecRun
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.core.components.component import Component, Config, to_plain
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, nearest

# Dotted paths into the settings of a searcher, and copies of the settings with another value at a path.
#
# A path goes through mappings by key and through lists by registry name, or by number if a name occurs twice. A
# component given by name alone, or as an object, counts as a mapping of its settings. All but the last key must
# exist. Nothing is changed in place.

Place = tuple[str | int, ...]
"""A path as keys and numbers: two paths to the same setting are equal as places."""


def with_value(settings: object, segments: Sequence[str], value: object, passed: Place = ()) -> tuple[object, Place]:
    """Return the settings with a value set at a path, and its place.

    Args:
        settings: plain values, or components.
        segments: the path.
        value: the new value.
        passed: the path to the settings, for messages.

    Raises:
        ConfigurationError: the path does not exist, or is ambiguous because several components share a name.
    """
    head, *rest = segments
    opened = _opened(settings)
    if isinstance(opened, Mapping):
        if rest and head not in opened:
            raise ConfigurationError(f"{_dotted(passed)} has no {head!r}; {nearest(head, map(str, opened))}")
        inner, full_path = with_value(opened[head], rest, value, (*passed, head)) if rest else (value, (*passed, head))
        return {**opened, head: inner}, full_path
    if isinstance(opened, list | tuple):
        number = _number_of(head, opened, passed)
        inner, full_path = with_value(opened[number], rest, value, (*passed, number)) if rest else (value, (*passed, number))
        return [*opened[:number], inner, *opened[number + 1 :]], full_path
    raise ConfigurationError(f"{_dotted(passed)} is {'null' if opened is None else repr(opened)}, which has no {head!r}")


def _opened(settings: object) -> object:
    if isinstance(settings, Component):
        return settings.config
    return {"name": settings} if isinstance(settings, str) else settings


def _number_of(head: str, listed: Sequence[object], passed: Place) -> int:
    if head.isdecimal():
        if int(head) < len(listed):
            return int(head)
        raise ConfigurationError(f"{_dotted(passed)} has {len(listed)} entries; the last is number {len(listed) - 1}")
    names = [_name_of(entry) for entry in listed]
    numbers = [number for number, name in enumerate(names) if name == head]
    if len(numbers) > 1:
        raise ConfigurationError(
            f"{_dotted(passed)} has several entries called {head!r}; write its number instead: {', '.join(map(str, numbers))}"
        )
    if not numbers:
        known = [name for name in names if name is not None]
        raise ConfigurationError(f"{_dotted(passed)} has no {head!r}; {nearest(head, known)}")
    return numbers[0]


def _name_of(entry: object) -> str | None:
    opened = _opened(entry)
    name = opened.get("name") if isinstance(opened, Mapping) else None
    return name if isinstance(name, str) else None


def _dotted(segments: Place) -> str:
    return ".".join(map(str, segments)) or "the searcher"


# Labels of values: the text for a value in names of configurations, in conditions and in plans.
#
# The label of a component is its registry name. Values with equal labels get additional parts that distinguish them. Two values
# are equal if the components that they describe are equal: ``10`` and ``10.0``, ``rrf`` and ``{name: rrf}``.


def value_key(value: object) -> str:
    """Return a text that is the same for equal values only.

    Args:
        value: plain values, or components.
    """
    return json.dumps(_normal(to_plain(value)), sort_keys=True, ensure_ascii=False, default=repr)


def labels_of(values: Sequence[object]) -> list[str]:
    """Return the label of each value.

    Args:
        values: distinct values; plain values, or components.

    Returns:
        One per value. Two are the same only if nothing but their types or keys distinguishes the values (``10`` and ``"10"``).
    """
    plain = [to_plain(value) for value in values]
    labels = [_short(value) for value in plain]
    places: dict[str, list[int]] = {}
    for number, label in enumerate(labels):
        places.setdefault(label, []).append(number)
    for alike in places.values():
        if len(alike) > 1:
            for number, label in zip(alike, _distinct_labels([plain[number] for number in alike]), strict=True):
                labels[number] = label
    return labels


def named_searchers(searchers: Sequence[Entry]) -> dict[str, Entry]:
    """Return searchers by names made of their parts (``bm25+faiss >> cross_encoder``) and of what else distinguishes them.

    Args:
        searchers: distinct searchers, or runs of other tools, which are called by their files.

    Raises:
        ConfigurationError: two of them are equal.
    """
    configs = [searcher.config for searcher in searchers]
    paths = [Path(searcher.path).stem if isinstance(searcher, TrecRun) else "" for searcher in searchers]
    columns = [_column([config.get(key) for config in configs]) for key in _STAGES]
    columns[-1] = [
        label.replace("+", " >> ") if isinstance(config.get("reranker"), list) else label
        for label, config in zip(columns[-1], configs, strict=True)
    ]
    names = [
        path or " >> ".join(label for key, label in zip(_STAGES, stages, strict=True) if config.get(key)) or str(config["name"])
        for path, config, stages in zip(paths, configs, zip(*columns, strict=True), strict=True)
    ]
    for name in list(dict.fromkeys(names)):
        alike = [number for number, other in enumerate(names) if other == name]
        if len(alike) > 1:
            rest = [
                {"name": name} | {k: v for k, v in configs[number].items() if k not in ("name", *_STAGES)} for number in alike
            ]
            for number, label in zip(alike, labels_of(rest), strict=True):
                names[number] = label
    if (repeated := first_repeated(names)) is not None:
        first, second = [number + 1 for number, name in enumerate(names) if name == repeated][:2]
        raise ConfigurationError(
            f"searchers {first} and {second} are equal, or differ in nothing that can be shown ({repeated}); leave one out, or "
            "give them names: {'name': searcher, ...}"
        )
    return dict(zip(names, searchers, strict=True))


_STAGES = ("processor", "retrievers", "reranker")
"""The parts of a searcher that name it, in order."""


def says_itself(value: object) -> bool:
    """Return whether a label is clear on its own: text and components are, ``10`` and ``none`` are not."""
    plain = to_plain(value)
    if isinstance(plain, dict):
        return isinstance(plain.get("name"), str) or (bool(plain) and all(map(says_itself, plain.values())))
    if isinstance(plain, list):
        return bool(plain) and all(map(says_itself, plain))
    return isinstance(plain, str)


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        is_name_only = len(value) == 1 and isinstance(value.get("name"), str)
        return value["name"] if is_name_only else {key: _normal(inner) for key, inner in value.items()}
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


def _distinct_labels(values: list[Any]) -> list[str]:
    """Labels of values whose short labels are equal."""
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
        having = [number for number, value in enumerate(fields) if key in value]
        texts = _column([fields[number][key] for number in having])
        if len(having) < len(fields) or len(set(texts)) > 1:
            for number, label in zip(having, texts, strict=True):
                labels[number] += f" {key}={label}"
    return labels


def _column(values: list[Any]) -> list[str]:
    distinct = {value_key(value): value for value in values}
    labels = dict(zip(distinct, labels_of(list(distinct.values())), strict=True))
    return [labels[value_key(value)] for value in values]


# A grid: many configurations from the settings of one searcher and the axes varied in them.
#
# Every combination of the axes' values is a configuration, except those that ``skip`` leaves out; with too many, a random
# sample of them. A name consists of the labels of the values, with the name of the axis if the label alone is not
# clear. Names and order depend only on the settings, and duplicate configurations are removed.

# The axes of a grid as written: values and their names, and combinations to leave out.
#
# A list gives an axis its values; a mapping also gives them names. A mapping whose ``name`` is text is a
# component, where a list was intended. ``skip`` refers to values by their labels. Settings without effect raise an error,
# because nobody writes them on purpose.

Skip = dict[str, frozenset[str]]
"""Labels by the path of their axis: a combination is left out if it has one of the labels on every axis named."""


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Args:
        path: dotted path of the setting in a searcher's settings.
        labels: labels of the values; all distinct.
        values: plain values, or components.
        named: whether the labels were given by the user.
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
        vary: the values by path.
        where: path in a configuration, for messages.

    Raises:
        ConfigurationError: no axes; an axis without values, with two equal values or labels, or with a condition.
    """
    if not isinstance(vary, Mapping) or not vary:
        raise ConfigurationError(
            f"{where}: expected axes by their paths, such as {{fusion: [rrf, combsum]}}, found {_shown(vary)}"
        )
    for path in vary:
        if not isinstance(path, str) or not all(segment.strip() for segment in path.split(".")):
            raise ConfigurationError(f"{where}: {path!r} is not a path; write keys with dots between them, such as fusion.k")
    return [_axis(path, values, f"{where}.{path}") for path, values in vary.items()]


def read_skips(skip: object, axes: Sequence[Axis], where: str) -> list[Skip]:
    """Read the combinations to leave out.

    Args:
        skip: a list of mappings from paths to labels.
        axes: axes of the grid.
        where: path in a configuration, for messages.

    Raises:
        ConfigurationError: it names an unknown axis or value.
    """
    if isinstance(skip, str | Mapping) or not isinstance(skip, Sequence):
        raise ConfigurationError(
            f"{where}: expected a list of combinations, such as [{{fusion: combsum, reranker: none}}], found {_shown(skip)}"
        )
    by_path = {axis.path: axis for axis in axes}
    return [_read_skip(rule, by_path, f"{where}[{number}]") for number, rule in enumerate(skip)]


def _axis(path: str, values: object, where: str) -> Axis:
    if isinstance(values, Mapping) and values and values.keys() <= {"values", "when"}:
        raise ConfigurationError(
            f"{where}: 'values' and 'when' cannot be names of values, and an axis has no condition; write the values "
            "themselves, leave combinations out under 'skip', or vary whole components: [{name: rrf, k: 10}, "
            "{name: rrf, k: 60}, combsum]"
        )
    if isinstance(values, Mapping) and isinstance(values.get("name"), str):
        raise ConfigurationError(
            f"{where}: a component is given where a list of values is expected; write a list, even of one: [{{name: "
            f"{values['name']}, ...}}]"
        )
    if isinstance(values, Mapping):
        has_labels, labels = True, list(values)
        listed: list[object] = list(values.values())
        for label in labels:
            if not isinstance(label, str) or not label.strip():
                raise ConfigurationError(f"{where}: {label!r} is not a name for a value; write text, in quotation marks")
    elif isinstance(values, Sequence) and not isinstance(values, str):
        has_labels, listed = False, list(values)
        labels = []
    else:
        raise ConfigurationError(f"{where}: expected a list of values, or values by name, found {_shown(values)}")
    if not listed:
        raise ConfigurationError(f"{where}: no values; give at least one, or leave the axis out")
    seen: dict[str, int] = {}
    for number, value in enumerate(listed):
        before = seen.setdefault(value_key(value), number)
        if before != number:
            raise ConfigurationError(
                f"{where}: values {before + 1} and {number + 1} are equal ({_shown(value)}); leave one out"
            )
    labels = labels if has_labels else labels_of(listed)
    for number, label in enumerate(labels):
        before = labels.index(label)
        if before != number or not label.strip():
            which = (
                f"values {before + 1} and {number + 1} would both be" if before != number else f"value {number + 1} would be"
            )
            raise ConfigurationError(f"{where}: {which} called {label!r}; give them names of their own: {{name: value, ...}}")
    return Axis(path, tuple(labels), tuple(listed), has_labels)


def _read_skip(rule: object, axes: Mapping[str, Axis], where: str) -> Skip:
    if not isinstance(rule, Mapping) or not rule:
        raise ConfigurationError(f"{where}: expected values by axis, such as {{fusion: rrf}}, found {_shown(rule)}")
    labels: Skip = {}
    for path, wanted in rule.items():
        if path not in axes:
            raise ConfigurationError(f"{where}: there is no axis {path!r}; {nearest(str(path), axes)}")
        several = isinstance(wanted, Sequence) and not isinstance(wanted, str)
        chosen = list(wanted) if isinstance(wanted, Sequence) and several else [wanted]
        if not chosen:
            raise ConfigurationError(f"{where}.{path}: no values; name at least one")
        labels[path] = frozenset(_label(value, axes[path], f"{where}.{path}") for value in chosen)
    return labels


def _label(wanted: object, axis: Axis, where: str) -> str:
    """The label meant: the text itself, or the label of the given number, truth value or null."""
    if isinstance(wanted, str) and wanted in axis.labels:
        return wanted
    if wanted is None or isinstance(wanted, bool | int | float):
        for label, value in zip(axis.labels, axis.values, strict=True):
            if value_key(value) == value_key(wanted):
                return label
    shown = "none" if wanted is None else str(wanted)
    raise ConfigurationError(f"{where}: {axis.path!r} has no value called {shown!r}; {nearest(shown, axis.labels)}")


def _shown(value: object) -> str:
    """A value as shown in a message."""
    text = repr(to_plain(value))
    return text if len(text) <= 80 else f"{text[:77]}..."


# The combinations of a grid: the product of its axes, the last one varying fastest, except those left out.
#
# Each has a number in the whole product, so a sample can be drawn without listing the others. The combinations left by ``skip``
# are counted by iterating over the product, which must then not be larger than a million.

Combination = tuple[int, ...]
"""The number of the value on each axis."""

_MOST_WITH_SKIPS = 1_000_000


class Combinations:
    """The product of all axes without the skipped combinations.

    Args:
        axes: axes of the grid.
        skips: combinations to leave out.
        where: path in a configuration, for messages.

    Raises:
        ConfigurationError: skips are used with more than a million combinations, or nothing is left.
    """

    def __init__(self, axes: Sequence[Axis], skips: Sequence[Skip], where: str) -> None:
        self._sizes = [len(axis.values) for axis in axes]
        self.count = math.prod(self._sizes)
        self._left: Sequence[int] = range(self.count)
        if skips and self.count > _MOST_WITH_SKIPS:
            raise ConfigurationError(
                f"{where}: chooses from {self.count:,} combinations, and 'skip' is supported for {_MOST_WITH_SKIPS:,} at most; "
                "vary less, or remove 'skip'"
            )
        if skips:
            numbers = {axis.path: {label: number for number, label in enumerate(axis.labels)} for axis in axes}
            places = {axis.path: number for number, axis in enumerate(axes)}
            rules = [
                [(places[path], {numbers[path][label] for label in labels}) for path, labels in skip.items()] for skip in skips
            ]
            product = itertools.product(*map(range, self._sizes))
            self._left = [number for number, values in enumerate(product) if not _is_skipped(values, rules)]
            self.count = len(self._left)
        if not self.count:
            raise ConfigurationError(f"{where}: leaves no combination; remove some of it")

    def drawn(self, sample: int | None, seed: int) -> list[Combination]:
        """Return combinations in order: all, or a sample.

        Args:
            sample: number to draw, each with the same probability and without repetition; None: all.
            seed: seed of the sample.
        """
        if sample is None or sample >= self.count:
            return [self._combination(number) for number in self._left]
        draw = random.Random(seed)  # noqa: S311 -- a sample
        chosen: set[int] = set()
        while len(chosen) < sample:
            chosen.add(draw.randrange(self.count))
        return [self._combination(self._left[number]) for number in sorted(chosen)]

    def _combination(self, number: int) -> Combination:
        """The combination with a given number in the product."""
        values = []
        for size in reversed(self._sizes):
            number, value = divmod(number, size)
            values.append(value)
        return tuple(reversed(values))


def _is_skipped(combination: Combination, rules: Sequence[Sequence[tuple[int, set[int]]]]) -> bool:
    return any(all(combination[axis] in values for axis, values in rule) for rule in rules)


MOST = 10_000
"""Maximum number of configurations; more combinations must be sampled."""


@dataclass(frozen=True)
class Grid:
    """The searchers of a grid.

    Args:
        searchers: by name.
        combinations: how many there are; more than the searchers if they were sampled.
        equal: combinations included under another name, by their own name.
        axes: the path of each axis, by its unambiguous short name.
        values: values of the axes by short name, for each searcher: numbers and text unchanged, components as labels.
    """

    searchers: dict[str, Benchmarkable]
    combinations: int
    equal: dict[str, str] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str | int | float]] = field(default_factory=dict)


def build_grid(
    searcher: Mapping[str, Any] | BaseSearcher,
    vary: Mapping[str, Any],
    *,
    skip: Sequence[Mapping[str, Any]] = (),
    sample: int | None = None,
    seed: int = 0,
    where: str = "grid",
) -> Grid:
    """Build every configuration of a grid; the arguments are those of :func:`expand_grid`.

    Raises:
        ConfigurationError: as :func:`expand_grid`; or a configuration has an unknown name or parameter, or a value of the wrong
            type or out of range. The message names the configuration and the place in it.
    """
    expanded = expand_grid(searcher, vary, skip=skip, sample=sample, seed=seed, where=where)
    searchers: dict[str, Benchmarkable] = {}
    equal = dict(expanded.equal)
    name_of: dict[str, str] = {}
    for name, settings in expanded.settings.items():
        # everything registered as a searcher has the interface that a benchmark needs
        composed = cast(Benchmarkable, build("searchers", {"name": Searcher.name} | settings, f"{where}[{name!r}]"))
        first = name_of.setdefault(value_key(composed.config), name)
        if first == name:
            searchers[name] = composed
        else:
            equal[name] = first
    equal = {name: equal.get(first, first) for name, first in equal.items()}
    return Grid(searchers, expanded.combinations, equal, expanded.axes, {name: expanded.values[name] for name in searchers})


@dataclass(frozen=True)
class ExpandedGrid:
    """The settings of the configurations of a grid, by name; the rest as in :class:`Grid`."""

    settings: dict[str, Config]
    combinations: int
    equal: dict[str, str]
    axes: dict[str, str]
    values: dict[str, dict[str, str | int | float]]


def expand_grid(
    searcher: object,
    vary: object,
    *,
    skip: object = (),
    sample: object = None,
    seed: int = 0,
    where: str = "grid",
) -> ExpandedGrid:
    """Return the settings of every configuration of a grid, by name.

    A value is written as in a configuration file, or is a component. The label of a value, used by ``skip``, is: for a
    component its registry name, with the parameters that distinguish it from others of that name; for null ``none``; for a
    named value that name. A list of labels means any of them; several axes mean all of them.

    Args:
        searcher: the settings shared by all configurations, as in a configuration file; or a searcher that has them.
        vary: by dotted path into the settings, the values: a list, or a mapping if they have their own names.
        skip: combinations to leave out, as ``{path: label}``.
        sample: number of combinations to draw, each with the same probability and without repetition, in order. None:
            all of them.
        seed: seed of the sample.
        where: path in a configuration, for messages.

    Returns:
        In the order of the axes, the last one varying fastest. Duplicate settings appear once, under the first name;
        a sample may then be smaller.

    Raises:
        ConfigurationError: a path does not exist, an axis has no values or two equal ones, a skip names something
            that does not exist, nothing is left, or over 10,000 combinations without a sample or a million with skips.
    """
    if isinstance(searcher, BaseSearcher):
        searcher = {"name": searcher.name} | searcher._arguments
    if not isinstance(searcher, Mapping):
        raise ConfigurationError(f"{where}.searcher: expected the settings of a searcher, found {searcher!r}")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or not 1 <= sample <= MOST):
        raise ConfigurationError(f"{where}.sample: expected an integer from 1 to {MOST:,}, found {sample!r}")
    axes = read_axes(vary, f"{where}.vary")
    combinations = Combinations(axes, read_skips(skip, axes, f"{where}.skip"), f"{where}.skip")
    if sample is None and combinations.count > MOST:
        raise ConfigurationError(
            f"{where}: {combinations.count:,} combinations are more than {MOST:,}; draw some of them (sample: 50), or vary less"
        )
    drawn = combinations.drawn(sample, seed)
    settings: dict[str, Config] = {}
    name_of: dict[str, str] = {}
    equal: dict[str, str] = {}
    short = [_short_path(axis, axes) for axis in axes]
    values: dict[str, dict[str, str | int | float]] = {}
    for name, chosen in zip(_names(axes, drawn, where), drawn, strict=True):
        combined = _settings(searcher, axes, chosen, name, where)
        first = name_of.setdefault(value_key(combined), name)
        if first == name:
            settings[name] = combined
            values[name] = {key: _recorded_value(axis, value) for key, axis, value in zip(short, axes, chosen, strict=True)}
        else:
            equal[name] = first
    return ExpandedGrid(
        settings, combinations.count, equal, {key: axis.path for key, axis in zip(short, axes, strict=True)}, values
    )


def _recorded_value(axis: Axis, value: int) -> str | int | float:
    """A value of an axis: a number or text unchanged, otherwise its label."""
    chosen_value = axis.values[value]
    return chosen_value if isinstance(chosen_value, str | int | float) and not axis.named else axis.labels[value]


def _settings(searcher: Mapping[str, Any], axes: Sequence[Axis], chosen: Combination, name: str, where: str) -> Config:
    """The settings of one combination. Whole components are set before their parameters."""
    settings: object = dict(searcher)
    path_of: dict[Place, str] = {}
    for axis, value in sorted(zip(axes, chosen, strict=True), key=lambda pair: len(pair[0].segments)):
        try:
            settings, full_path = with_value(settings, axis.segments, axis.values[value])
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{where}.vary.{axis.path}: cannot be followed in the configuration {name!r}: {error}; write it under "
                f"{where}.searcher, or make whole components the values of the axis that takes it away"
            ) from None
        other = path_of.setdefault(full_path, axis.path)
        if other != axis.path:
            raise ConfigurationError(
                f"{where}.vary.{axis.path}: sets the same value as {other!r} in the configuration {name!r}; make them one axis"
            )
    return cast(Config, settings)


def _names(axes: Sequence[Axis], drawn: Sequence[Combination], where: str) -> list[str]:
    """A name for each combination: its labels, prefixed with the axis if they are unclear on their own."""
    names = _joined_labels([_parts(axis, axes) for axis in axes], drawn)
    if len(set(names)) < len(names):
        names = _joined_labels([[f"{axis.path}={label}" for label in axis.labels] for axis in axes], drawn)
    if (repeated := first_repeated(names)) is not None:
        raise ConfigurationError(f"{where}: two configurations would be called {repeated!r}; give values other names")
    return names


def _joined_labels(parts: Sequence[Sequence[str]], drawn: Sequence[Combination]) -> list[str]:
    return [", ".join(texts[value] for texts, value in zip(parts, chosen, strict=True)) for chosen in drawn]


def _parts(axis: Axis, axes: Sequence[Axis]) -> list[str]:
    """Return the text for each value of an axis in names."""
    elsewhere = {label for other in axes if other is not axis for label in other.labels}
    key = _short_path(axis, axes)
    return [
        label if label not in elsewhere and (axis.named or says_itself(value)) else f"{key}={label}"
        for label, value in zip(axis.labels, axis.values, strict=True)
    ]


def _short_path(axis: Axis, axes: Sequence[Axis]) -> str:
    """The shortest end of a path, in whole segments, that no other axis shares."""
    segments = axis.segments
    for count in range(1, len(segments)):
        if all(other is axis or other.segments[-count:] != segments[-count:] for other in axes):
            return ".".join(segments[-count:])
    return axis.path


# A run that records the grid of its configurations.


def with_grid(run: BenchmarkRun, grid: Grid) -> BenchmarkRun:
    """Return a run whose manifest records, under ``grid``, the axes and their values in each configuration.

    Args:
        run: run of the grid's searchers, and possibly others.
        grid: the grid that was run.
    """
    record = {"axes": grid.axes, "values": without_secrets(grid.values)}
    return replace(run, report=replace(run.report, manifest=run.report.manifest | {"grid": record}))
