"""The features of a profile: keywords as runs of stems, and RE2 patterns; and the groups that a query asks for."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.rerankers.multi_signal.profile import Profile, ProfileQuestion
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.quantities import Quantity, quantities_of, same_value, years_of
from nlp_retrieval.text.words import LinearPattern, Stems, in_characters, stems_of_language

__all__ = [
    "SIGNALS",
    "AnalysedTexts",
    "AskedNumbers",
    "Features",
    "Focus",
    "ListedPassages",
    "NumbersOfTexts",
    "PassageSource",
    "PatternMatch",
    "Rarity",
    "TablePassages",
    "pattern_scores",
    "weighted_mean",
]


# Names of the signals, and their weighted mean.

SIGNALS = ("transformer", "word_vectors", "patterns", "fuzzy")


def weighted_mean(columns: Mapping[str, Scores], weights: Mapping[str, float], n_passages: int) -> Scores:
    """Return the weighted mean of the signals that a passage has; the weights of the others are left out.

    Args:
        columns: ``[passages]`` by signal, 0 to 1; NaN if it is missing.
        weights: by signal.
        n_passages: number of passages.

    Returns:
        ``[passages]``, 0 to 1; NaN for a passage that has none of the signals.
    """
    total, weight = np.zeros(n_passages), np.zeros(n_passages)
    for name, column in columns.items():
        present = ~np.isnan(column)
        total[present] += weights[name] * column[present]
        weight[present] += weights[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Scores = np.where(weight > 0, total / weight, np.nan)
    return mean


MENTIONED, KEYWORDS_OF_QUESTION, GROUP_OF_QUESTION = 1.0, 0.25, 0.1
"""Weights of a group that the query mentions, of the keywords of the nearest question, and of a group named there."""

COUNTED = 3
"""Most matches of a pattern that count."""


@dataclass(frozen=True)
class PatternMatch:
    """A match of a keyword or a pattern in a text.

    Args:
        group: of the profile, or ``question 3`` for a keyword of a question.
        begin: where it begins, in characters.
        end: where it ends.
        text: the match itself.

    Examples:
        >>> PatternMatch("targets", 0, 4, "2030").text
        '2030'
    """

    group: str
    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Focus:
    """The features that count for a query.

    Args:
        groups: names, in the order of the profile.
        features: per group, the numbers of its features.
        weights: per group.
        question: the nearest question of the profile, if any.
    """

    groups: tuple[str, ...]
    features: tuple[NDArray[np.int64], ...]
    weights: tuple[float, ...]
    question: ProfileQuestion | None


class Features:
    """The keywords and the patterns of a profile, numbered; one pass over a text finds all of them.

    Args:
        profile: that holds them.
        stems: splits texts into words.
    """

    def __init__(self, profile: Profile, stems: Stems) -> None:
        self._profile = profile
        self._stems = stems
        self._keywords: dict[tuple[str, ...], int] = {}
        self._starts: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        self._patterns: list[LinearPattern] = []
        self._members: dict[str, list[int]] = {}
        for name, keywords in profile.groups.items():
            self._members[name] = [self._numbered(keyword) for keyword in keywords]
        for question in profile.questions:
            self._members[_of(question)] = [self._numbered(keyword) for keyword in question.keywords]
        self.n_keywords = len(self._keywords)
        for name, patterns in profile.patterns.items():
            for pattern in patterns:
                self._members.setdefault(name, []).append(self.n_keywords + len(self._patterns))
                self._patterns.append(LinearPattern.compiled(pattern, f"patterns.{name}"))
        self._function_words = frozenset(map(stems.stem, FUNCTION_WORDS))
        self._topics = [self._topic(question) for question in profile.questions]
        self._shared = Counter(stem for topic in self._topics for stem in topic)

    def __len__(self) -> int:
        return self.n_keywords + len(self._patterns)

    def find(self, words: Sequence[str], text: str) -> dict[int, int]:
        """Return how often each feature occurs in a text, if it does; a pattern up to three times.

        Args:
            words: the stems of the text.
            text: the text itself.
        """
        counts: Counter[int] = Counter(number for number, _, _ in self._runs(words))
        if self._patterns:
            data = text.encode("utf-8", "replace")
            for number, pattern in enumerate(self._patterns, self.n_keywords):
                if spans := pattern.spans(data, COUNTED):
                    counts[number] = len(spans)
        return counts

    def focus(self, query: str) -> Focus:
        """Return the features that count for a query.

        A group counts if the query has its keywords (or patterns). The keywords of the profile's nearest question, and the
        groups that it names, count less. The nearest question shares most words with the query; a word that several questions
        use is divided among them; of equal ones the first.
        """
        words = self._stems.words(query)
        present = self.find(words, query).keys()
        weights: dict[str, float] = {}
        question = self._nearest({word for word in words if word not in self._function_words})
        if question is not None:
            if question.keywords:
                weights[_of(question)] = KEYWORDS_OF_QUESTION
            weights |= dict.fromkeys(question.groups, GROUP_OF_QUESTION)
        for name in [*self._profile.groups, *self._profile.patterns]:
            if not present.isdisjoint(self._members[name]):
                weights[name] = MENTIONED
        names = [name for name in self._members if name in weights]
        return Focus(
            tuple(names),
            tuple(np.unique(np.array(self._members[name], np.int64)) for name in names),
            tuple(weights[name] for name in names),
            question,
        )

    def matches(self, focus: Focus, text: str) -> list[PatternMatch]:
        """Return the matches of counting features in a text, in order; a feature of several groups yields a match for each."""
        groups: dict[int, list[str]] = {}
        for name, members in zip(focus.groups, focus.features, strict=True):
            for number in members.tolist():
                groups.setdefault(number, []).append(name)
        spans = self._stems.spans(text)
        places = [
            (number, spans[first][1], spans[last - 1][2])
            for number, first, last in self._runs([stem for stem, _, _ in spans])
            if number in groups
        ]
        data = text.encode("utf-8", "replace")
        for number, pattern in enumerate(self._patterns, self.n_keywords):
            if number in groups:
                places += [(number, begin, end) for begin, end in in_characters(data, pattern.spans(data))]
        matches = {
            PatternMatch(group, begin, end, text[begin:end]) for number, begin, end in places for group in groups[number]
        }
        return sorted(matches, key=lambda match: (match.begin, match.end, match.group))

    def _numbered(self, keyword: str) -> int:
        stems = tuple(self._stems.words(keyword))
        if stems not in self._keywords:
            number = self._keywords[stems] = len(self._keywords)
            self._starts.setdefault(stems[0], []).append((stems[1:], number))
        return self._keywords[stems]

    def _runs(self, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Yield the keywords in a text with the first of their words, and the one after the last."""
        starts = self._starts
        for begin, word in enumerate(words):
            for rest, number in starts.get(word, ()):
                end = begin + 1 + len(rest)
                if not rest or tuple(words[begin + 1 : end]) == rest:
                    yield number, begin, end

    def _topic(self, question: ProfileQuestion) -> frozenset[str]:
        words = {word for text in (question.asked_of(None), *question.keywords) for word in self._stems.words(text)}
        return frozenset(words - self._function_words)

    def _nearest(self, words: set[str]) -> ProfileQuestion | None:
        shares = [sum(1.0 / self._shared[word] for word in words & topic) for topic in self._topics]
        if not shares or max(shares) == 0:
            return None
        return self._profile.questions[int(np.argmax(shares))]


