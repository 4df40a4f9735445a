"""Words that a report puts in quotation marks, and whether its source has them so."""

from __future__ import annotations

import re
from itertools import islice

from nlp_retrieval.text.quotations import located
from nlp_retrieval.text.surfaces import words_of

__all__ = ["missing_quotations"]

_QUOTED = re.compile(
    r"\u201c([^\u201c\u201d]{1,2000})\u201d|\u201e([^\u201c\u201d\u201e]{1,2000})[\u201c\u201d]|\u00ab([^\u00ab\u00bb]{1,2000})\u00bb"
    r"|(?<![\w\"])\"([^\"]{1,2000})\"(?![\w\"])"
)
_LEFT_OUT = re.compile(r"\[[^\]]{0,200}\]|\u2026|\.\s?\.\s?\.")
_WORD = re.compile(r"[^\W\d_]+")
_MOST = 50
_LONG_WORD = 4
_FEWEST_WORDS = 3
_FEWEST_IN_PART = 2


def missing_quotations(sentence: str, source: str) -> tuple[str, ...]:
    """Return the quotations of a sentence that do not stand in a source word by word, in order.

    Of what is left out ("..."), or put in in brackets, the parts around it have to stand there, in any place. Fewer than three
    words in quotation marks may be a word that the author keeps at a distance, and words of which half are capitalised are the
    title of a work: these are no quotations. The first letter may be a capital one or not.

    Args:
        sentence: of a report, as plain text.
        source: what it cites, with its title.
    """
    quotations = [next(filter(None, match.groups())).strip() for match in islice(_QUOTED.finditer(sentence), _MOST)]
    return tuple(one for one in quotations if _is_quotation(one) and not _stands(one, source))


def _is_quotation(text: str) -> bool:
    long = [word for word in _WORD.findall(text)[1:] if len(word) >= _LONG_WORD]
    titled = long and 2 * sum(word[0].isupper() for word in long) >= len(long)
    return len(words_of(text)) >= _FEWEST_WORDS and not titled


def _stands(quotation: str, source: str) -> bool:
    parts = [part.strip(" ,;:.!?") for part in _LEFT_OUT.split(quotation)]
    return all(_located(part, source) for part in parts if len(words_of(part)) >= _FEWEST_IN_PART)


def _located(part: str, source: str) -> bool:
    forms = (part, part[0].swapcase() + part[1:])
    return any(located(form, source, shortest=1) is not None for form in forms)
