"""Raised text: exponents are written as such, and marks of footnotes are taken out, since they are no part of a sentence.

``22<sup>[2]</sup> stops`` says 22 stops, ``10<sup>6</sup>`` is a million and ``m<sup>2</sup>`` a unit.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from nlp_retrieval.systems.evidence.reading.markup.blocks import is_block

__all__ = ["read_raised"]

_MAY_BE_RAISED = "0123456789+-\u2212()n"
_RAISED = str.maketrans(_MAY_BE_RAISED, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")
_LONGEST_MARK = 24
_BEFORE = 24
_LEFT_OUT = "left-out-of-the-text"

_NUMBERS = r"[0-9]{1,3}(?:\s?[,;\u2013-]\s?[0-9]{1,3}){0,7}"
_BRACKETED = re.compile(rf"[\[\u3010(]\s?(?:{_NUMBERS}|[^\W\d_]{{1,3}}|[^\W\d_]{{1,8}}[ \u00a0.][^\]]{{1,12}})\s?[\]\u3011)]")
_PLAIN = re.compile(rf"{_NUMBERS}|[a-z]|[*\u2020\u2021\u00a7\u00b6]{{1,3}}")
_DIGITS = re.compile(rf"{_NUMBERS}")
_IN_TEXT = re.compile(
    r"(?<=[\w.,;:?\"'\u201d\u2019)%])(?:\[(?:[0-9]{1,3}(?:\s?[,\u2013-]\s?[0-9]{1,3}){0,7}|note [0-9]{1,3})\])+"
)
_NOTE_NAMES = re.compile(
    r"(?:^|[-_ :])(?:fn|ftn|note|notes|footnote|footnotes|endnote|noteref|fnref|ref|refs|reference|references|cite|citation|bib)"  # noqa: E501
)
_NOTE_PLACE = re.compile(
    r"#(?:[-_:.]*(?:user-content-)?(?:fn|ftn|edn|note|foot|end|ref|cite|cit|bib|b|r|n|rf)[a-z]{0,12}[-_:.]?[a-z]{0,12}[-_:.]?[0-9a-z]|[0-9]{1,3}$)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]+\Z")
_NUMBER_BEFORE = re.compile(r"(?<![\w.,])([0-9][0-9.,]*)\Z")
_ON_GOES_A_FORMULA = ("=", "+", "\u2212", "\u00d7", "*", "/", "^", "<", ">", "\u2248", "\u00b7", "\u2264", "\u2265")
_UNITS = frozenset(
    "km cm mm dm hm nm µm μm pm ft in yd mi sq kg mg µg s ms h min Hz kHz MHz mol cd rad sr Pa kPa ly pc AU au px nmi sec "
    "metre metres meter meters mile miles foot feet inch inches yard yards sin cos tan log ln exp det chi rho sigma".split()
)


def read_raised(page: Any) -> tuple[int, list[str]]:
    """Write exponents as such and take out the marks of footnotes, in place.

    A mark is a short number, letter or sign that is a link to a note, or is in brackets, or is raised behind a word or a
    number where it can be no exponent. An exponent stands behind a unit, a single letter, a bracket of a formula, or the base
    of a power. In code nothing is a mark.

    Args:
        page: the root of the page, as lxml parsed it.

    Returns:
        How many marks were taken out, and what they were.
    """
    from lxml import etree

    marks: list[str] = []
    before = ""
    pending: list[tuple[Any, bool, bool]] = [(page, True, False)]
    while pending:
        element, entering, is_code = pending.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if not entering:
            before = "" if is_block(tag) else before
            if element is not page:
                before = _read(element, "tail", before, is_code, marks)
            continue
        before = "" if is_block(tag) else before
        pending.append((element, False, is_code))
        if not tag or tag in ("title", "head"):
            continue
        inside = is_code or tag in ("pre", "code", "samp", "kbd", "math", "svg")
        if tag in ("sup", "a", "span", "small") and not inside and (text := _short(element)):
            if _is_mark(element, tag, text, before):
                marks.append(text)
                element.tag = _LEFT_OUT
                continue
            if tag == "sup" and not text.strip(_MAY_BE_RAISED):
                for inner in list(element):
                    element.remove(inner)
                element.text = text.translate(_RAISED)
        before = _read(element, "text", before, inside, marks)
        pending.extend((child, True, inside) for child in reversed(element))
    etree.strip_elements(page, _LEFT_OUT, with_tail=False)
    return len(marks), marks


def _read(element: Any, part: str, before: str, is_code: bool, marks: list[str]) -> str:
    """Take out marks that stand in the text itself, and return what now stands before the text that follows."""
    text = getattr(element, part)
    if not text:
        return before
    if "[" in text and not is_code:
        whole = before + text
        kept = _IN_TEXT.sub("", whole)
        if kept != whole and text.isprintable() and whole.startswith(before) and kept.startswith(before):
            marks += _IN_TEXT.findall(whole)
            text = kept[len(before) :]
            setattr(element, part, text)
    return f"{before}{text[-_BEFORE:]}"[-_BEFORE:]


def _short(element: Any) -> str:
    """The text of an element without white space at its ends; empty where it is longer than a mark."""
    text = "".join(islice(element.itertext(), 12)).strip()
    return text if len(text) <= _LONGEST_MARK else ""


def _is_mark(element: Any, tag: str, text: str, before: str) -> bool:
    links = [element] if tag == "a" else list(islice(element.iter("a"), 4))
    named = " ".join(element.get(name, "") for name in ("class", "id", "role", "epub:type", "rel")).lower()
    leads = any(_NOTE_PLACE.search(link.get("href", "")) for link in links) or bool(_NOTE_NAMES.search(named))
    bracketed = _BRACKETED.fullmatch(text) is not None
    if tag == "a":
        if not leads or not element.get("href", "").strip().startswith(("#", "http", "/")):
            return False
        return "#" in element.get("href", "") and (bracketed or _PLAIN.fullmatch(text) is not None) and bool(before.strip())
    if tag in ("span", "small"):
        return leads and bracketed and bool(before.strip())
    if leads and (bracketed or _PLAIN.fullmatch(text)):
        return True
    if bracketed:
        single = text.startswith("(") and re.search(r"(?:\A|[^\w])[^\W\d_]\Z", before) is not None
        return not single and (text[0] != "(" or bool(_DIGITS.fullmatch(text[1:-1].strip())))
    return _DIGITS.fullmatch(text) is not None and not _is_exponent(element, text, before)


def _is_exponent(element: Any, text: str, before: str) -> bool:  # noqa: PLR0911
    """Whether a raised number belongs to what stands before it, or to the symbol behind it."""
    after = element.tail or ""
    if not before or before[-1].isspace() or before[-1] in "([":
        return after[:1].isalpha()  # an isotope
    if not text.isdigit():
        return False
    if after.lstrip()[:1] in _ON_GOES_A_FORMULA and after.strip():
        return True
    if number := _NUMBER_BEFORE.search(before):
        return number[1] in ("2", "10") or len(number[1]) == 1
    if before[-1] in ")]":
        inner = before[before.rfind("(") + 1 : -1] if "(" in before else ""
        return bool(inner) and not re.search(r"[^\W\d_]{3}", inner)
    letters = _LETTERS.search(before)
    if letters is None:
        return not before[-1].isascii() and not before[-1].isalnum() and before[-1] not in "\u201d\u2019\u00bb\u3002\u2026"
    word = letters[0]
    return len(word) == 1 or word in _UNITS
