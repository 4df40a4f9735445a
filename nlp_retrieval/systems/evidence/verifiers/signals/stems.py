"""The words of a text that count when it is compared with another, without their endings."""

from __future__ import annotations

from functools import lru_cache

from nlp_retrieval.text import FUNCTION_WORDS, words_of

__all__ = ["stemmed"]

_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")


def stemmed(text: str) -> list[str]:
    """Return the words of a text that are no function words, in order, without common endings where four letters are left.

    Args:
        text: any text.
    """
    return [_stem(word) for word in words_of(text) if word not in FUNCTION_WORDS]


@lru_cache(65_536)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
