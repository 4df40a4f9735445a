"""Many configurations from one: the varied settings, and the names of the results."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from nlp_retrieval.benchmarks.entrants import Entry, TrecRun
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.core.components.component import Component, Config, to_plain
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, nearest
from nlp_retrieval.text.printing import counted

# Dotted paths into the settings of a searcher: through mappings by key, and through lists by registry name, or by number if a
# name occurs twice. A component given by name alone, or as an object, counts as a mapping of its settings.


Place = tuple[str | int, ...]
"""A path as keys and numbers: two paths to the same setting are equal as places."""


def with_value(settings: object, segments: Sequence[str], value: object, passed: str = "") -> tuple[object, Place]:
    """Return the settings with a value set at a path, and its place; ``passed`` is the path to the settings, for messages."""
    head, *rest = segments
    opened, here = _opened(settings), passed or "the searcher"
    there = f"{passed}.{head}" if passed else head
    if isinstance(opened, Mapping):
        if rest and head not in opened:
            raise ConfigurationError(f"{here} has no {head!r}; {nearest(head, map(str, opened))}")
        inner, place = with_value(opened[head], rest, value, there) if rest else (value, ())
        return {**opened, head: inner}, (head, *place)
    if isinstance(opened, list | tuple):
        number = _number_of(head, opened, here)
        inner, place = with_value(opened[number], rest, value, there) if rest else (value, ())
        return [*opened[:number], inner, *opened[number + 1 :]], (number, *place)
    raise ConfigurationError(f"{here} is {'null' if opened is None else repr(opened)}, which has no {head!r}")


def _opened(settings: object) -> object:
    if isinstance(settings, Component):
        return settings.config
    return {"name": settings} if isinstance(settings, str) else settings


def _number_of(head: str, listed: Sequence[object], here: str) -> int:
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in map(_opened, listed)]
    numbers = [number for number, name in enumerate(names) if head in (name, str(number))]
    if len(numbers) == 1:
        return numbers[0]
    if numbers:
        raise ConfigurationError(f"{here} has several entries called {head!r}; write a number, from 0 to {len(names) - 1}")
    raise ConfigurationError(f"{here} has no {head!r}; {nearest(head, filter(None, names))}, or a number from 0")


# Labels of values in names of configurations, in skips and in plans: the registry name of a component, and what distinguishes
# values of one name. Two values are equal if they describe equal components: ``10`` and ``10.0``, ``rrf`` and ``{name: rrf}``.


def value_key(value: object) -> str:
    """Return a text that is the same for equal values only, of plain values or components."""
    return json.dumps(_normal(to_plain(value)), sort_keys=True, ensure_ascii=False, default=repr)


def labels_of(values: Sequence[object]) -> list[str]:
    """Return the label of each of distinct values, which are plain or components."""
    plain = [to_plain(value) for value in values]
    labels = [_short(value) for value in plain]
    for label in list(dict.fromkeys(labels)):
        alike = [number for number, other in enumerate(labels) if other == label]
        if len(alike) > 1:
            for number, distinct in zip(alike, _distinct_labels([plain[number] for number in alike]), strict=True):
                labels[number] = distinct
    return labels


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


_STAGES = ("processor", "retrievers", "reranker")
"""The parts of a searcher that name it, in order."""


def named_searchers(searchers: Sequence[Entry]) -> dict[str, Entry]:
    """Return searchers by names made of their parts (``bm25+faiss >> cross_encoder``) and of what else distinguishes them."""
    configs = [searcher.config for searcher in searchers]
    columns = [_column([config.get(key) for config in configs]) for key in _STAGES]
    names = []
    for searcher, config, labels in zip(searchers, configs, zip(*columns, strict=True), strict=True):
        parts = [label for key, label in zip(_STAGES, labels, strict=True) if config.get(key)]
        if isinstance(config.get("reranker"), list):
            parts[-1] = parts[-1].replace("+", " >> ")
        own = Path(searcher.path).stem if isinstance(searcher, TrecRun) else ""
        kind = [] if config["name"] == Searcher.name and parts else [str(config["name"])]
        names.append(own or " ".join([*kind, " >> ".join(parts)]).strip())
    for name in list(dict.fromkeys(names)):
        alike = [number for number, other in enumerate(names) if other == name]
        if len(alike) > 1:
            rest = [{k: v for k, v in configs[number].items() if k not in ("name", *_STAGES)} for number in alike]
            for number, label in zip(alike, labels_of([{"name": name} | each for each in rest]), strict=True):
                names[number] = label
    if (repeated := first_repeated(names)) is not None:
        first, second = [number + 1 for number, name in enumerate(names) if name == repeated][:2]
        raise ConfigurationError(
            f"searchers {first} and {second} are equal, or differ in nothing that can be shown ({repeated}); leave one out, or "
            "give them names: {'name': searcher, ...}"
        )
    return dict(zip(names, searchers, strict=True))


# A grid: every combination of the axes' values is a configuration, except those that ``skip`` leaves out. A name consists of
# the labels of the values, with the name of the axis if the label alone is not clear.

MOST = 10_000
"""Maximum number of combinations."""

Combination = tuple[int, ...]
"""The number of the value on each axis."""


@dataclass(frozen=True)
class Grid:
    """Searchers of a grid or their settings by name, and the values of each axis."""

    searchers: dict[str, Any]
    axes: dict[str, str]
    values: dict[str, dict[str, str | int | float]]


@dataclass(frozen=True)
class _Axis:
    """One axis: the path of a setting, its values and their labels, and whether the user gave these."""

    path: str
    labels: list[str]
    values: list[object]
    named: bool

    def recorded(self, value: int) -> str | int | float:
        """A value: a number or text unchanged, otherwise its label."""
        chosen = self.values[value]
        return chosen if isinstance(chosen, str | int | float) and not self.named else self.labels[value]


def build_grid(
    searcher: Mapping[str, Any] | BaseSearcher,
    vary: Mapping[str, Any],
    skip: Sequence[Mapping[str, Any]] = (),
    where: str = "grid",
) -> Grid:
    """Build every configuration of a grid; of equal ones the first."""
    expanded = expand_grid(searcher, vary, skip, where)
    searchers: dict[str, tuple[str, BaseSearcher]] = {}
    for name, settings in expanded.searchers.items():
        composed = cast(BaseSearcher, build("searchers", {"name": Searcher.name} | settings, f"{where}[{name!r}]"))
        searchers.setdefault(value_key(composed.config), (name, composed))
    kept = dict(searchers.values())
    if equal := [name for name in expanded.searchers if name not in kept]:
        said = f"{counted(len(equal), 'configuration equals', 'configurations equal')} an earlier one, and only that runs"
        warnings.warn(f"{where}: {said} (left out: {equal[0]!r})", RetrievalWarning, stacklevel=2)
    return replace(expanded, searchers=kept, values={name: expanded.values[name] for name in kept})


def expand_grid(searcher: object, vary: object, skip: object = (), where: str = "grid") -> Grid:
    """Return the settings of every configuration of a grid, by name."""
    if isinstance(searcher, BaseSearcher):
        searcher = {"name": searcher.name} | searcher._arguments
    if not isinstance(searcher, Mapping):
        raise ConfigurationError(f"{where}.searcher: expected the settings of a searcher, found {searcher!r}")
    if not isinstance(vary, Mapping) or not vary:
        raise ConfigurationError(
            f"{where}.vary: expected axes by their paths, such as {{fusion: [rrf, combsum]}}, found {_shown(vary)}"
        )
    axes = [_axis(str(path), values, f"{where}.vary.{path}") for path, values in vary.items()]
    drawn = _left(axes, skip, where)
    short = [_short_path(axis, axes) for axis in axes]
    settings: dict[str, Config] = {}
    values: dict[str, dict[str, str | int | float]] = {}
    for name, chosen in zip(_names(axes, drawn, where), drawn, strict=True):
        settings[name] = _settings(searcher, axes, chosen, where)
        values[name] = {key: axis.recorded(value) for key, axis, value in zip(short, axes, chosen, strict=True)}
    return Grid(settings, {key: axis.path for key, axis in zip(short, axes, strict=True)}, values)


def _axis(path: str, given: object, where: str) -> _Axis:
    is_component = isinstance(given, Mapping) and isinstance(given.get("name"), str)
    if is_component or isinstance(given, str) or not isinstance(given, Mapping | Sequence) or not given:
        raise ConfigurationError(f"{where}: expected a list of values, even of one, or values by name, found {_shown(given)}")
    named = isinstance(given, Mapping)
    values = list(given.values()) if isinstance(given, Mapping) else list(given)
    labels = list(map(str, given)) if named else labels_of(values)
    if (repeated := first_repeated(map(value_key, values))) is not None:
        raise ConfigurationError(f"{where}: the value {repeated} is there twice; leave one out")
    if (repeated := first_repeated(labels)) is not None:
        raise ConfigurationError(
            f"{where}: two values would be called {repeated!r}; give them names of their own: {{name: value, ...}}"
        )
    return _Axis(path, labels, values, named)


def _left(axes: Sequence[_Axis], skip: object, where: str) -> list[Combination]:
    """Return the combinations of the axes' values that no skip leaves out."""
    count = math.prod(len(axis.values) for axis in axes)
    if count > MOST:
        raise ConfigurationError(f"{where}: {count:,} combinations are more than {MOST:,}; vary less")
    rules = _skips(skip, axes, f"{where}.skip")
    left = [
        chosen
        for chosen in itertools.product(*(range(len(axis.values)) for axis in axes))
        if not any(all(chosen[axis] in values for axis, values in rule.items()) for rule in rules)
    ]
    if not left:
        raise ConfigurationError(f"{where}.skip: leaves no combination; remove some of it")
    return left