def _of(question: Any) -> str:
    return f"question {question.number}"


# Texts analysed once: their words and matching features of a profile, as columns over slots.
#
# Each text has a slot, by its content, and is found there when it is scored again. When there are too many texts, all are
# forgotten and those in use are analysed again.

_READ_AT_ONCE = 4096
_SAMPLED = 20_000
_MOST_TEXTS = 300_000
"""Most texts remembered, beyond those of one batch."""


@dataclass(frozen=True)
class Rarity:
    """Rarity of words in an index: ln((n + 1) / (d + 1/2)), of n texts of which d have the word.

    Args:
        n_texts: n.
        frequencies: d by the number of the word; a word of a higher number is in none.
    """

    n_texts: int
    frequencies: NDArray[np.int64]

    def of(self, word: int | None) -> float:
        """Return how rare a word is, above 0.

        Args:
            word: its number in the vocabulary; None for an unknown word.
        """
        is_known = word is not None and word < len(self.frequencies)
        return math.log((self.n_texts + 1) / ((int(self.frequencies[word]) if is_known else 0) + 0.5))


class PassageSource(ABC):
    """Source of the passages of a batch of candidates, by their positions in the batch."""

    def __init__(self, n_passages: int) -> None:
        self.n_passages = n_passages

    @abstractmethod
    def texts(self, positions: Rows) -> list[str]:
        """Return the texts of candidates."""

    @abstractmethod
    def slots(self, analysed: AnalysedTexts) -> Rows:
        """Return the slot of every candidate, ``[candidates]``; new texts are analysed."""

    def rarity(self, analysed: AnalysedTexts) -> Rarity | None:
        """Return the rarity of words in the passages' index; None if unknown."""
        del analysed
        return None

    @abstractmethod
    def values(self, key: str) -> list[object]:
        """Return a metadata value of every candidate; None if it has none."""


