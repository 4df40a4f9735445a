"""A question split by its clauses, by rules for English.

"Who is the sibling of the performer of Decade?" holds a question of its own, "the performer of Decade". A name from the passage
that answers it takes its place: "Who is the sibling of Neil Young".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.text.mentions import FUNCTION_WORDS, names_by_rules, normalize

_MOST_WORDS, _MOST_CHARACTERS, _MOST_CLAUSES, _MOST_OF_NAME = 64, 1_000, 16, 8
_WORD = re.compile(r"\S+")
_QUALIFIER = re.compile(r" \([^()]*\)$")
_POSSESSIVE = ("'s", "\u2019s", "s'", "s\u2019")
_ASKING = frozenset("who what when where which how why whom whose".split())
_ARTICLES = frozenset(["the", "a", "an"])
_VERBS = frozenset(
    "is was are were did does do has have had can could will would become became becomes located live lived play played begin "
    "began".split()
)


class Clause(NamedTuple):
    """A part of a question that may be a question of its own, and what stands before and after it."""

    inner: str
    before: str
    after: str

    def answered_by(self, name: str) -> str:
        """Return the question with a name in place of the inner one."""
        return f"{self.before}{name}{self.after}"


def clauses_of(query: str) -> list[Clause]:
    """Return at most 16 parts of a question that may be questions; none of a text that asks nothing or has more than 64 words.

    A part begins at an article or at a possessive, and ends with the question, before a verb or a comma, or after a name: where
    it ends is not known, so every such place counts. Questions whose answer is yes, no, or one of several things have
    no parts: they name what they compare.
    """
    if len(query) > _MOST_CHARACTERS:
        return []
    text = query.rstrip("? .")
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    said = query.casefold().split()
    asks = query.rstrip().endswith("?") or not _ASKING.isdisjoint(said[:1])
    if not asks or len(words) > _MOST_WORDS or "or" in said or not _VERBS.isdisjoint(said[:1]):
        return []
    clauses = []
    for first, last in dict.fromkeys(_spans([text[start:end] for start, end in words])):
        start, end = words[first][0], words[last - 1][1]
        clause = Clause(text[start:end].rstrip(","), text[:start], text[end - text[start:end].endswith(",") :])
        if len(_content(clause.inner)) > 1 and _content(clause.answered_by(" ")):
            clauses.append(clause)
    return clauses[:_MOST_CLAUSES]


def _content(text: str) -> list[str]:
    return [word for word in normalize(text).split() if word not in FUNCTION_WORDS]


def _spans(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First word of each part, and the one after its last."""
    lower = [word.casefold().strip(",.") for word in words]
    for number in range(1, len(words) - 1):
        if lower[number] in _ARTICLES:
            for end in range(number + 3, len(words)):
                before, after = words[end - 1], words[end]
                name_ends = before[0].isupper() and not after[0].isupper() and lower[end] not in {"of", "the"}
                if name_ends or before.endswith(",") or lower[end] in _VERBS | {"and", "along"}:
                    yield number, end
            if number + 3 <= len(words):
                yield number, len(words)
        elif words[number].endswith(_POSSESSIVE):
            first = number
            while first > 1 and (words[first - 1][0].isupper() or lower[first - 1] in {"of", "the"}):
                first -= 1
            yield first, number + 2
            yield first, min(number + 3, len(words))


def names_in(item: SearchableItem, clause: str, most: int) -> list[str]:
    """Return the title of a passage and the names in it, in their order."""
    said = {*normalize(clause).split(), *FUNCTION_WORDS}
    names: dict[str, str] = {}
    for name in (_QUALIFIER.sub("", item.title), *names_by_rules(item.content)):
        words = normalize(name)
        if len(words) > 2 and words.count(" ") < _MOST_OF_NAME and not words.isdigit() and not said.issuperset(words.split()):
            names.setdefault(words, name)
    return list(names.values())[:most]
