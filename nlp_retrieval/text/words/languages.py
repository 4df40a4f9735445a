"""What each language brings to the words of a text: a stemmer, a list of stop words, its own rule of case.

The stemmers are Snowball's (Porter, 2001, https://snowballstem.org), by PyStemmer. A language without stemmer and stop words
is split and normalised, as all are.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LANGUAGES", "NO_STEMMER", "TURKIC", "Language"]

NO_STEMMER = "none"

TURKIC = frozenset(["tr", "az"])
"""Languages in which the small letter of I is \u0131, and that of \u0130 is i."""


class Language(NamedTuple):
    """What a language brings.

    Args:
        stemmer: of PyStemmer, or "none".
        stopwords: name of a list, or None for no list.
    """

    stemmer: str = NO_STEMMER
    stopwords: str | None = None


LANGUAGES = {
    "any": Language(),
    "ar": Language("arabic"),
    "az": Language(),
    "bn": Language(),
    "ca": Language("catalan"),
    "cs": Language("czech"),
    "da": Language("danish", "da"),
    "de": Language("german", "de"),
    "el": Language("greek"),
    "en": Language("porter", "en"),
    "eo": Language("esperanto"),
    "es": Language("spanish", "es"),
    "et": Language("estonian"),
    "eu": Language("basque"),
    "fa": Language("persian"),
    "fi": Language("finnish"),
    "fr": Language("french", "fr"),
    "ga": Language("irish"),
    "ha": Language(),
    "he": Language(),
    "hi": Language("hindi"),
    "hu": Language("hungarian"),
    "hy": Language("armenian"),
    "id": Language("indonesian"),
    "it": Language("italian", "it"),
    "ja": Language(),
    "ko": Language(),
    "lt": Language("lithuanian"),
    "ne": Language("nepali"),
    "nl": Language("dutch", "nl"),
    "no": Language("norwegian", "no"),
    "pl": Language("polish"),
    "pt": Language("portuguese", "pt"),
    "ro": Language("romanian"),
    "ru": Language("russian", "ru"),
    "so": Language(),
    "sr": Language("serbian"),
    "st": Language("sesotho"),
    "sv": Language("swedish", "sv"),
    "sw": Language(),
    "ta": Language("tamil"),
    "te": Language(),
    "th": Language(),
    "tr": Language("turkish", "tr"),
    "uk": Language(),
    "vi": Language(),
    "yi": Language("yiddish"),
    "yo": Language(),
    "zh": Language(),
}
"""By ISO 639-1 code; "any" is for texts in several languages. A list of stop words would be matched with pairs of
characters in Chinese and Korean, so none is taken there."""
