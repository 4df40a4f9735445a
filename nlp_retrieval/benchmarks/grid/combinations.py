"""The combinations of a grid: the product of its axes, the last one varying fastest, less what is left out.

Each has a number in the whole product, so that a sample is drawn without listing the others. What ``skip`` leaves is counted by
going through the product, which must not be larger than a million then.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

from nlp_retrieval.benchmarks.grid.axes import Axis, Skip
from nlp_retrieval.errors import ConfigurationError

__all__ = ["Combination", "Combinations"]

Combination = tuple[int, ...]
"""The number of the value on each axis."""

_MOST_WITH_SKIPS = 1_000_000


class Combinations:
    """What skips leave of the product of all axes.

    Args:
        axes: of the grid.
        skips: combinations that are left out.
        where: place in a configuration, for messages.

    Raises:
        ConfigurationError: something is to be left out of more than a million combinations, or nothing is left.
    """

    def __init__(self, axes: Sequence[Axis], skips: Sequence[Skip], where: str) -> None:
        self._sizes = [len(axis.values) for axis in axes]
        self.count = math.prod(self._sizes)
        self._left: Sequence[int] = range(self.count)
        if skips and self.count > _MOST_WITH_SKIPS:
            raise ConfigurationError(
                f"{where}: leaves something out of {self.count:,} combinations, and that is done for {_MOST_WITH_SKIPS:,} at "
                "most; vary less, or take 'skip' out"
            )
        if skips:
            numbers = {axis.path: {label: number for number, label in enumerate(axis.labels)} for axis in axes}
            places = {axis.path: place for place, axis in enumerate(axes)}
            rules = [
                [(places[path], {numbers[path][label] for label in labels}) for path, labels in skip.items()] for skip in skips
            ]
            product = itertools.product(*map(range, self._sizes))
            self._left = [number for number, values in enumerate(product) if not _is_skipped(values, rules)]
            self.count = len(self._left)
        if not self.count:
            raise ConfigurationError(f"{where}: leaves no combination; take something out of it")

    def drawn(self, sample: int | None, seed: int) -> list[Combination]:
        """Return combinations in their order: all, or so many of them.

        Args:
            sample: how many are drawn, each with the same probability and none twice; None: all.
            seed: of the draw.
        """
        if sample is None or sample >= self.count:
            return [self._combination(number) for number in self._left]
        draw = random.Random(seed)  # noqa: S311 -- a sample
        chosen: set[int] = set()
        while len(chosen) < sample:
            chosen.add(draw.randrange(self.count))
        return [self._combination(self._left[place]) for place in sorted(chosen)]

    def _combination(self, number: int) -> Combination:
        """The combination of a number of the product."""
        values = []
        for size in reversed(self._sizes):
            number, value = divmod(number, size)
            values.append(value)
        return tuple(reversed(values))


def _is_skipped(combination: Combination, rules: Sequence[Sequence[tuple[int, set[int]]]]) -> bool:
    return any(all(combination[place] in values for place, values in rule) for rule in rules)
