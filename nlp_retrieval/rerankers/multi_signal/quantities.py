"""Numbers with units, and years: which of those that a query names a passage has too, whatever unit it writes them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.rerankers.multi_signal.features import PatternMatch
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts, PassageSource
from nlp_retrieval.text.quantities import Quantity, quantities_of, same_value, years_of

__all__ = ["AskedNumbers", "NumbersOfTexts"]

QUANTITIES, YEARS = "quantities", "years"


@dataclass(frozen=True)
class AskedNumbers:
    """The numbers that a query names.

    Args:
        years: each once; of a range, its ends.
        quantities: numbers with a unit.
    """

    years: frozenset[int]
    quantities: tuple[Quantity, ...]

    @classmethod
    def of(cls, query: str) -> AskedNumbers:
        """Read them from a query."""
        return cls(_years(query), tuple(quantities_of(query)))

    def __bool__(self) -> bool:
        return bool(self.years or self.quantities)

    def count(self, numbers: AskedNumbers) -> int:
        """Return how many of these are among the numbers of a passage."""
        found = sum(any(_agree(asked, other) for other in numbers.quantities) for asked in self.quantities)
        return found + len(self.years & numbers.years)

    def matches(self, text: str) -> list[PatternMatch]:
        """Return where numbers that are asked for stand in a text."""
        found = [
            PatternMatch(QUANTITIES, other.begin, other.end, text[other.begin : other.end])
            for other in quantities_of(text)
            if any(_agree(asked, other) for asked in self.quantities)
        ]
        years = [year for year in years_of(text) if {year.first, year.last} & self.years]
        return found + [PatternMatch(YEARS, year.begin, year.end, text[year.begin : year.end]) for year in years]


class NumbersOfTexts:
    """The numbers of passages, read once and kept by slot; only where a query names numbers."""

    def __init__(self) -> None:
        self._epoch = -1
        self._known: dict[int, AskedNumbers] = {}

    def counts(self, asked: AskedNumbers, texts: AnalysedTexts, slots: Rows, source: PassageSource, positions: Rows) -> Scores:
        """Return how many of the numbers that a query names each passage has, ``[passages]``.

        Args:
            asked: of the query.
            texts: hold the passages.
            slots: ``[passages]``.
            source: where those are read that were not read yet.
            positions: ``[passages]``, where they stand in the source.
        """
        if self._epoch != texts.epoch:
            self._epoch, self._known = texts.epoch, {}
        wanted: Sequence[int] = slots.tolist()
        missing = [place for place, slot in enumerate(wanted) if slot not in self._known]
        for place, text in zip(missing, source.texts(positions[missing]) if missing else [], strict=True):
            self._known[wanted[place]] = AskedNumbers.of(text)
        return np.array([asked.count(self._known[slot]) for slot in wanted], np.float64)


def _years(text: str) -> frozenset[int]:
    return frozenset(end for year in years_of(text) for end in (year.first, year.last))


def _agree(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit and same_value(one, other)
