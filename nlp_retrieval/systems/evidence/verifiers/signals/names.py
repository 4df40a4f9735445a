"""Names in a claim, and whether a passage has them: capitalised words, abbreviations and their expansions.

A name is a run of words that do not begin with a lower-case letter, inside a sentence; at its beginning, where it is no
common word. A name is in a passage where each of its words stands there, or its initials do. Of "HIV-positive" and
"M2-phenotype" only what has a capital or a digit is looked for, and of a name at the beginning of a claim not the first word,
which may be capitalised for that alone ("Reducing H3K4me3"). A month is there too where a date of the passage is in it
("2019-03-12"), and the one of a whole date ("12 March") is not looked for, as dates are compared by themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache

from nlp_retrieval.text import FUNCTION_WORDS, dates_of, month_of, months_named, words_of

__all__ = ["names_of", "unmatched_names"]

_TOKEN = re.compile(r"[^\W_][\w'\u2019.&+-]*[\w+]|[^\W_]")
_PART = re.compile(r"[^\W_]+")
_JOINING = frozenset({"of", "the", "and", "de", "von", "van", "der", "la", "le", "du"})
_BREAK = re.compile(r"[,;:()\"\u201c\u201d.!?]")
_MOST = 100


def names_of(claim: str) -> list[tuple[int, int]]:
    """Return where the names of a claim begin and end, in characters; at most 100.

    Args:
        claim: a statement.
    """
    spans: list[tuple[int, int]] = []
    begin = end = -1
    tokens = list(_TOKEN.finditer(claim))
    capitals = sum(_is_capital(token[0]) for token in tokens)
    shouting = capitals > max(3, 0.8 * len(tokens))
    for number, token in enumerate(tokens):
        word = token[0]
        if shouting and not word.isupper():
            continue
        apart = begin >= 0 and _BREAK.search(claim, end, token.start())
        plain = number == 0 and _is_common(word) and not _goes_on(claim, tokens)
        if _is_capital(word) and not plain and word.lower() not in FUNCTION_WORDS:
            if begin < 0 or apart:
                spans += [(begin, end)] if begin >= 0 else []
                begin = token.start()
            end = token.end()
        elif begin >= 0 and (word.lower() not in _JOINING or apart):
            spans.append((begin, end))
            begin = -1
        if len(spans) == _MOST:
            return spans
    return [*spans, (begin, end)] if begin >= 0 else spans


def unmatched_names(claim: str, passage: str) -> list[str]:
    """Return the names of a claim of which a passage lacks a word.

    Args:
        claim: a statement.
        passage: what is to support it, with its title.
    """
    words = words_of(passage)
    there, joined = set(map(_stem, words)), "".join(words)
    has_month = any(month_of(word) for word in words_of(claim))
    months = months_named(passage) if has_month else frozenset()
    dates = [date for date in dates_of(claim) if date.is_full] if has_month else []
    missing = []
    for begin, end in names_of(claim):
        lacking = [
            word
            for part in _looked_for(claim, begin, end)
            for word in words_of(part)
            if len(word) > 1
            and _stem(word) not in there
            and not (len(word) > 3 and word in joined)
            and not (month_of(word) and (month_of(word) in months or any(one.begin < end and begin < one.end for one in dates)))
        ]
        name = claim[begin:end]
        if lacking and not _as_initials(name, [word for word in words_of(name) if word not in _JOINING], passage):
            missing.append(name)
    return missing


def _looked_for(claim: str, begin: int, end: int) -> list[str]:
    """The parts of a name that make it one."""
    parts = [part[0] for part in _PART.finditer(claim, begin, end)]
    named = [part for part in parts if part.lower() not in _JOINING and (_is_capital(part) or part[0].isdigit())]
    begins_claim = _PART.search(claim, 0, begin) is None
    return named[1:] if begins_claim and len(named) > 1 and _is_common(named[0]) else named


def _is_capital(word: str) -> bool:
    return word[0].isupper() or any(letter.isupper() for letter in word[1:])


def _is_common(word: str) -> bool:
    """Whether the first word of a sentence may be capitalised for that alone."""
    return word[1:].islower() or len(word) == 1


def _goes_on(claim: str, tokens: list[re.Match[str]]) -> bool:
    """Whether the first word is the beginning of a name: the next one, with nothing but space between, is capitalised."""
    return len(tokens) > 1 and _is_capital(tokens[1][0]) and claim[tokens[0].end() : tokens[1].start()].isspace()


@lru_cache(65_536)
def _stem(word: str) -> str:
    for ending in ("ians", "ian", "ese", "ish", "ans", "an", "es", "s", "n"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _as_initials(name: str, words: list[str], passage: str) -> bool:
    """Whether the name is an abbreviation of words in the passage, or the passage abbreviates it."""
    if len(words) > 1:
        initials = "".join(word[0] for word in words).upper()
        return len(initials) > 1 and re.search(rf"\b{re.escape(initials)}s?\b", passage) is not None
    letters = re.sub(r"[^A-Z]", "", name)
    if not 2 <= len(letters) <= 6:
        return False
    pattern = r"\b" + r"[\w-]*[\s-]+(?:(?:of|the|and|for|in)\s+)?".join(re.escape(letter) for letter in letters)
    return re.search(pattern, passage, re.IGNORECASE) is not None
