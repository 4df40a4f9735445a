"""The words of a text for comparison: at word borders, without case, accents and endings.

A word is a run of letters, digits and the marks on them. In scripts without spaces between words (Chinese, Japanese, Thai,
...), each character is a word, so that a keyword is a run of characters. Words are stemmed by Snowball (Porter, 2001), so
"emissions" and "emission" are equal; parts of words never match.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.unicode_forms import normalize
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.text.words import UNSPACED, marks

__all__ = ["Stems", "stems_of_language"]

_KEPT = 500_000
_LONGEST = 100


class Stems:
    """Splits texts into words and stems them; safe in several threads.

    Args:
        language: a Snowball language, such as ``english``; None compares words without stemming.

    Raises:
        ConfigurationError: there is no such language.
    """

    def __init__(self, language: str | None = "english") -> None:
        import Stemmer

        known = Stemmer.algorithms()
        if language is not None and language not in known:
            raise ConfigurationError(f"there is no stemmer for the language {language!r}; {nearest(language, known)}")
        self.language = language
        self._stemmer: Any = None if language is None else Stemmer.Stemmer(language)
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def words(self, text: str) -> list[str]:
        """Return the stems of a text, in order."""
        known, found = self._known, []
        for word in _pattern().findall(text):
            stem = known.get(word)
            found.append(self.stem(word) if stem is None else stem)
        return found

    def as_written(self, text: str) -> list[str]:
        """Return the words of a text in their original form, in order."""
        return _pattern().findall(text)

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """Return the stems of a text, in order, each with where it begins and ends, in characters."""
        return [(self.stem(match[0]), match.start(), match.end()) for match in _pattern().finditer(text)]

    def stem(self, word: str) -> str:
        """Return one word in its compared form; of one longer than 100 characters, its beginning."""
        stem = self._known.get(word)
        if stem is None:
            plain = _plain(word[:_LONGEST])
            with self._lock:
                stem = plain if self._stemmer is None else self._stemmer.stemWord(plain)
                if len(self._known) >= _KEPT:
                    self._known.clear()
                stem = self._known[word] = sys.intern(str(stem))
        return stem


@lru_cache(maxsize=32)
def stems_of_language(language: str | None) -> Stems:
    """Return the shared :class:`Stems` of a language, which remembers known words.

    Raises:
        ConfigurationError: there is no such language.
    """
    return Stems(language)


def _plain(word: str) -> str:
    """A word in lower case, without accents; marks of other scripts, which are parts of their letters, stay."""
    if word.isascii():
        return word.lower()
    spread = normalize("NFKD", word.casefold())
    return normalize("NFC", "".join(c for c in spread if not "\u0300" <= c <= "\u036f"))


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    letter = f"(?:(?![{UNSPACED}])[^\\W_])"
    return re.compile(f"[{UNSPACED}][{marks()}]*|{letter}+(?:[{marks()}]+{letter}*)*")
