"""The words of texts in any language: their characters, normalisation, stems and stop words."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import filterfalse, islice, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import Stemmer

from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import ConfigurationError, DependencyError, install, list_names, nearest

# Characters in words: marks on letters, and scripts without spaces between words.

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, as ranges of a pattern."""

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, as ranges of a pattern."""

HANGUL = "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"
"""Korean, which puts spaces between phrases: a particle is written together with its word."""

ACCENTS = "\u0300-\u036f"
"""Accents, as combining marks on Latin, Greek and Cyrillic letters."""

POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
"""Hebrew points, Arabic short vowels and the stroke that stretches a word: some texts have them, others leave them out."""

_ACCENT_OR_POINT = re.compile(f"[{ACCENTS}{POINTS}]")


@cache
def marks() -> str:
    r"""Return the characters that are written on or beside a letter (Unicode's Mn and Mc), for a class of a pattern."""
    numbers = (*range(0x300, 0xFE00), *range(0xFE10, 0x10000))  # without selectors of a variant
    return "".join(char for char in map(chr, numbers) if unicodedata.category(char) in ("Mn", "Mc"))


def unaccented(text: str) -> str:
    """Return a text without accents and points, in compatibility form; marks that make a different letter are kept."""
    return normalize("NFC", _ACCENT_OR_POINT.sub("", normalize("NFKD", text)))


# Patterns that always take time linear in the text: RE2 (Cox, 2010), with bounds on their size.

MOST_MATCHES = 1000
_LONGEST = 1000
_LARGEST = 5000
"""Limits of a pattern: its characters, and the instructions that RE2 makes of it; time is bounded by their number."""


@dataclass(frozen=True)
class LinearPattern:
    """A compiled pattern."""

    pattern: str
    _compiled: Any

    @staticmethod
    @lru_cache(maxsize=10_000)
    def compiled(pattern: str, where: str = "pattern") -> LinearPattern:
        """Compile a pattern; case is not compared."""
        try:
            import re2
        except ImportError:
            raise DependencyError(f"patterns need RE2: {install('signals')}") from None
        shown = f"{where}: the pattern {pattern if len(pattern) <= 80 else f'{pattern[:77]}...'!r}"
        if len(pattern) > _LONGEST:
            raise ConfigurationError(f"{shown} has {len(pattern):,} characters; {_LONGEST:,} are allowed")
        options = re2.Options()
        options.case_sensitive = options.log_errors = False
        try:
            made = re2.compile(pattern.encode("utf-8"), options)
        except re2.error as error:
            detail = error.args[0] if error.args else "unknown error"
            reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else detail
            raise ConfigurationError(
                f"{shown} does not compile: {reason} (patterns are RE2's: without look-around and back-references)"
            ) from None
        if made.programsize > _LARGEST:
            count = f"{made.programsize:,} instructions; {_LARGEST:,} are allowed"
            raise ConfigurationError(f"{shown} becomes {count}: use smaller counts")
        if made.fullmatch(b"") is not None:
            raise ConfigurationError(f"{shown} matches the empty text, and so everywhere; ask for a character")
        return LinearPattern(pattern, made)

    def spans(self, data: bytes, most: int = MOST_MATCHES) -> list[tuple[int, int]]:
        """Return where the pattern matches a text in UTF-8, in bytes: from left to right, not overlapping, none empty."""
        spans = (match.span() for match in self._compiled.finditer(data))
        return [(begin, end) for begin, end in islice(spans, most) if end > begin]


def in_characters(data: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in the bytes of a text in UTF-8 as spans in its characters."""
    if data.isascii():
        return spans
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    before = np.concatenate([[0], np.cumsum(begins)])
    return [(int(before[begin]), int(before[end])) for begin, end in spans]


# Lists of stop words; their source and license are in the file.


@cache
def _stop_lists() -> dict[str, tuple[str, ...]]:
    lines = Path(__file__).with_name("stop_words.txt").read_text("utf-8").splitlines()
    lists = (line.split() for line in lines if not line.startswith("#"))
    return {name: tuple(words) for name, *words in lists}


def stop_words(name: str) -> tuple[str, ...]:
    """Return a list of stop words."""
    lists = _stop_lists()
    if name not in lists:
        names = "" if name.lower() in ("none", "null", "") else f"; {nearest(name, lists)}"
        raise ConfigurationError(f"stopwords={name!r} is no list; pass stopwords=None (null in YAML) to keep all words{names}")
    return lists[name]


# The words of a text in a lexical index: the same rules for passages and queries, in every script.
#
# A name with punctuation (C++, C#, .NET, node.js, AT&T, I/O) is a word in addition to its parts; a letter that an apostrophe
# joins to a word (John's, l'amour) is none. Texts are normalised by NFKC and case folding; accents stay unless they are folded.
# Scripts without spaces are split into overlapping pairs of characters, like Lucene's CJKAnalyzer. A passage has its single
# characters as well, and a query only those that stand alone.


# Settings of each language: a stemmer of Snowball's (Porter, 2001), a list of stop words, its own rule of case.

NO_STEMMER = "none"

TURKIC = frozenset(["tr", "az"])
"""Languages in which the small letter of I is \u0131, and that of \u0130 is i."""


class Language(NamedTuple):
    """Settings of a language."""

    stemmer: str = NO_STEMMER
    stopwords: str | None = None


_STEMMERS = dict(
    pair.split(":")
    for pair in (
        "ar:arabic ca:catalan cs:czech da:danish de:german el:greek en:porter eo:esperanto es:spanish et:estonian "
        "eu:basque fa:persian fi:finnish fr:french ga:irish hi:hindi hu:hungarian hy:armenian id:indonesian "
        "it:italian lt:lithuanian ne:nepali nl:dutch no:norwegian pl:polish pt:portuguese ro:romanian ru:russian "
        "sr:serbian st:sesotho sv:swedish ta:tamil tr:turkish yi:yiddish "
    ).split()
)
_WITH_STOP_WORDS = frozenset("da de en es fr it nl no pt ru sv tr".split())
_WITHOUT_STEMMER = "any az bn ha he ja ko so sw te th uk vi yo zh".split()
LANGUAGES = {
    code: Language(_STEMMERS.get(code, NO_STEMMER), code if code in _WITH_STOP_WORDS else None)
    for code in sorted([*_STEMMERS, *_WITHOUT_STEMMER])
}
"""By ISO 639-1 code; "any" is for texts in several languages. A list of stop words would be matched with pairs of
characters in Chinese and Korean, so none is taken there."""


Accents = Literal["keep", "fold"]

_JOINED = r"(?:'(?:\w\b|(?=\w\w)))?"
"""An apostrophe after a word, with the single letter behind it, or before a longer word."""

_WORD = re.compile(rf"\w+{_JOINED}")
_ASCII_WORD = re.compile(_WORD.pattern, re.ASCII)
_HAS_NAME = re.compile(r"\.[^\W\d_]|[&#/]|\+[+\W]|\+\Z")
"""Marks of a name with punctuation; apart from the first, few texts have any."""

_SPACED = "".join(c if c.isalnum() or c == "_" else " " for c in map(chr, range(128)))
"""For each ASCII character the character itself, or a space if no word holds it: three times as fast as a pattern."""
_LEFT_OUT = re.compile(f"[\u00ad\u034f{POINTS}\u200d-\u200f\u2060\ufe00-\ufe0f\ufeff]")
_SAME = str.maketrans("\u266f\u2019\u02bc", "#''")
_PAIRED = re.compile(f"[{UNSPACED}{HANGUL}]")
_STRETCH = 256
_OF_NAMES = frozenset("+#&./")
"""Punctuation of names, which are not stemmed."""

_NEVER_STEMMED = 2
"""Length up to which words are not stemmed, as in Lucene's Porter stemmer; "us" would become "u"."""

_ACCENT = re.compile(f"[{ACCENTS}]")


class _Patterns(NamedTuple):
    mark: re.Pattern[str]
    word: re.Pattern[str]
    """Words with marks."""
    mixed: re.Pattern[str]
    """Words, and runs of scripts without spaces."""
    character: re.Pattern[str]
    """A letter of such a run with its marks."""
    names: re.Pattern[str]
    """Names with punctuation next to such runs."""


def _names(letter: str, word: str) -> re.Pattern[str]:
    """Return the pattern of names with punctuation."""
    short = rf"(?<![\w/]){word}{{1,4}}/{word}{{1,4}}(?![\w/])"
    joined = rf"(?:&{word}++|\.{letter}{word}*+)+"
    return re.compile(rf"{short}|(?<!{word}){word}++(?:\+\+|[+#](?!\w)|{joined})|(?<![\w.])\.{letter}{word}*+")


_NAMES = _names(r"[^\W\d_]", r"\w")
_ASCII_NAMES = re.compile(_NAMES.pattern, re.ASCII)


@cache
def _patterns() -> _Patterns:
    """Slow, and unnecessary for ASCII."""
    mark, unspaced = marks(), UNSPACED + HANGUL
    character = rf"(?=\w)[{unspaced}][{mark}]*"
    return _Patterns(
        re.compile(f"[{mark}]"),
        re.compile(rf"\w[\w{mark}]*{_JOINED}"),
        re.compile(rf"(?:{character})+|(?![{unspaced}])\w(?:(?![{unspaced}])[\w{mark}])*{_JOINED}"),
        re.compile(character),
        _names(rf"[^\W\d_{unspaced}]", rf"[^\W{unspaced}]"),
    )


def language_of(language: str, stemmer: str, stopwords: str | None) -> Language:
    """Return the stemmer and the stop words; ``"auto"`` means those of the language."""
    if language not in LANGUAGES:
        raise ConfigurationError(f"language={language!r} is unknown; write its code: {list_names(sorted(LANGUAGES))}")
    own = LANGUAGES[language]
    chosen = Language(own.stemmer if stemmer == "auto" else stemmer, own.stopwords if stopwords == "auto" else stopwords)
    known = [*Stemmer.algorithms(), NO_STEMMER]
    if chosen.stemmer not in known:
        raise ConfigurationError(f"there is no stemmer {chosen.stemmer!r}; {nearest(chosen.stemmer, known)}")
    if chosen.stopwords is not None:
        stop_words(chosen.stopwords)
    return chosen


class Words:
    """Splits texts into words, and maps words to the terms of an index."""

    def __init__(
        self,
        language: str = "en",
        stemmer: str = "auto",
        stopwords: str | None = "auto",
        pattern: str | None = None,
        accents: Accents = "keep",
    ) -> None:
        self._turkic = language in TURKIC
        self._folds = accents == "fold"
        chosen = language_of(language, stemmer, stopwords)
        listed = () if chosen.stopwords is None else stop_words(chosen.stopwords)
        self._stop = frozenset(map(self.normalized, listed))
        self._stem: Callable[[str], str] = str if chosen.stemmer == NO_STEMMER else Stemmer.Stemmer(chosen.stemmer).stemWord
        self._matched = None if pattern is None else _matcher(LinearPattern.compiled(pattern))

    def normalized(self, text: str) -> str:
        """Return a text in the form in which words are compared."""
        if self._turkic:
            text = normalize("NFC", text).replace("I", "\u0131").replace("\u0130", "i")
        if text.isascii():
            return text.lower()
        folded = _LEFT_OUT.sub("", normalize("NFKC", text).casefold()).replace("i\u0307", "i").translate(_SAME)
        if self._folds:
            folded = _ACCENT.sub("", normalize("NFD", folded))
        return normalize("NFKC", folded)

    def split(self, text: str, *, passage: bool = False) -> list[str]:
        """Return the words of a text, in order."""
        text = self.normalized(text)
        if self._matched is not None:
            parts = (
                stretch[begin : begin + _STRETCH] for stretch in text.split() for begin in range(0, len(stretch), _STRETCH)
            )
            return [word for part in parts for word in self._matched(part)]
        has_name = _HAS_NAME.search(text) is not None
        if text.isascii():
            words = _ASCII_WORD.findall(text) if "'" in text else text.translate(_SPACED).split()
            return words + _ASCII_NAMES.findall(_punctuated(text)) if has_name else words
        patterns = _patterns()
        if _PAIRED.search(text) is None:
            words = (patterns.word if patterns.mark.search(text) else _WORD).findall(text)
            return words + _NAMES.findall(_punctuated(text)) if has_name else words
        words = patterns.names.findall(_punctuated(text)) if has_name else []
        for word in patterns.mixed.findall(text):
            if _PAIRED.match(word):
                characters = patterns.character.findall(word)
                pairs = [first + second for first, second in pairwise(characters)]
                words += pairs + characters if passage or not pairs else pairs
            else:
                words.append(word)
        return words

    def term(self, word: str) -> str | None:
        """Return the term of a word; None for a stop word, and for a letter joined to a word by an apostrophe."""
        if self._matched is None:
            word, apostrophe, letter = word.partition("'")
            if apostrophe and not letter and len(word) == 1:
                return None
            if not _OF_NAMES.isdisjoint(word):
                return word
        if word in self._stop:
            return None
        return self._stem(word) if len(word) > _NEVER_STEMMED else word


def _matcher(pattern: LinearPattern) -> Callable[[str], list[str]]:
    """Return a function that finds the matches in at most 256 characters: before each match, RE2 may read all of them."""

    @lru_cache(maxsize=2**16)
    def matched(part: str) -> list[str]:
        data = part.encode("utf-8")
        return [data[begin:end].decode("utf-8") for begin, end in pattern.spans(data)]

    return matched


def _punctuated(text: str) -> str:
    """Return the parts of a text between spaces that are not just words: a quarter of most texts."""
    return " ".join(filterfalse(str.isalnum, text.split()))


_KEPT = 500_000
_LONGEST_STEMMED = 100


class Stems:
    """Splits texts into words and stems them; safe in several threads."""

    def __init__(self, language: str | None = "english") -> None:
        known = Stemmer.algorithms()
        if language is not None and language not in known:
            raise ConfigurationError(f"there is no stemmer for the language {language!r}; {nearest(language, known)}")
        self.language = language
        self._stemmer: Any = None if language is None else Stemmer.Stemmer(language)
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def words(self, text: str) -> list[str]:
        """Return the stems of a text, in order."""
        known = self._known
        return [known.get(word) or self.stem(word) for word in _pattern().findall(text)]

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
            plain = _plain(word[:_LONGEST_STEMMED])
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

    Examples:
        >>> stems_of_language("english").words("Whales are singing")
        ['whale', 'are', 'sing']
    """
    return Stems(language)


def _plain(word: str) -> str:
    """A word in lower case, without accents; marks of other scripts, which are parts of their letters, stay."""
    return word.lower() if word.isascii() else normalize("NFC", _ACCENT.sub("", normalize("NFKD", word.casefold())))


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    letter = f"(?:(?![{UNSPACED}])[^\\W_])"
    return re.compile(f"[{UNSPACED}][{marks()}]*|{letter}+(?:[{marks()}]+{letter}*)*")
