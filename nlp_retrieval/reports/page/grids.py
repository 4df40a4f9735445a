"""The axes of a sweep, and heat maps of the main measure over two or three of them.

The axes are those that the run recorded. Without a record they are the differences between configurations: a parameter of
otherwise equal components, or a whole component. Configurations outside the grid, such as a separate baseline, are left out
of the drawing if there are only a few.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nlp_retrieval.benchmarks.grid import labels_of, value_key
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.reports.figures import grid_axes
from nlp_retrieval.reports.page.charts import finite

_FULL, _OUTSIDE, _RARE = 0.6, 0.25, 0.25
_MOST = 1000
_LEVELS = 8
_MOST_AXES = 6


@dataclass(frozen=True)
class GridAxis:
    """An axis.

    Args:
        path: dotted path of the parameter.
        keys: keys of the values, in display order.
        labels: labels of the values.
        is_number: whether all values are numbers.
    """

    path: str
    keys: Sequence[str]
    labels: Sequence[str]
    is_number: bool

    @property
    def title(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2].replace("_", " ")


@dataclass(frozen=True)
class HeatCell:
    """One cell of a grid.

    Args:
        position: that of its configuration in the report; -1 if it was not run.
        name: name of its configuration.
        value: value of the measure; None if it was not measured.
        level: from 0, the lowest value of all, to 7, the highest.
        best: whether no other value is higher.
    """

    position: int
    name: str
    value: float | None
    level: int
    best: bool


@dataclass(frozen=True)
class HeatMaps:
    """A grid of two parameters, or one for each value of a third.

    Args:
        measure: the measure shown.
        rows: from top to bottom.
        columns: from left to right.
        third: the axis that distinguishes the maps; None if there is one map.
        maps: the cells of each, row by row.
        outside: number of configurations outside the grid.
    """

    measure: str
    rows: GridAxis
    columns: GridAxis
    third: GridAxis | None
    maps: Sequence[tuple[str, Sequence[tuple[str, Sequence[HeatCell]]]]]
    outside: int


def axes_of(report: BenchmarkReport) -> Mapping[str, Mapping[str, str]]:
    """Return the values of a sweep's axes as text, by axis and configuration; empty if there is no grid."""
    if recorded := grid_axes(report):
        return recorded
    inside, axes, places = _grid(report)
    titles = Counter(axis.title for axis in axes)
    return {
        axis.title if titles[axis.title] == 1 else axis.path: {
            result.name: axis.labels[axis.keys.index(places[result.name][axis.path])]
            for result in sorted(inside, key=lambda result: axis.keys.index(places[result.name][axis.path]))
        }
        for axis in axes
    }


def heat_maps(report: BenchmarkReport) -> HeatMaps | None:
    """Return the main measure over the grid of a sweep; None if most configurations do not form a grid of two or three axes."""
    inside, axes, places = _grid(report)
    if not 2 <= len(axes) <= 3:
        return None
    axes = sorted(axes, key=lambda axis: (len(axis.keys), axis.is_number))
    third = axes.pop(0) if len(axes) == 3 else None
    rows, columns = axes
    by_keys: dict[tuple[str, ...], ConfigurationResult] = {}
    for result in inside:
        keys = places[result.name]
        by_keys.setdefault(tuple(keys[axis.path] for axis in (*filter(None, [third]), rows, columns)), result)
    values = [result.measures[report.main_measure] for result in by_keys.values()]
    low, high = min(values), max(values)
    numbers = {result.name: position for position, result in enumerate(report.configurations)}

    def cell(result: ConfigurationResult | None) -> HeatCell:
        value = result.measures[report.main_measure] if result is not None else None
        level = int(min(_LEVELS - 1, _LEVELS * (value - low) / (high - low))) if value is not None and high > low else 0
        name = result.name if result is not None else ""
        return HeatCell(numbers.get(name, -1), name, value, level, value == high > low)

    maps = [
        (
            label,
            [
                (row, [cell(by_keys.get((*key, row_key, column_key))) for column_key in columns.keys])
                for row_key, row in zip(rows.keys, rows.labels, strict=True)
            ],
        )
        for key, label in (
            [((one,), label) for one, label in zip(third.keys, third.labels, strict=True)] if third else [((), "")]
        )
    ]
    return HeatMaps(report.main_measure, rows, columns, third, maps, len(_measured(report)) - len(inside))


