"""Quotations of a report, in any marks that people use, and the check that its source contains them word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from nlp_retrieval.text import FoldedText, fold, is_unspaced, places_of, words_of

_LONGEST = 2_000
_WRITTEN_AS = (("<<", "\u00ab"), (">>", "\u00bb"), ("``", "\u201c"), (",,", "\u201e"), ("''", "\u201d"), ("\uff02", '"'))
_PAIRS = {
    "\u201c": '\u201d"', "\u201e": '\u201c\u201d"', "\u00ab": "\u00bb", "\u00bb": "\u00ab", "\u2039": "\u203a",
    "\u203a": "\u2039", "\u300c": "\u300d", "\u300e": "\u300f", '(?<!\\w)"': '"\u201d', "\u201d": "\u201d",
}  # fmt: skip
_DOUBLE = "|".join(rf"{begin}([^{begin[-1]}{ends}]*)(?:[{ends}]|\Z)" for begin, ends in _PAIRS.items())
_SINGLE = (
    r"(?<!\w)['\u2018\u201a\u2019](?!\s|\d\d|tis\b|n\b)"
    r"((?:[^'\u2018\u2019]|(?<=\w)['\u2019](?=\w)|(?<=s)['\u2019](?=\s[a-z])){1,2000})['\u2018\u2019](?!\w)"
)
_QUOTED = re.compile(f"{_DOUBLE}|{_SINGLE}")
_ENDED = re.compile(r"\A([^\u201c\u201d\u201e\u00ab\u00bb\"\u300c]*)(?<!\s)[\u201d\u00bb\u300d](?!\w)")
"""The end of a quotation that began in an earlier sentence."""
_LEFT_OUT = re.compile(r"[\[(]\s?(?:\.\s?\.\s?\.|\u2026|sic!?)\s?[\])]|\[[^\[\]]{0,200}\]|\u2026+|\.\s?\.\s?\.(?:\s?\.)*")
_ATTRIBUTION = re.compile(r"(?:^|\s)(?:[\u2014\u2015]|--)\s?")
_CHANGED_LETTER = re.compile(r"\[([^\W\d_])\](?=\w)")
_WORD = re.compile(r"[^\W\d_]+")
_MOST_QUOTATIONS, _MOST_PARTS, _MOST_PLACES = 50, 40, 20
_LONG_WORD, _FEWEST_WORDS, _FEWEST_IN_PART = 4, 3, 2
_NEAR = 1_000
"""Most characters of a source between two parts of a quotation; parts farther apart are not one quotation."""


def missing_quotations(sentence: str, source: str, *, all_quoted: bool = False) -> tuple[str, ...]:
    """Return the quotations of a sentence that a source does not contain word for word: no scare quotes, and no titles."""
    quotations = list(dict.fromkeys(islice(_quotations(sentence), _MOST_QUOTATIONS)))
    if all_quoted and not quotations:
        quotations = [_ATTRIBUTION.split(sentence)[0].strip()]
    wanted = [quotation for quotation in quotations if _is_quotation(quotation)]
    folded = fold(source) if wanted else None
    return tuple(quotation for quotation in wanted if folded is not None and not _is_quoted(quotation, folded))


def _quotations(sentence: str) -> Iterator[str]:
    for written, mark in _WRITTEN_AS:
        sentence = sentence.replace(written, mark)
    ended = _ENDED.match(sentence)
    quoted = [ended[1]] if ended else []
    for match in _QUOTED.finditer(sentence, ended.end() if ended else 0):
        quoted += filter(None, match.groups())
    yield from (words.strip() for words in quoted if 0 < len(words.strip()) <= _LONGEST)


def _is_quotation(text: str) -> bool:
    first, *others = _WORD.findall(text) or [""]
    long = [word for word in others if len(word) >= _LONG_WORD and not is_unspaced(word[0])]
    is_title = long and not first[:1].islower() and 2 * sum(word[0].isupper() for word in long) >= len(long)
    return _count(text) >= _FEWEST_WORDS and not is_title


def _count(text: str) -> float:
    """Return the number of words of a text; in a script without spaces, two characters count as one word."""
    words = words_of(text)
    return len(words) - sum(map(is_unspaced, words)) / 2


def _is_quoted(quotation: str, source: FoldedText) -> bool:
    """Return whether a source contains the parts of a quotation in order, near each other."""
    pieces = _LEFT_OUT.split(_CHANGED_LETTER.sub(r"\1", quotation))
    parts = [part for part in (piece.strip(" ,;:.!?\u3001\u3002\uff0c") for piece in pieces) if words_of(part)]
    if not parts or len(parts) > _MOST_PARTS:
        return not parts
    counts = [_count(part) for part in parts]
    if len(parts) > 1 and 2 * sum(count for count in counts if count >= _FEWEST_IN_PART) < sum(counts):
        return False
    return any(_follow(parts[1:], source, end) for _, end in _spans(parts[0], source, 0, len(source.text)))


def _follow(parts: list[str], source: FoldedText, position: int) -> bool:
    for part in parts:
        span = next(iter(_spans(part, source, position, position + _NEAR + len(part))), None)
        if span is None:
            return False
        position = span[1]
    return True


def _spans(part: str, source: FoldedText, begin: int, end: int) -> list[tuple[int, int]]:
    """Return at most 20 places of a part, whatever the case of its first letter, in order."""
    forms = dict.fromkeys((part, part[0].swapcase() + part[1:]))
    return sorted({span for form in forms for span in islice(places_of(form, source, begin, end, 1), _MOST_PLACES)})[
        :_MOST_PLACES
    ]
