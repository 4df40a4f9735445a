"""Whether a sentence states something that a source could show to be wrong: a number, a date, a name."""

from __future__ import annotations

import re

from nlp_retrieval.text import CLOSERS

__all__ = ["states_fact"]

_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*")
_BEGINS_ANEW = frozenset(':"\u201c\u201e\u2018«(;')
_NO_NAMES = frozenset("I I'm I've I'd I'll I\u2019m I\u2019ve I\u2019d I\u2019ll".split())
_FEWEST_WORDS = 3


def states_fact(sentence: str) -> bool:
    """Whether a sentence holds a number, or a word with a capital letter that does not begin it; questions state nothing.

    Args:
        sentence: as plain text.
    """
    if sentence.rstrip(CLOSERS + " ").endswith(("?", ":", "\uff1f")):
        return False
    words = list(_WORD.finditer(sentence))
    if len(words) < _FEWEST_WORDS:
        return False
    if _DIGIT.search(sentence):
        return True
    return any(
        word[0][0].isupper() and word[0] not in _NO_NAMES and sentence[: word.start()].rstrip()[-1:] not in _BEGINS_ANEW
        for word in words[1:]
    )
