"""The titles of an index in flat files, for finding them in queries and texts.

The table is mapped, not loaded. It also stores the beginnings of titles, so that the search for a title at a word of a text
stops as soon as no title continues in this way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import HashedRows, Hashes, Placed, check_rising, hash_of
from nlp_retrieval.text.surfaces import MOST_WORDS, Surface, is_mention, spans_of, words_of

_FEWEST_ALONE = 6
_TABLE, _PREFIXES = "title", "title_prefixes.npy"


@dataclass(frozen=True, eq=False)
class TitleMention:
    """Mention of a title in a query.

    Args:
        rows: the items that carry the title or alias.
        start: where in the query the mention begins, in characters.
        end: where it ends.
        text: the wording of the query there.
    """

    rows: Rows
    start: int
    end: int
    text: str


class TitleTable:
    """The surfaces of an index by their words, memory-mapped; opening it checks it once and loads nothing.

    Args:
        table: rows by the words of a surface, and by whether a mention begins in lower case.
        prefixes: hashes of the beginnings of surfaces of several words, ascending.
    """

    def __init__(self, table: HashedRows, prefixes: Hashes) -> None:
        self.table = table
        self._prefixes = prefixes

    @classmethod
    def of(cls, surfaces: Iterable[tuple[int, Surface]]) -> TitleTable:
        """Build a table from rows and their surfaces."""
        prefixes = array("Q")

        def pairs() -> Iterator[tuple[str, int]]:
            for row, surface in surfaces:
                for lower in (False, True) if surface.lower else (False,):
                    prefixes.extend(hash_of(_key(surface.words[:n], lower=lower)) for n in range(1, len(surface.words)))
                    yield _key(surface.words, lower=lower), row

        table = HashedRows.of(pairs())
        return cls(table, np.unique(np.array(prefixes, np.uint64)))

    def write(self, folder: Path) -> None:
        """Write four files ``title_*.npy`` into an existing folder. Equal surfaces give equal bytes."""
        self.table.write(folder, _TABLE)
        np.save(folder / _PREFIXES, self._prefixes, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, n_rows: int) -> TitleTable:
        """Map a table that :meth:`write` wrote.

        Args:
            folder: of the table.
            n_rows: number of rows.

        Raises:
            IndexDamagedError: a file is missing, cut off or not part of a table, or names rows that do not exist.
        """
        prefixes: Hashes = mapped(folder / _PREFIXES, np.uint64)
        check_rising(folder / _PREFIXES, prefixes)
        return cls(HashedRows.open(folder, _TABLE, n_rows), prefixes)

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> TitleTable:
        """Open the tables of all segments as one, with rows of the index that are not deleted.

        The table of a single segment without deleted items stays mapped; other tables are joined in memory.
        """
        tables = [cls.open(segment.folder, len(segment)) for segment in segments]
        if len(tables) == 1 and segments[0].live is None:
            return tables[0]
        return cls.joined([(table, part.first_row, part.live) for table, part in zip(tables, segments, strict=True)])

    @classmethod
    def joined(cls, parts: Sequence[tuple[TitleTable, int, Mask | None]]) -> TitleTable:
        """Join tables, each given with the first row of its segment and its rows that are not deleted (None for all)."""
        prefixes = np.unique(np.concatenate([part._prefixes for part, _, _ in parts]))  # prefixes of deleted titles do no harm
        return cls(HashedRows.joined([Placed(part.table, first_row, live) for part, first_row, live in parts]), prefixes)

    def renumbered(self, new_rows: Rows) -> TitleTable:
        """Return the table with each row replaced by ``new_rows[row]``; ``new_rows`` must ascend."""
        return TitleTable(self.table.renumbered(new_rows), self._prefixes)

    def find(self, query: str) -> list[TitleMention]:
        """Return the titles that a query mentions, in order, by the same rules as in texts.

        One rule differs: in a query without any upper-case letter, a mention of at least two words or six characters may
        begin in lower case.
        """
        (mentions,) = self._mentioned([query], has_case=any(map(str.isupper, query)))
        return [TitleMention(self.table.rows_of(number), start, end, query[start:end]) for number, start, end in mentions]

    def named_in(self, texts: Sequence[str]) -> list[set[int]]:
        """Return the numbers of the titles that each text mentions, like a matcher; meant for hundreds of texts at once."""
        return [{number for number, _, _ in mentions} for mentions in self._mentioned(texts, has_case=True)]

    def _mentioned(self, texts: Sequence[str], *, has_case: bool) -> list[list[tuple[int, int, int]]]:
        """The mentions in each text, in order: number of the title, and where the mention begins and ends."""
        words: list[str] = []
        alone: list[bool] = []  # whether a title of one word must begin in lower case to be mentioned here
        longer: list[bool] = []  # the same for a title of several words that begins here
        ends: list[int] = []
        spans = []
        for text in texts:
            spans.append(spans_of(text))
            words += words_of(text)
            ends += [len(words)] * len(spans[-1])
            for (start, _), word in zip(spans[-1], words[len(alone) :], strict=True):
                lower = text[start].islower()
                longer.append(lower and has_case)
                alone.append(lower and (has_case or len(word) < _FEWEST_ALONE))
        numbers, lasts = self._longest(words, np.array(ends, np.int64), alone, longer)
        first, mentions = 0, []
        for text, spans_of_text in zip(texts, spans, strict=True):
            part = slice(first, first + len(spans_of_text))
            mentions.append(list(_apart(text, spans_of_text, numbers[part], lasts[part], first)))
            first += len(spans_of_text)
        return mentions

    def _longest(self, words: list[str], ends: Rows, alone: list[bool], longer: list[bool]) -> tuple[list[int], list[int]]:
        """For each word, the number of the longest title that begins there (-1 for none), and the word after its last."""
        numbers, lasts = np.full(len(words), -1, np.int64), np.zeros(len(words), np.int64)
        single = list(zip(words, alone, strict=True)), list(zip(words, longer, strict=True))
        known = {(word, lower): hash_of(_key((word,), lower=lower)) for word, lower in {*single[0], *single[1]}}
        keys, beginnings = (np.array([known[pair] for pair in pairs], np.uint64) for pairs in single)
        places = np.arange(len(words))
        for width in range(1, MOST_WORDS + 1):
            found = self.table.find(keys)
            numbers[places[found >= 0]] = found[found >= 0]
            lasts[places[found >= 0]] = places[found >= 0] + width
            places = places[self._goes_on(beginnings) & (places + width < ends[places])]
            if len(places) == 0:
                break
            parts = [_key(words[place : place + width + 1], lower=longer[place]) for place in places.tolist()]
            keys = beginnings = np.array(list(map(hash_of, parts)), np.uint64)
        return numbers.tolist(), lasts.tolist()

    def _goes_on(self, hashes: Hashes) -> Mask:
        if len(self._prefixes) == 0:
            return np.zeros(len(hashes), bool)
        places = np.minimum(np.searchsorted(self._prefixes, hashes), len(self._prefixes) - 1)
        found: Mask = self._prefixes[places] == hashes
        return found


def _apart(
    text: str, spans: list[tuple[int, int]], numbers: list[int], lasts: list[int], offset: int
) -> Iterator[tuple[int, int, int]]:
    """Choose the mentions that do not overlap, from left to right."""
    free = 0
    for first, number in enumerate(numbers):
        if number < 0 or first < free:
            continue
        free = lasts[first] - offset
        if is_mention(text, spans, first, free):
            yield number, spans[first][0], spans[free - 1][1]


def _key(words: Sequence[str], *, lower: bool) -> str:
    return "\0".join(["lower" if lower else "", *words])