def _skips(skip: object, axes: Sequence[_Axis], where: str) -> list[dict[int, set[int]]]:
    """Return, for each combination to leave out, the numbers of the values by the numbers of their axes."""
    if isinstance(skip, str) or not isinstance(skip, Sequence) or not all(isinstance(rule, Mapping) and rule for rule in skip):
        raise ConfigurationError(
            f"{where}: expected a list of combinations, such as [{{fusion: combsum, reranker: none}}], found {_shown(skip)}"
        )
    numbers = {axis.path: number for number, axis in enumerate(axes)}
    rules = []
    for place, rule in enumerate(skip):
        chosen: dict[int, set[int]] = {}
        for path, wanted in rule.items():
            if path not in numbers:
                raise ConfigurationError(f"{where}[{place}]: there is no axis {path!r}; {nearest(str(path), numbers)}")
            several = list(wanted) if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
            axis = axes[numbers[path]]
            chosen[numbers[path]] = {_value_of(value, axis, f"{where}[{place}].{path}") for value in several}
        rules.append(chosen)
    return rules


def _value_of(wanted: object, axis: _Axis, where: str) -> int:
    """The number of the value meant: by its label, or the given number, truth value or null."""
    keys = [value_key(value) for value in axis.values]
    if isinstance(wanted, str) and wanted in axis.labels:
        return axis.labels.index(wanted)
    if not isinstance(wanted, str) and value_key(wanted) in keys:
        return keys.index(value_key(wanted))
    raise ConfigurationError(f"{where}: {axis.path!r} has no value called {wanted!r}; {nearest(str(wanted), axis.labels)}")


