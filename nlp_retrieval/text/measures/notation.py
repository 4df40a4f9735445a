"""Notation of numbers in languages: the decimal mark, the words for scales, and a guess at the language of a text.

The notation follows from a text's own unambiguous numbers ("1.234,5"), then from its function words, then from its script. If
none of these decides, the decimal mark is unknown, and "1.234" may mean 1.234 or 1,234.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from nlp_retrieval.text.words import HAN, HANGUL

__all__ = ["SCALES", "WRITTEN_TOGETHER", "Convention", "convention_of", "plain_digits"]

_READ = 20_000
_POINT = "en zh ja ko hi bn ta te mr ne th he ar fa ur sw ms".split()
_COMMA = "de fr es it pt nl pl ru uk bg sr cs sk sl hr ro hu fi sv da no tr id el vi ca lt lv et be kk az".split()
_SHORT_BILLION = frozenset(["en", "ru", "uk", "bg", "tr", "pt", "id", "el", *_POINT])
_FUNCTION_WORDS = {
    "en": "the of and in to is was were for with by on that from at it are has have a an this had be not or which than about over"  # noqa: E501
    " rose fell grew people cost costs total year years per its their they we said will can all between during more after",
    "de": "der die das und ist war waren von mit für im den dem ein eine einen einem einer nicht auf es sind hat haben wurde wurden bei aus auch"  # noqa: E501
    " rund etwa über sich als um in an zu nach beträgt betrug lag liegt kostet kostete",
    "fr": "le la les des et est était de du en un une pour dans par sur avec que qui au aux ont été environ il elle ce sont plus",  # noqa: E501
    "es": "el la los las de y es fue en un una por con para que del al se más tiene hay unos eran son",
    "it": "il lo la gli di e è in un una per con che del della dei sono stato ha più nel circa i le era da al",
    "pt": "o a os as de e é em um uma por com para que do da dos das no na foi são mais cerca tem há",
    "nl": "de het een en van is was in op met voor zijn door ongeveer naar niet dat bedraagt waren",
    "pl": "i w na z do jest było się oraz przez dla o od ponad około roku wynosi ma są że to",
    "sv": "och är av på för med en ett som den var i till",
    "da": "og er af på til med en et som den var i",
    "cs": "a v na je se z do byl bylo pro že",
    "tr": "ve bir bu ile için olarak",
    "id": "dan di yang adalah dengan untuk",
    "fi": "ja on oli ei että",
    "hu": "és az egy volt hogy",
    "ro": "și de la în este au pentru",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_language)
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile(f"[{HANGUL}]")),
    ("zh", re.compile(f"[{HAN}]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]{2}")),
    ("ar", re.compile("[\u0600-\u065f\u066e-\u06ef]")),
    ("hi", re.compile("[\u0900-\u0965\u0970-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e4f]")),
    ("he", re.compile("[\u05d0-\u05ea]")),
)
_SURE_COMMA = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3}){1,6},\d|\d{1,3}(?:\.\d{3}){2,6}(?![.,]?\d)|\d{1,3},\d{1,2}\s?%)")
_SURE_POINT = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3}){1,6}\.\d|\d{1,3}(?:,\d{3}){2,6}(?![.,]?\d)|\d{1,3}\.\d{1,2}\s?%)")

WRITTEN_TOGETHER = f"{HAN}{HANGUL}\u3040-\u30ff\u0900-\u0965\u0970-\u0dff\u0e00-\u0e4f\u0600-\u065f\u066e-\u06ef"
"""Letters of scripts that put no space between a number and a word."""

SCALES: dict[str, float] = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15,
    "hundreds": 1e2, "thousands": 1e3, "millions": 1e6, "billions": 1e9, "trillions": 1e12,
    "bn": 1e9, "mn": 1e6, "tn": 1e12, "trn": 1e12, "mln": 1e6, "mlrd": 1e9, "mld": 1e9, "mrd": 1e9, "mio": 1e6, "mia": 1e9,
    "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7, "cr": 1e7,
    "hundert": 1e2, "tausend": 1e3, "tsd": 1e3, "millionen": 1e6, "milliarde": 1e9, "milliarden": 1e9, "billionen": 1e12,
    "mill": 1e6, "mille": 1e3, "milliard": 1e9, "milliards": 1e9, "md": 1e9, "mds": 1e9,
    "mil": 1e3, "millón": 1e6, "millon": 1e6, "millones": 1e6, "billón": 1e12, "billones": 1e12,
    "mila": 1e3, "milione": 1e6, "milioni": 1e6, "miliardo": 1e9, "miliardi": 1e9,
    "milhão": 1e6, "milhões": 1e6, "bilhão": 1e9, "bilhões": 1e9, "trilhão": 1e12, "trilhões": 1e12, "mi": 1e6, "bi": 1e9,
    "tysiąc": 1e3, "tysiące": 1e3, "tysięcy": 1e3, "tys": 1e3, "milion": 1e6, "miliony": 1e6, "milionów": 1e6, "miliard": 1e9,
    "miliardy": 1e9, "miliardów": 1e9, "bilion": 1e12, "biliony": 1e12, "bilionów": 1e12,
    "duizend": 1e3, "miljoen": 1e6, "miljard": 1e9, "biljoen": 1e12, "miljon": 1e6, "miljoner": 1e6, "miljarder": 1e9,
    "tusind": 1e3, "tusen": 1e3, "millioner": 1e6, "milliarder": 1e9, "mkr": 1e6, "tisíc": 1e3, "milionu": 1e6, "milionů": 1e6,
    "bin": 1e3, "milyon": 1e6, "milyar": 1e9, "ribu": 1e3, "juta": 1e6, "miliar": 1e9,
    "тыс": 1e3, "тысяча": 1e3, "тысячи": 1e3, "тысяч": 1e3, "млн": 1e6, "миллион": 1e6, "миллиона": 1e6, "миллионов": 1e6,
    "млрд": 1e9, "миллиард": 1e9, "миллиарда": 1e9, "миллиардов": 1e9, "трлн": 1e12, "триллион": 1e12, "триллиона": 1e12,
    "триллионов": 1e12, "мільйон": 1e6, "мільйона": 1e6, "мільйонів": 1e6, "мільярд": 1e9, "мільярдів": 1e9, "тисяч": 1e3,
    "ألف": 1e3, "آلاف": 1e3, "مليون": 1e6, "ملايين": 1e6, "مليونا": 1e6, "مليار": 1e9, "مليارات": 1e9, "تريليون": 1e12,
    "हज\u093cार": 1e3, "ह\u095bार": 1e3, "हजार": 1e3, "लाख": 1e5, "करोड\u093c": 1e7, "करो\u095c": 1e7, "अरब": 1e9,
    "พัน": 1e3, "หมื่น": 1e4, "แสน": 1e5, "ล้าน": 1e6, "พันล้าน": 1e9, "หมื่นล้าน": 1e10, "แสนล้าน": 1e11, "ล้านล้าน": 1e12,
}  # fmt: skip
"""Factors of the words for scales."""

_LONG = {"billion": 1e12, "billions": 1e12, "trillion": 1e18, "trillions": 1e18}
_SPACES = dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", "\u00a0")
_SHAPES = _SPACES | {
    "\uff0e": ".", "\u2024": ".", "\uff0c": ",", "\uff05": "%", "\u066a": "%", "\ufe6a": "%", "\uff0d": "\u2212",
    "\ufe63": "\u2212", "\uff0b": "+", "\uff04": "$", "\uffe5": "\u00a5", "\uff1a": ":", "\uff0f": "/", "\u2044": "/",
    "\u2215": "/", "\u2019": "'", "\u02bc": "'", "\u2018": "'", "\uff07": "'", "\u066b": "\u066b", "\u066c": "\u066c",
    "\u22c5": "\u00b7", "\u2010": "-", "\u2011": "-", "\u2012": "\u2013", "\uff08": "(", "\uff09": ")", "\u207b": "\u207b",
}  # fmt: skip
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class Convention(NamedTuple):
    """Notation of numbers in a text.

    Args:
        decimal: "." or ","; empty if unknown.
        long_scale: whether a "billion" is a million millions.
        spaces: whether a plain space separates thousands.
    """

    decimal: str
    long_scale: bool = False
    spaces: bool = False

    def scale(self, word: str) -> float:
        """Return the factor of a word for a scale in this text."""
        word = word.lower().rstrip(".")
        return _LONG[word] if self.long_scale and word in _LONG else SCALES[word]


def plain_digits(text: str) -> str:
    """Return a text of the same length with digits 0 to 9, and one shape for each sign, mark and space within numbers.

    Args:
        text: any text.
    """
    return text if text.isascii() else _NOT_ASCII.sub(_plain_match, text)


def convention_of(text: str, language: str | None = None) -> Convention:
    """Return the notation of numbers in a text.

    Args:
        text: as :func:`plain_digits` returns it; its first 20,000 characters are read.
        language: of the text, as a code ("de", "pt-BR"); None if unknown.
    """
    head = text[:_READ]
    if language:
        return _of_language(language.replace("_", "-").lower()) or Convention("")
    guessed = _guessed(head)
    known = _of_language(guessed) or Convention("")
    comma, point = _SURE_COMMA.search(head) is not None, _SURE_POINT.search(head) is not None
    if comma != point:
        return known._replace(decimal="," if comma else ".")
    return known


def _of_language(code: str) -> Convention | None:
    base = code.partition("-")[0]
    if code in {"es-mx", "es-us", "es-419", "de-ch", "it-ch", "de-li"}:
        return Convention(".", long_scale=True)
    if base in _COMMA:
        return Convention(
            ",", base not in _SHORT_BILLION and code != "pt-br", base not in {"de", "it", "es", "nl", "tr", "id", "el"}
        )
    return Convention(".") if base in _POINT else None


def _guessed(text: str) -> str:
    """The language with most function words in a text, or that of its script; empty if neither decides.

    A text with many function words of two languages with different notations counts as neither.
    """
    words = Counter(word for word in map(str.lower, _WORD.findall(text)) if word in _LANGUAGES_OF)
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for language in _LANGUAGES_OF[word]:
            counts[language] += count
    if not counts:
        return next((language for language, letters in _SCRIPTS if letters.search(text)), "")
    best = max(counts, key=lambda language: (counts[language], language))
    ours = _of_language(best)
    for other in counts:
        if (theirs := _of_language(other)) and ours and theirs.decimal != ours.decimal:
            apart = sum(
                count for word, count in words.items() if other in _LANGUAGES_OF[word] and best not in _LANGUAGES_OF[word]
            )
            if 3 * apart > counts[best] or (not apart and counts[other] == counts[best]):
                return ""
    return best


def _plain_match(match: re.Match[str]) -> str:
    return _plain(match[0])


@lru_cache(maxsize=2**14)
def _plain(char: str) -> str:
    if char in _SHAPES:
        return _SHAPES[char]
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if "\uff21" <= char <= "\uff5a":
        return unicodedata.normalize("NFKC", char)
    return char
