"""The relevant part of a passage for a query, with their shared words highlighted.

A word is shared if it is in the query, or one of the two begins with the other, has four letters or more, and is at most
three shorter (``film``, ``filmed``). Words of a script without spaces are compared by pairs of characters. Common words, which
occur in many of the passages, are not shared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, pairwise

LENGTH = 220
"""Maximum characters of a snippet."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = "\u2e80"
_SAMPLE, _FEW, _SHARE = 400, 20, 0.25
_LEAD = 40
_STEM, _ENDING = 4, 3

Span = tuple[int, int]


def common_words(passages: Sequence[str], queries: Iterable[str]) -> set[str]:
    """Return the uninformative words of queries: those in more than a quarter of the passages."""
    asked = {word for text in queries for word in _words(text)}
    if len(passages) < _FEW:
        return {word for word in asked if len(word) < _STEM}
    sample = list(islice(passages, 0, None, max(1, len(passages) // _SAMPLE)))
    counts = Counter(word for text in sample for word in set(_words(text)) & asked)
    return {word for word, count in counts.items() if count > _SHARE * len(sample)}


def shared_spans(passage: str, query: str, common: Collection[str] = ()) -> list[Span]:
    """Return the positions of query words in a passage, in order."""
    wanted = [word for word in dict.fromkeys(_words(query)) if word not in common]
    spaced = [word for word in wanted if word[0] < _UNSPACED]
    pairs = {
        word[position : position + 2] for word in wanted if word[0] >= _UNSPACED for position in range(max(1, len(word) - 1))
    }
    spans: list[Span] = []
    for match in _WORD.finditer(passage):
        word = match[0].lower()
        if word[0] < _UNSPACED:
            spans += [match.span()] if any(_alike(word, other) for other in spaced) else []
            continue
        for position in range(len(word)):
            for pair in (word[position : position + 2], word[position]):
                if pair in pairs:
                    start, end = match.start() + position, match.start() + position + len(pair)
                    if spans and start <= spans[-1][1]:
                        spans[-1] = spans[-1][0], max(end, spans[-1][1])
                    else:
                        spans.append((start, end))
                    break
    return spans


def snippet(passage: str, spans: Sequence[Span], length: int = LENGTH) -> Span:
    """Return the part of a passage to show: the first with the most different shared words."""
    if len(passage) <= length:
        return 0, len(passage)
    starts = [0, *(_begin(passage, start) for start, _ in spans)]

    def held(start: int) -> int:
        inside = {passage[begin:end].lower() for begin, end in spans if start <= begin and end <= start + length}
        return len(inside)

    start = max(starts, key=lambda position: (held(position), -position))
    end = min(len(passage), start + length)
    cut = passage.rfind(" ", start + length // 2, end) if end < len(passage) else -1
    return start, cut if cut > 0 else end


def pieces(passage: str, part: Span, spans: Sequence[Span]) -> list[tuple[str, bool]]:
    """Return a part of a passage in pieces, each with a flag for shared words."""
    inside = [(begin, end) for begin, end in spans if part[0] <= begin and end <= part[1]]
    edges = [part[0], *(edge for span in inside for edge in span), part[1]]
    cut = [(passage[begin:end], bool(position % 2)) for position, (begin, end) in enumerate(pairwise(edges))]
    return [(text, shared) for text, shared in cut if text]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= _STEM and len(long) - len(short) <= _ENDING and long.startswith(short))


def _begin(passage: str, start: int) -> int:
    """A position slightly before a word, at the beginning of another."""
    early = max(0, start - _LEAD)
    return early and min(start, passage.find(" ", early) + 1 or start)