def _shown(value: object) -> str:
    return f"{to_plain(value)!r:.80}"


def _settings(searcher: Mapping[str, Any], axes: Sequence[_Axis], chosen: Combination, where: str) -> Config:
    """The settings of one combination. Whole components are set before their parameters."""
    settings: object = dict(searcher)
    path_of: dict[Place, str] = {}
    for axis, number in sorted(zip(axes, chosen, strict=True), key=lambda pair: pair[0].path.count(".")):
        try:
            settings, place = with_value(settings, axis.path.split("."), axis.values[number])
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{where}.vary.{axis.path}: {error}; write it under {where}.searcher, or make whole components the values of "
                "the axis that takes it away"
            ) from None
        if (other := path_of.setdefault(place, axis.path)) != axis.path:
            raise ConfigurationError(f"{where}.vary.{axis.path}: sets the same value as {other}; make them one axis")
    return cast(Config, settings)


def _names(axes: Sequence[_Axis], drawn: Sequence[Combination], where: str) -> list[str]:
    """A name for each combination: its labels, prefixed with the axis if they are unclear on their own."""

    def joined(parts: Sequence[Sequence[str]]) -> list[str]:
        return [", ".join(texts[value] for texts, value in zip(parts, chosen, strict=True)) for chosen in drawn]

    names = joined([_parts(axis, axes) for axis in axes])
    if len(set(names)) < len(names):
        names = joined([[f"{axis.path}={label}" for label in axis.labels] for axis in axes])
    if (repeated := first_repeated(names)) is not None:
        raise ConfigurationError(f"{where}: two configurations would be called {repeated!r}; give values other names")
    return names


def _parts(axis: _Axis, axes: Sequence[_Axis]) -> list[str]:
    """Return the text for each value of an axis in names."""
    elsewhere = {label for other in axes if other is not axis for label in other.labels}
    key = _short_path(axis, axes)
    return [
        label if label not in elsewhere and (axis.named or _says_itself(to_plain(value))) else f"{key}={label}"
        for label, value in zip(axis.labels, axis.values, strict=True)
    ]


def _says_itself(plain: object) -> bool:
    """Return whether a label is clear on its own: text and components are, ``10`` and ``none`` are not."""
    if isinstance(plain, dict):
        return isinstance(plain.get("name"), str) or (bool(plain) and all(map(_says_itself, plain.values())))
    if isinstance(plain, list):
        return bool(plain) and all(map(_says_itself, plain))
    return isinstance(plain, str)


def _short_path(axis: _Axis, axes: Sequence[_Axis]) -> str:
    """The shortest end of a path, in whole segments, that no other axis shares."""
    segments = axis.path.split(".")
    for count in range(1, len(segments)):
        if all(other is axis or other.path.split(".")[-count:] != segments[-count:] for other in axes):
            return ".".join(segments[-count:])
    return axis.path


def with_grid(run: BenchmarkRun, grid: Grid) -> BenchmarkRun:
    """Return a run whose manifest records, under ``grid``, the axes of a grid and their values in each configuration."""
    record = {"axes": grid.axes, "values": without_secrets(grid.values)}
    return replace(run, report=replace(run.report, manifest=run.report.manifest | {"grid": record}))
