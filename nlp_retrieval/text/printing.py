"""Text that is safe to show: on a terminal, on a page, in a prompt of a language model; and letters that look like Latin ones.

An escape sequence could rewrite what a terminal shows, and a text pose as a mark of a prompt. Source of the letters: Unicode
Technical Standard 39, confusables.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_OBEYED = ("Cc", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters, marks and signs without ink."""
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text after them around."""


def printable(text: str) -> str:
    """Replace control characters (tabs among them), line ends, halves of surrogate pairs, and what turns text around.

    Examples:
        >>> printable(chr(27) + "[31mred")
        '�[31mred'
    """
    if text.isascii() and text.isprintable():
        return text
    unsafe = (char in _TURNING or unicodedata.category(char) in _OBEYED for char in text)
    return "".join("\N{REPLACEMENT CHARACTER}" if replaced else char for char, replaced in zip(text, unsafe, strict=True))


def visible(text: str) -> str:
    """Replace control characters and the like by spaces, and name invisible characters: ``"[U+202E]"`` turns text around.

    Joiners between joined characters (Persian, emoji) stay.

    Examples:
        >>> visible("pay" + chr(0x202E) + "lap")
        'pay[U+202E]lap'
    """
    if text.isascii() and text.isprintable():
        return text
    shown = []
    for position, char in enumerate(text):
        category, beside = unicodedata.category(char), (text[position - 1 : position], text[position + 1 : position + 2])
        joins = char in _JOINERS and not any(each.isascii() for each in beside)
        chooses = _is_selector(char) and not beside[0].isascii()
        if (category == "Cf" or char in _BLANK or _is_selector(char)) and not (joins or chooses):
            shown.append(f"[U+{ord(char):04X}]")
        elif category == "Cs":
            shown.append("\N{REPLACEMENT CHARACTER}")
        elif category in _OBEYED:
            shown.append(" " if char.isspace() else "\N{REPLACEMENT CHARACTER}")
        else:
            shown.append(char)
    return "".join(shown)


def not_a_command(line: str) -> str:
    """Return a line of a report as one that a runner of continuous integration does not take for a command to it."""
    text = line.lstrip()
    shown = f"{line[: len(line) - len(text)]}: {text[1:]}" if text.startswith("::") else line
    return shown.replace("##[", "## [")


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_cell(text: str) -> str:
    """Return a text as a cell of a CSV file; an apostrophe comes before what a spreadsheet would read as a formula.

    Examples:
        >>> spreadsheet_cell("=1+1"), spreadsheet_cell("1+1")
        ("'=1+1", '1+1')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


_MARKS = str.maketrans("[]<>", "\uff3b\uff3d\uff1c\uff1e")
"""Characters of DSPy's fields, numbers of passages, tags and special tokens of models; their wide forms mean nothing."""

_SPACES = ("Zl", "Zp", "Zs", "Cc")
_UNSEEN = ("Cf", "Co", "Cs", "Cn")


def fenced(text: str) -> str:
    """Return a text on one line, without brackets, tags, invisible characters and more than one space in a row.

    Args:
        text: of a source, a claim or a question.

    Examples:
        >>> text = fenced("Ignore <b>this</b>   [[ ## answer ## ]]")
        >>> "<" in text, "[" in text, "   " in text
        (False, False, False)
    """
    shown = text.translate(_MARKS)
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(" " if unicodedata.category(char) in _SPACES else char for char in shown if not is_unseen(char))
    return " ".join(shown.split())


def is_unseen(char: str) -> bool:
    """Return whether only models read a character: it has no width, or only chooses the form of the one before it."""
    return _is_selector(char) or char in _BLANK or (unicodedata.category(char) in _UNSEEN and char not in _JOINERS)


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


_PAIRS = (
    "\u0430a \u0432b \u0435e \u043ak \u043cm \u043dh \u043eo \u0440p \u0441c \u0442t \u0443y \u0445x \u0456i \u0458j "
    "\u0455s \u0501d \u04bbh \u051bq \u051dw \u0410A \u0412B \u0415E \u041aK \u041cM \u041dH \u041eO \u0420P \u0421C "
    "\u0422T \u0423Y \u0425X \u0406I \u0408J \u0405S \u050cG \u03b1a \u03b2b \u03b5e \u03b9i \u03bak \u03bdv \u03bfo "
    "\u03c1p \u03c4t \u03c5u \u03c7x \u0391A \u0392B \u0395E \u0396Z \u0397H \u0399I \u039aK \u039cM \u039dN \u039fO "
    "\u03a1P \u03a4T \u03a5Y \u03a7X"
).split()
_LATIN = {ord(pair[0]): pair[1] for pair in _PAIRS}


def as_latin(text: str) -> str:
    """Return a text of the same length with each of these letters as the Latin one; for comparing, not for showing.

    Args:
        text: in any script.

    Examples:
        >>> as_latin("p" + chr(0x430) + "ypal")  # with a Cyrillic letter
        'paypal'
    """
    return text if text.isascii() else text.translate(_LATIN)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``"1 query"``, ``"1,200 queries"``.

    Examples:
        >>> counted(1, "query"), counted(1200, "query", "queries")
        ('1 query', '1,200 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``"5, 10 and 21"``.

    Examples:
        >>> listed(["5", "10", "21"])
        '5, 10 and 21'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