class ListedPassages(PassageSource):
    """Passages in memory.

    Args:
        items: ``[candidates]``.
    """

    def __init__(self, items: Sequence[SearchableItem]) -> None:
        super().__init__(len(items))
        self._items = items

    def texts(self, positions: Rows) -> list[str]:
        return [self._items[position].text for position in positions.tolist()]

    def slots(self, analysed: AnalysedTexts) -> Rows:
        return analysed.slots([item.text for item in self._items])

    def values(self, key: str) -> list[object]:
        return [item.metadata.get(key) for item in self._items]


class TablePassages(PassageSource):
    """Passages in rows of an index; only unknown ones are read.

    Args:
        table: the items of the index.
        rows: ``[candidates]``.
    """

    def __init__(self, table: ItemTable, rows: Rows) -> None:
        super().__init__(len(rows))
        self._table = table
        self._rows = rows

    def texts(self, positions: Rows) -> list[str]:
        return [item.text for item in self._table.items(self._rows[positions])]

    def slots(self, analysed: AnalysedTexts) -> Rows:
        return analysed.slots_of_rows(self._table, self._rows)

    def rarity(self, analysed: AnalysedTexts) -> Rarity:
        return analysed.rarity(self._table)

    def values(self, key: str) -> list[object]:
        values: list[object] = []
        for first in range(0, len(self._rows), _READ_AT_ONCE):
            items = self._table.items(self._rows[first : first + _READ_AT_ONCE])
            values += [item.metadata.get(key) for item in items]
        return values


class AnalysedTexts:
    """The words and matches of texts; not for several threads at once.

    Args:
        stems: splits texts into words.
        features: to look for; None for none.
    """

    def __init__(self, stems: Stems, features: Features | None) -> None:
        self._stems = stems
        self._features = features
        self.epoch = 0
        """Grows when all texts are forgotten; slots of an earlier epoch are invalid."""
        self.forget()

    def forget(self) -> None:
        """Forget all texts."""
        self.epoch += 1
        self._slots: dict[bytes, int] = {}
        self._rows: WeakKeyDictionary[ItemTable, Rows] = WeakKeyDictionary()
        self._rarities: WeakKeyDictionary[ItemTable, Rarity] = WeakKeyDictionary()
        self._numbers: dict[str, int] = {}
        self.vocabulary: list[str] = []
        self.words = _Lists()
        """Per slot, the distinct words, as numbers in the vocabulary."""
        self.sequence = _Lists()
        """Per slot, the words in their order."""
        self.features = _Lists()
        """Per slot, the features that match."""
        self.counts = _Lists()
        """Per slot, the number of matches of each."""

    def __len__(self) -> int:
        return len(self._slots)

    def slots(self, texts: Sequence[str]) -> Rows:
        """Return the slots of texts, ``[texts]``; new texts are analysed."""
        if len(self._slots) + len(texts) > _MOST_TEXTS and self._slots:
            self.forget()
        return self._add(texts)

    def slots_of_rows(self, table: ItemTable, rows: Rows) -> Rows:
        """Return the slots of the texts in some rows of an index, ``[rows]``."""
        slots = self._rows.get(table)
        n_missing = len(rows) if slots is None else int((slots[rows] < 0).sum())
        if len(self._slots) + n_missing > _MOST_TEXTS and self._slots and n_missing:
            self.forget()
        return self._slots_of_rows(table, rows)

    def _slots_of_rows(self, table: ItemTable, rows: Rows) -> Rows:
        slots = self._rows.get(table)
        if slots is None:
            slots = self._rows[table] = np.full(len(table), -1, np.int64)
        missing = np.unique(rows[slots[rows] < 0])
        for first in range(0, len(missing), _READ_AT_ONCE):
            part = missing[first : first + _READ_AT_ONCE]
            slots[part] = self._add([item.text for item in table.items(part)])
        requested: Rows = slots[rows]
        return requested

    def number_of(self, word: str) -> int | None:
        """Return the number of a word in the vocabulary; None if no text has it."""
        return self._numbers.get(word)

    def rarity(self, table: ItemTable) -> Rarity:
        """Return the rarity of words in an index; in a large one, in 20,000 of its texts, evenly spread."""
        rarity = self._rarities.get(table)
        if rarity is None:
            rows = np.arange(len(table)) if table.live is None else np.flatnonzero(table.live)
            rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLED)).astype(np.int64)]
            words, _ = self.words.of(self._slots_of_rows(table, rows))
            rarity = self._rarities[table] = Rarity(len(rows), np.bincount(words, minlength=len(self.vocabulary)))
        return rarity

    def _add(self, texts: Sequence[str]) -> Rows:
        slots = np.empty(len(texts), np.int64)
        for number, text in enumerate(texts):
            key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = len(self._slots)
                self._analyse(text)
            slots[number] = slot
        return slots

    def _analyse(self, text: str) -> None:
        words = self._stems.words(text)
        numbers = self._numbers
        sequence = []
        for word in words:
            number = numbers.get(word)
            if number is None:
                number = numbers[word] = len(self.vocabulary)
                self.vocabulary.append(word)
            sequence.append(number)
        self.words.append(list(dict.fromkeys(sequence)))
        self.sequence.append(sequence)
        features = {} if self._features is None else self._features.find(words, text)
        self.features.append(list(features))
        self.counts.append(list(features.values()))


