"""The combinations of a grid, counted and drawn without listing them.

They have an order, that of the axes, the last one varying fastest. An axis whose condition does not hold has one branch, in
which it is not varied. How many combinations lie behind a branch depends only on which conditions and skips are still
possible there, so counting is quick however large the grid is, and any combination is found by its number.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from nlp_retrieval.benchmarks.grid.axes import Axis, Terms

__all__ = ["Combination", "Combinations"]

Combination = dict[str, int]
"""By the path of each axis that is varied, the number of its value."""


class Combinations:
    """What conditions and skips leave of the product of all axes.

    Args:
        axes: each behind those that its condition names.
        skips: combinations that are left out.
    """

    def __init__(self, axes: Sequence[Axis], skips: Sequence[Terms]) -> None:
        self._axes = list(axes)
        place_of = {axis.path: place for place, axis in enumerate(axes)}
        rules: list[tuple[Terms, int]] = [(axis.when, place) for place, axis in enumerate(axes) if axis.when]
        conditions = len(rules)
        rules += [(terms, max(place_of[path] for path in terms)) for terms in skips]
        self._all = (1 << len(rules)) - 1
        self._condition = [0] * len(axes)
        self._skipped = [0] * len(axes)
        self._needed = [0] * len(axes)
        for number, (_, last) in enumerate(rules):
            (self._condition if number < conditions else self._skipped)[last] |= 1 << number
            for place in range(last):
                self._needed[place] |= 1 << number
        self._ruled_out = [
            [
                sum(1 << number for number, (terms, _) in enumerate(rules) if label not in terms.get(axis.path, {label}))
                for label in axis.labels
            ]
            for axis in axes
        ]
        self._ruled_out_unvaried = [
            sum(1 << number for number, (terms, _) in enumerate(rules) if axis.path in terms) for axis in axes
        ]
        self._known: dict[tuple[int, int], int] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return self._behind(0, self._all)

    def at(self, number: int) -> Combination:
        """Return a combination.

        Args:
            number: from 0, below :attr:`count`.
        """
        possible, found = self._all, {}
        for place, axis in enumerate(self._axes):
            for value, left in self._branches(place, possible):
                behind = self._behind(place + 1, left)
                if number < behind:
                    if value is not None:
                        found[axis.path] = value
                    possible = left
                    break
                number -= behind
        return found

    def drawn(self, sample: int | None, seed: int) -> list[Combination]:
        """Return combinations in their order: all, or so many of them.

        Args:
            sample: how many are drawn, each with the same probability and none twice; None: all.
            seed: of the draw.
        """
        total = self.count
        if sample is None or sample >= total:
            return [self.at(number) for number in range(total)]
        draw = random.Random(seed)  # noqa: S311 -- a sample
        chosen: set[int] = set()
        while len(chosen) < sample:
            chosen.add(draw.randrange(total))
        return [self.at(number) for number in sorted(chosen)]

    def _behind(self, place: int, possible: int) -> int:
        """How many combinations there are of the axes from a place on, given which rules can still hold."""
        if place == len(self._axes):
            return 1
        key = place, possible
        if key not in self._known:
            self._known[key] = sum(self._behind(place + 1, left) for _, left in self._branches(place, possible))
        return self._known[key]

    def _branches(self, place: int, possible: int) -> list[tuple[int | None, int]]:
        """The values that an axis can take, or None where it is not varied, each with the rules that can hold after it."""
        condition = self._condition[place]
        ruled_out: list[tuple[int | None, int]] = list(enumerate(self._ruled_out[place]))
        if condition and not possible & condition:
            ruled_out = [(None, self._ruled_out_unvaried[place])]
        branches = []
        for value, out in ruled_out:
            left = possible & ~out
            if not left & self._skipped[place]:
                branches.append((value, left & self._needed[place]))
        return branches
