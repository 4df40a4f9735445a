"""A grid: many configurations from the settings of one searcher and what is varied in them.

Every combination of the axes' values is a configuration, but for those that ``skip`` leaves out; a random sample of them where
there are too many. Its name is made of the labels of its values, with the axis named where a label alone would
not tell. Names and order depend on nothing but what is written, and configurations that come out equal stand once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from nlp_retrieval.benchmarks.benchmarkable import Benchmarkable
from nlp_retrieval.benchmarks.grid.axes import Axis, read_axes, read_skips
from nlp_retrieval.benchmarks.grid.combinations import Combination, Combinations
from nlp_retrieval.benchmarks.grid.labels import says_itself, value_key
from nlp_retrieval.benchmarks.grid.paths import Place, with_value
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.files.yaml_text import check_keys
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError

__all__ = ["MOST", "Grid", "build_grid", "expand_grid", "read_grid"]

MOST = 10_000
"""So many configurations at most; more combinations than that are sampled."""


@dataclass(frozen=True)
class Grid:
    """The searchers of a grid.

    Args:
        searchers: by name.
        combinations: how many there are; more than searchers where they were sampled.
        equal: combinations that stand under another name, by their own.
        axes: the path of each axis, by the short name that tells it from the others.
        values: of the axes by short name, for each searcher: numbers and text as they are, components by their labels.
    """

    searchers: dict[str, Benchmarkable]
    combinations: int
    equal: dict[str, str] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str | int | float]] = field(default_factory=dict)


def build_grid(
    searcher: Mapping[str, Any],
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
        # whatever is registered as a searcher has what a benchmark drives
        made = cast(Benchmarkable, build("searchers", {"name": Searcher.name} | settings, f"{where}[{name!r}]"))
        first = name_of.setdefault(value_key(made.config), name)
        if first == name:
            searchers[name] = made
        else:
            equal[name] = first
    equal = {name: equal.get(first, first) for name, first in equal.items()}
    return Grid(searchers, expanded.combinations, equal, expanded.axes, {name: expanded.values[name] for name in searchers})


def read_grid(settings: object, seed: int, where: str) -> Grid:
    """Read and build a ``grid`` as a configuration file holds it, ``halving`` aside.

    Args:
        settings: with ``searcher`` and ``vary``, and maybe ``skip`` and ``sample``.
        seed: of the sample.
        where: place in a configuration, for messages.

    Raises:
        ConfigurationError: as :func:`build_grid`; or an unknown key.
    """
    if not isinstance(settings, dict):
        raise ConfigurationError(f"{where}: expected settings with 'searcher' and 'vary', found {settings!r}")
    check_keys(settings, ("searcher", "vary", "skip", "sample", "halving"), ("searcher", "vary"), where)
    return build_grid(
        settings["searcher"],
        settings["vary"],
        skip=settings.get("skip", ()),
        sample=settings.get("sample"),
        seed=seed,
        where=where,
    )


@dataclass(frozen=True)
class ExpandedGrid:
    """The settings of the configurations of a grid, by name; the rest is as in :class:`Grid`."""

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

    A value is what stands in a configuration file, or a component. Labels of values, which ``skip`` names, are: of a component
    its registry name, with the parameters that tell it from others of that name; of null ``none``; of a value with a name of
    its own that name. A list of labels means any of them; several axes mean all of them.

    Args:
        searcher: what all configurations have in common, as in a configuration file.
        vary: by dotted path into these settings, the values: a list, or a mapping where they have names of their own.
        skip: combinations that are left out, as ``{path: label}``.
        sample: so many combinations are drawn, each with the same probability and none twice; they keep their order. None:
            all of them.
        seed: of the draw.
        where: place in a configuration, for messages.

    Returns:
        In the order of the axes, the last one varying fastest. Settings that come out equal stand once, under the first name;
        of a sample there may then be fewer.

    Raises:
        ConfigurationError: a path that leads nowhere, an axis without values or with two equal ones, a skip that names what is
            not there, nothing left, more than 10,000 combinations without a sample, or more than a million with skips.
    """
    if not isinstance(searcher, Mapping):
        raise ConfigurationError(f"{where}.searcher: expected the settings of a searcher, found {searcher!r}")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or not 1 <= sample <= MOST):
        raise ConfigurationError(f"{where}.sample: {sample!r} is not an integer from 1 to {MOST:,}")
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
        made = _settings(searcher, axes, chosen, name, where)
        first = name_of.setdefault(value_key(made), name)
        if first == name:
            settings[name] = made
            values[name] = {key: _told(axis, value) for key, axis, value in zip(short, axes, chosen, strict=True)}
        else:
            equal[name] = first
    return ExpandedGrid(
        settings, combinations.count, equal, {key: axis.path for key, axis in zip(short, axes, strict=True)}, values
    )


def _told(axis: Axis, value: int) -> str | int | float:
    """A value of an axis: itself where it is a number or text, else its label."""
    given = axis.values[value]
    return given if isinstance(given, str | int | float) and not axis.named else axis.labels[value]


def _settings(searcher: Mapping[str, Any], axes: Sequence[Axis], chosen: Combination, name: str, where: str) -> Config:
    """The settings of one combination. Whole components come before what is inside them."""
    settings: object = dict(searcher)
    path_of: dict[Place, str] = {}
    for axis, value in sorted(zip(axes, chosen, strict=True), key=lambda pair: len(pair[0].segments)):
        try:
            settings, place = with_value(settings, axis.segments, axis.values[value])
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{where}.vary.{axis.path}: cannot be followed in the configuration {name!r}: {error}; write it under "
                f"{where}.searcher, or make whole components the values of the axis that takes it away"
            ) from None
        other = path_of.setdefault(place, axis.path)
        if other != axis.path:
            raise ConfigurationError(
                f"{where}.vary.{axis.path}: is the same place as {other!r} in the configuration {name!r}; make them one axis"
            )
    return cast(Config, settings)


def _names(axes: Sequence[Axis], drawn: Sequence[Combination], where: str) -> list[str]:
    """A name for each combination: its labels, with the axis before those that alone would not tell."""
    names = _joined([_parts(axis, axes) for axis in axes], drawn)
    if len(set(names)) < len(names):
        names = _joined([[f"{axis.path}={label}" for label in axis.labels] for axis in axes], drawn)
    if (twice := first_repeated(names)) is not None:
        raise ConfigurationError(f"{where}: two configurations would be called {twice!r}; give values other names")
    return names


def _joined(parts: Sequence[Sequence[str]], drawn: Sequence[Combination]) -> list[str]:
    return [", ".join(texts[value] for texts, value in zip(parts, chosen, strict=True)) for chosen in drawn]


def _parts(axis: Axis, axes: Sequence[Axis]) -> list[str]:
    """What stands for each value of an axis in names."""
    elsewhere = {label for other in axes if other is not axis for label in other.labels}
    key = _short_path(axis, axes)
    return [
        label if label not in elsewhere and (axis.named or says_itself(value)) else f"{key}={label}"
        for label, value in zip(axis.labels, axis.values, strict=True)
    ]


def _short_path(axis: Axis, axes: Sequence[Axis]) -> str:
    """As many segments from the end of a path as no other axis ends with."""
    segments = axis.segments
    for count in range(1, len(segments)):
        if all(other is axis or other.segments[-count:] != segments[-count:] for other in axes):
            return ".".join(segments[-count:])
    return axis.path
