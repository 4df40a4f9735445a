"""Numbers with units, and years: those of a query that a passage has too, in whatever unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.rerankers.multi_signal.features import PatternMatch
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts, PassageSource
from nlp_retrieval.text.quantities import Quantity, quantities_of, same_value, years_of
from nlp_retrieval.text.words import stems_of_language

__all__ = ["AskedNumbers", "NumbersOfTexts"]

QUANTITIES, YEARS = "quantities", "years"


@dataclass(frozen=True)
class AskedNumbers:
    """The numbers that a query names.

    Args:
        years: each once; of a range, its ends. A passage has a year if its digits occur as a word.
        quantities: numbers with a unit.
    """

    years: frozenset[str]
    quantities: tuple[Quantity, ...]

    @classmethod
    def of(cls, query: str) -> AskedNumbers:
        """Read the numbers of a query."""
        years = frozenset(str(end) for year in years_of(query) for end in (year.first, year.last))
        return cls(years, tuple(quantities_of(query)))

    def __bool__(self) -> bool:
        return bool(self.years or self.quantities)

    def matches(self, text: str) -> list[PatternMatch]:
        """Return the positions of the wanted numbers in a text."""
        found = [
            PatternMatch(QUANTITIES, other.begin, other.end, text[other.begin : other.end])
            for other in (quantities_of(text) if self.quantities else [])
            if any(_agree(asked, other) for asked in self.quantities)
        ]
        words = stems_of_language(None).spans(text) if self.years else []
        return found + [PatternMatch(YEARS, begin, end, text[begin:end]) for word, begin, end in words if word in self.years]


class NumbersOfTexts:
    """The quantities of passages, read once and kept by slot; only if a query names a quantity."""

    def __init__(self) -> None:
        self._epoch = -1
        self._known: dict[int, list[Quantity]] = {}

    def counts(self, asked: AskedNumbers, texts: AnalysedTexts, slots: Rows, source: PassageSource, positions: Rows) -> Scores:
        """Return how many of the numbers that a query names each passage has, ``[passages]``.

        Args:
            asked: of the query.
            texts: hold the passages.
            slots: ``[passages]``.
            source: of passages that have not been read yet.
            positions: ``[passages]``, their positions in the source.
        """
        counts = np.zeros(len(slots))
        years = [number for year in asked.years if (number := texts.number_of(year)) is not None]
        if years:
            words, owner = texts.words.of(slots)
            counts += np.bincount(owner[np.isin(words, years)], minlength=len(slots))
        if not asked.quantities:
            return counts
        if self._epoch != texts.epoch:
            self._epoch, self._known = texts.epoch, {}
        wanted: Sequence[int] = slots.tolist()
        missing = [place for place, slot in enumerate(wanted) if slot not in self._known]
        for place, text in zip(missing, source.texts(positions[missing]) if missing else [], strict=True):
            self._known[wanted[place]] = quantities_of(text)
        for quantity in asked.quantities:
            counts += [any(_agree(quantity, other) for other in self._known[slot]) for slot in wanted]
        return counts


def _agree(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit and same_value(one, other)