class _Lists:
    """Lists of whole numbers, one per slot, that grow at the end."""

    def __init__(self) -> None:
        self._pending: list[int] = []
        self._lengths: list[int] = []
        self._values: NDArray[np.int32] = np.zeros(0, np.int32)
        self._offsets: Rows = np.zeros(1, np.int64)
        self._owner: Rows = np.zeros(0, np.int64)

    def append(self, values: list[int]) -> None:
        """Add the list of the next slot."""
        self._pending += values
        self._lengths.append(len(values))

    def of(self, slots: Rows) -> tuple[NDArray[np.int32], Rows]:
        """Return the entries of some slots, one slot after another, and for each entry the position of its slot."""
        if self._lengths:
            self._values = np.concatenate([self._values, np.array(self._pending, np.int32)])
            ends = self._offsets[-1] + np.cumsum(np.array(self._lengths, np.int64))
            self._offsets = np.concatenate([self._offsets, ends])
            self._owner = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
            self._pending, self._lengths = [], []
        n_slots = len(self._offsets) - 1
        if len(slots) == n_slots and np.array_equal(slots, np.arange(n_slots)):
            return self._values, self._owner
        entries, counts = entries_of(self._offsets, slots)
        return self._values[entries], np.repeat(np.arange(len(slots)), counts)


# The signal of patterns: the share of a query's keywords, patterns and numbers that a passage has.


def pattern_scores(
    features: Features | None, focus: Focus | None, texts: AnalysedTexts, slots: Rows, numbers: Scores | None = None
) -> Scores | None:
    """Score passages by keywords, patterns and numbers.

    In each group that counts, a passage has m distinct keywords and matches of patterns, up to three times each; the group
    scores 1 - 2^-m, so that each further match adds half as much as the one before. The numbers that the query names form one
    more group, as if it were mentioned. The score is the weighted mean of the groups: between 0 and 1, and never lower with
    another match.

    Args:
        features: of the profile; None without one.
        focus: the groups that count, with weights; None without a profile.
        texts: analysed with these features.
        slots: ``[passages]``.
        numbers: ``[passages]``, number of the query's numbers in a passage; None if it names none.

    Returns:
        ``[passages]``; None if nothing counts.
    """
    total, weights = np.zeros(len(slots)), 0.0
    if features is not None and focus is not None and focus.groups:
        groups, owner = texts.features.of(slots)
        counts, _ = texts.counts.of(slots)
        counted = np.where(groups < features.n_keywords, 1, np.minimum(counts, COUNTED))
        for members, weight in zip(focus.features, focus.weights, strict=True):
            wanted = np.zeros(len(features), np.bool_)
            wanted[members] = True
            matching = wanted[groups]
            total += weight * _saturated(np.bincount(owner[matching], counted[matching], len(slots)).astype(np.float64))
            weights += weight
    if numbers is not None:
        total += MENTIONED * _saturated(numbers)
        weights += MENTIONED
    return total / weights if weights else None


def _saturated(matches: Scores) -> Scores:
    """1 - 2^-m."""
    share: Scores = -np.expm1(-np.log(2.0) * matches)
    return share


# Numbers with units, and years: those of a query that a passage has too, in whatever unit.

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
        matches = [
            PatternMatch(QUANTITIES, other.begin, other.end, text[other.begin : other.end])
            for other in (quantities_of(text) if self.quantities else [])
            if any(_agree(quantity, other) for quantity in self.quantities)
        ]
        words = stems_of_language(None).spans(text) if self.years else []
        return matches + [PatternMatch(YEARS, begin, end, text[begin:end]) for word, begin, end in words if word in self.years]


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
        missing = [index for index, slot in enumerate(wanted) if slot not in self._known]
        for index, text in zip(missing, source.texts(positions[missing]) if missing else [], strict=True):
            self._known[wanted[index]] = quantities_of(text)
        for quantity in asked.quantities:
            counts += [any(_agree(quantity, other) for other in self._known[slot]) for slot in wanted]
        return counts


def _agree(first: Quantity, second: Quantity) -> bool:
    return first.unit == second.unit and same_value(first, second)
