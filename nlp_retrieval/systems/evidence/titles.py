"""Finding the source that a reference names by its title alone, as lists without links name a paper or a report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, combinations

from nlp_retrieval.systems.evidence.index.store import SourceVersion
from nlp_retrieval.text import words_of

_FEWEST_WORDS = 4
"""Words of a title; shorter ones, such as "Annual Report 2023", are those of many works."""

_LONGEST_ENTRY, _MOST_PARTS = 2_000, 60

_PART = re.compile(r"\s[|\u2013\u2014-]\s")
"""Between a title and the name of its site ("... | Example News"), or after an author and a year ("Smith - 2020 - ...")."""

_ENDS = re.compile(
    r"[.,;:!?()\[\]\"\u201c\u201d\u201e\u00ab\u00bb|/]+(?=\s|\Z)|(?:\s|\A)[\"(\[\u201c\u201e\u00ab\u2018]|\s[\u2013\u2014-]\s"
)
"""Where a title in an entry begins or ends."""


class TitledSources:
    """Sources by their titles.

    A reference names a source if its entry has the whole title, from one punctuation mark to another, and no other source has
    this title; of several titles the longest counts. Titles of fewer than four words name nothing.
    """

    def __init__(self, sources: Iterable[SourceVersion]) -> None:
        self._sources: dict[tuple[str, ...], dict[str, SourceVersion]] = {}
        for source in sources:
            title = source.title.replace("_", " ")  # that of a file without a title is its name
            for words in {words_of(title), *map(words_of, _PART.split(title))}:
                if len(words) >= _FEWEST_WORDS:
                    self._sources.setdefault(words, {})[source.url] = source

    def named_in(self, entry: str) -> SourceVersion | None:
        """Return the only source whose title an entry has; None if there is none, or several."""
        parts = [words_of(part) for part in _ENDS.split(entry[:_LONGEST_ENTRY])[:_MOST_PARTS]]
        spans = combinations(range(len(parts) + 1), 2)  # a title may have punctuation of its own
        titles = {tuple(chain.from_iterable(parts[first:last])) for first, last in spans} & self._sources.keys()
        sources = list(self._sources[max(titles, key=len)].values()) if titles else []
        return sources[0] if len(sources) == 1 else None
