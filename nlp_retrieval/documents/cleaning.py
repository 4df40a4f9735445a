"""Removal of characters that a person cannot see but a program would read: they hide instructions, and split words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields

LONGEST_TITLE = 300
"""Characters of a title; a longer one is cut at a word."""


@dataclass(frozen=True)
class Removed:
    """Counts of what was left out of a document since its readers do not see it; two of them can be added.

    Args:
        hidden: elements of a page that styles or attributes hide.
        unrendered: comments, and elements that a browser does not show.
        struck: passages that the author struck out.
        zero_width: characters without width or function.
        directional: characters that turn the writing around them.
        tags: invisible characters that mirror ASCII.
        controls: control characters other than tab and line feed.

    Examples:
        >>> (Removed(hidden=1) + Removed(hidden=1, tags=1)).describe()
        '2 hidden elements, 1 Unicode tag character'
    """

    hidden: int = 0
    unrendered: int = 0
    struck: int = 0
    zero_width: int = 0
    directional: int = 0
    tags: int = 0
    controls: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(self)))

    @property
    def suspicious(self) -> bool:
        """Return whether more than usual was removed: hidden elements, tag characters or directional controls."""
        return bool(self.hidden or self.tags or self.directional)

    def describe(self) -> str:
        """Return what was left out, in words; empty for nothing."""
        counts = [(int(getattr(self, kind.name)), word) for kind, word in zip(fields(self), _WORDS, strict=True)]
        return ", ".join(f"{count:,} {word}{'s' * (count != 1)}" for count, word in counts if count)


_WORDS = (
    "hidden element",
    "comment or element that browsers do not show",
    "struck passage",
    "zero-width character",
    "control of the writing direction",
    "Unicode tag character",
    "control character",
)

_CONTROLS = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_DIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_ZERO_WIDTH = (
    f"{_SELECTORS}\u200c\u200d\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_KINDS = {"zero_width": _ZERO_WIDTH, "directional": _DIRECTIONAL, "tags": _TAGS, "controls": _CONTROLS}
_UNSEEN = re.compile(f"[{''.join(_KINDS.values())}]+")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028]")

_JOINING = re.compile("[\u0620-\u0fff\u1000-\u109f\u1780-\u1c4f\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff]")
"""Scripts whose letters change their form at a joiner: Arabic, Syriac, Mongolian, those of India and beyond."""

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def clean_text(text: str) -> tuple[str, Removed]:
    """Remove the characters of a text that no reader sees, and count them.

    A joiner between letters of a script that needs it or between emoji stays, as does a variation selector behind an emoji, a
    Chinese character or a Mongolian letter. Every line end becomes a line feed. Cleaning again changes nothing.

    Examples:
        >>> clean_text("rain\u200bfall")[0]
        'rainfall'
    """
    text = _LINE_ENDS.sub("\n", text).replace("\u2029", "\n\n")
    gone: list[str] = []

    def needed(run: re.Match[str]) -> str:
        kept = _needed(text[run.start() - 1] if run.start() else "", run[0], text[run.end() : run.end() + 1])
        gone.append(run[0][len(kept) :])
        return kept

    cleaned, removed = _UNSEEN.sub(needed, text), "".join(gone)
    return cleaned, Removed(**{name: len(re.findall(f"[{kind}]", removed)) for name, kind in _KINDS.items()})


def clean_title(text: str) -> tuple[str, Removed]:
    """Return a title as one line of at most 300 characters, cleaned, and what was removed.

    Examples:
        >>> clean_title("  A title   on one line ")[0]
        'A title on one line'
    """
    cleaned, removed = clean_text(text.lstrip()[: 20 * LONGEST_TITLE])
    title = " ".join(cleaned.split())
    if len(title) <= LONGEST_TITLE:
        return title, removed
    cut = title[: LONGEST_TITLE - 1]
    return f"{cut.rpartition(' ')[0] or cut}…", removed


def _needed(before: str, run: str, after: str) -> str:
    """Return the characters of an invisible run that have a function between the visible characters around it."""
    kept = run[0] if before and _takes_selector(before, run[0]) else ""
    joiner = run[len(kept) :]
    if joiner not in ("\u200c", "\u200d") or not before or not after:
        return kept
    categories = [unicodedata.category(before), unicodedata.category(after)]
    if _JOINING.match(before) and _JOINING.match(after):
        is_needed = all(category[0] in "LM" for category in categories)
    else:
        is_needed = joiner == "\u200d" and categories[0] in ("So", "Sk") and categories[1] == "So"
    return kept + joiner * is_needed


def _takes_selector(before: str, selector: str) -> bool:
    if not re.match(f"[{_SELECTORS}]", selector):
        return False
    if "\u180b" <= selector <= "\u180f":
        return "\u1820" <= before <= "\u18aa"
    is_symbol = before in "#*0123456789" or unicodedata.category(before) in ("So", "Sm", "Po", "Sk")
    return bool(_HAN.match(before)) or (selector <= "\ufe0f" and is_symbol)
