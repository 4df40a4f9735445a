"""Which subjects a query names, and what it asks apart from them.

"What is Japan's target?" asks of Japan what "What is the country's target?" asks of any country: the second form is what is
compared with passages, so that a name does not draw passages that merely repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.text.surfaces import MOST_WORDS, spans_of, words_of

_THE = re.compile(r"\bthe\s+$", re.IGNORECASE)


class NamedSubjects:
    """Finds the names of subjects in queries, as whole words, without case and accents; of overlapping ones the longest.

    Args:
        names: of the subjects; row i is subject i.
        field: what a subject is, in words: "country".
    """

    def __init__(self, names: Sequence[str], field: str) -> None:
        self._field = field.replace("_", " ")
        self._numbers: dict[tuple[str, ...], list[int]] = {}
        self._lengths: dict[str, set[int]] = {}
        for number, name in enumerate(names):
            words = words_of(name)
            if 1 <= len(words) <= MOST_WORDS:
                self._numbers.setdefault(words, []).append(number)
                self._lengths.setdefault(words[0], set()).add(len(words))

    def read(self, query: str) -> tuple[str, Rows]:
        """Return the query with "the country" for each name of a country, and the numbers of the subjects named.

        Args:
            query: as it was asked.
        """
        words, spans = words_of(query), spans_of(query)
        if len(words) != len(spans):  # words that normalisation splits or drops; nothing can be replaced safely
            return query, np.zeros(0, np.int64)
        parts: list[str] = []
        found: set[int] = set()
        begin = at = 0
        while at < len(words):
            lengths = sorted((n for n in self._lengths.get(words[at], ()) if at + n <= len(words)), reverse=True)
            length = next((n for n in lengths if words[at : at + n] in self._numbers), 0)
            if not length:
                at += 1
                continue
            found.update(self._numbers[words[at : at + length]])
            parts.append(_THE.sub("", query[begin : spans[at][0]]) + f"the {self._field}")
            begin = spans[at + length - 1][1]
            at += length
        return "".join([*parts, query[begin:]]), np.array(sorted(found), np.int64)