def _measured(report: BenchmarkReport) -> list[ConfigurationResult]:
    return [one for one in report.configurations if finite(one.measures.get(report.main_measure)) is not None]


def _grid(report: BenchmarkReport) -> tuple[list[ConfigurationResult], list[GridAxis], Mapping[str, Mapping[str, str]]]:
    """The configurations of a grid, its axes, and the value of each on each; no axes if there is no grid."""
    results = _measured(report)
    if not 4 <= len(results) <= _MOST:
        return [], [], {}
    inside = _alike(results)
    while len(inside) >= max(4, (1 - _OUTSIDE) * len(results)):
        varied = dict(_varied([result.config for result in inside], ""))
        keys = {path: [value_key(value) for value in values] for path, values in varied.items()}
        size = 1
        for own in keys.values():
            size *= len(set(own))
        if 2 <= len(varied) <= _MOST_AXES and len(set(zip(*keys.values(), strict=True))) >= _FULL * size:
            axes = [_axis(path, values, keys[path]) for path, values in varied.items()]
            return (
                inside,
                axes,
                {result.name: {path: own[position] for path, own in keys.items()} for position, result in enumerate(inside)},
            )
        rare = _rarest(keys)
        if rare is None:
            break
        inside = [result for result, key in zip(inside, keys[rare[0]], strict=True) if key != rare[1]]
    return [], [], {}


def _alike(results: list[ConfigurationResult]) -> list[ConfigurationResult]:
    """The configurations with the most common structure, such as one retriever with a reranker, without the few others."""
    shapes = [json.dumps(_shape(result.config)) for result in results]
    counts = Counter(shapes)
    return [result for result, shape in zip(results, shapes, strict=True) if counts[shape] > _RARE * max(counts.values())]


def _shape(value: Any) -> Any:
    """A configuration without its values, except for the names of components."""
    if isinstance(value, dict):
        return {key: inner if key == "name" else _shape(inner) for key, inner in value.items()}
    return [_shape(inner) for inner in value] if isinstance(value, list) else isinstance(value, str)


def _rarest(keys: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """The value with the fewest configurations compared with the others of its axis; None if there is none."""
    shares = []
    for path, own in keys.items():
        counts = Counter(own)
        key, few = min(counts.items(), key=lambda pair: pair[1])
        shares.append((few / max(counts.values()), path, key))
    share, path, key = min(shares, default=(1.0, "", ""))
    return (path, key) if share <= _RARE else None


def _varied(values: Sequence[Any], path: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """Paths where plain values differ, with the value of each."""
    if len(set(map(value_key, values))) == 1:
        return
    first = values[0]
    if all(
        isinstance(value, dict) and value.keys() == first.keys() and value.get("name") == first.get("name") for value in values
    ):
        for key in first:
            yield from _varied([value[key] for value in values], f"{path}.{key}" if path else key)
    elif all(isinstance(value, list) and len(value) == len(first) for value in values):
        for position, ones in enumerate(zip(*values, strict=True)):
            yield from _varied(ones, f"{path}.{position}")
    else:
        yield path, values


def _axis(path: str, values: Sequence[Any], keys: Sequence[str]) -> GridAxis:
    distinct = dict(zip(keys, values, strict=True))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct.values())
    order = sorted(distinct, key=distinct.__getitem__) if numbers else list(distinct)
    return GridAxis(path, order, labels_of([distinct[key] for key in order]), numbers)
