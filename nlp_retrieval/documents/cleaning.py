"""Removal of characters that a person cannot see but a program would read.

Such characters hide instructions from the people who read a source (tag characters encode ASCII, variation selectors
and zero-width characters encode bits), split the words that a search looks for, or change the order of the displayed text.
"""

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
        hidden: elements of a page with text that is hidden by style or attribute.
        unrendered: comments, and elements with text that a browser does not show: template, video and the like.
        struck: passages that the author struck out.
        zero_width: characters without width or function, including soft hyphens.
        directional: characters that change the direction of the writing around them.
        tags: characters of the Unicode tag block, which mirror ASCII and are invisible.
        controls: control characters other than tab and line feed, and lone surrogates.

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

    def __bool__(self) -> bool:
        return any(getattr(self, kind.name) for kind in fields(self))

    @property
    def suspicious(self) -> bool:
        """Return whether more than usual was removed: hidden elements, tag characters or directional controls."""
        return bool(self.hidden or self.tags or self.directional)

    def describe(self) -> str:
        """Return what was left out, in words; empty for nothing."""
        counts = {kind.name: int(getattr(self, kind.name)) for kind in fields(self)}
        return ", ".join(f"{count:,} {_WORDS[name]}{'s' * (count != 1)}" for name, count in counts.items() if count)


_WORDS = {
    "hidden": "hidden element",
    "unrendered": "comment or element that browsers do not show",
    "struck": "struck passage",
    "zero_width": "zero-width character",
    "directional": "control of the writing direction",
    "tags": "Unicode tag character",
    "controls": "control character",
}


_CONTROLS = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_DIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS = "\u200c\u200d"
_ZERO_WIDTH = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffc"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)

_UNSEEN = re.compile(f"[{_CONTROLS}{_DIRECTIONAL}{_TAGS}{_SELECTORS}{_JOINERS}{_ZERO_WIDTH}]+")
_IS_CONTROL = re.compile(f"[{_CONTROLS}]")
_IS_DIRECTIONAL = re.compile(f"[{_DIRECTIONAL}]")
_IS_TAG = re.compile(f"[{_TAGS}]")
_IS_SELECTOR = re.compile(f"[{_SELECTORS}]")

_JOINING = re.compile(
    "[\u0620-\u06d3\u06d5-\u06dc\u06df-\u06ff\u0710-\u07ff\u0840-\u085f\u0870-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af"
    "\u1900-\u1aaf\u1b00-\u1c4f\ua800-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010a00-\U00010aff\U00010d00-\U00010eff"
    "\U00011000-\U00011fff]"
)
"""Blocks of the scripts whose letters change their form at a joiner: Arabic, Syriac, Mongolian, those of India and beyond."""

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028]")


def clean_text(text: str) -> tuple[str, Removed]:
    """Remove the characters of a text that no reader sees, and count them.

    Removed are:

    - control characters except tab and line feed, noncharacters, and lone surrogates;
    - the controls of the writing direction (marks, embeddings, overrides, isolates);
    - the tag block, U+E0000 to U+E007F, also behind a flag;
    - zero-width space, word joiner, byte order mark, soft hyphen, invisible operators, fillers, and the other characters
      that Unicode says to ignore in display;
    - zero-width joiner and non-joiner, except one between two letters or vowel signs of a script that needs it (Arabic,
      Persian, the scripts of India and South East Asia, Mongolian) or between two emoji;
    - variation selectors, except one behind an emoji or symbol, a Chinese character or a Mongolian letter.

    Every other line end (CR, CR LF, vertical tab, form feed, U+0085, U+2028) becomes a line feed, and a paragraph separator
    two; these are not counted. Letters that look like others, and visible instructions, stay as they are.

    Args:
        text: from any source.

    Returns:
        The text without them, and the number of each kind. Cleaning it again changes nothing.

    Examples:
        >>> clean_text("rain\u200bfall")
        ('rainfall', Removed(hidden=0, unrendered=0, struck=0, zero_width=1, directional=0, tags=0, controls=0))
    """
    text = _LINE_ENDS.sub("\n", text).replace("\u2029", "\n\n")
    counts = {"zero_width": 0, "directional": 0, "tags": 0, "controls": 0}

    def without(run: re.Match[str]) -> str:
        before = text[run.start() - 1] if run.start() else ""
        kept = _kept(before, run[0], text[run.end() : run.end() + 1])
        for char in run[0]:
            counts[_kind(char)] += 1
        for char in kept:
            counts[_kind(char)] -= 1
        return kept

    return _UNSEEN.sub(without, text), Removed(**counts)


def clean_title(text: str) -> tuple[str, Removed]:
    """Return a title as one line of at most 300 characters, cleaned, and what was removed.

    Examples:
        >>> clean_title("  A title   on one line ")[0]
        'A title on one line'
    """
    # enough of it to fill a title, however much white space it begins with
    cleaned, removed = clean_text(text.lstrip()[: 20 * LONGEST_TITLE])
    title = " ".join(cleaned.split())
    if len(title) <= LONGEST_TITLE:
        return title, removed
    cut = title[: LONGEST_TITLE - 1]
    return f"{cut.rpartition(' ')[0] or cut}…", removed


def _kind(char: str) -> str:
    if _IS_TAG.match(char):
        return "tags"
    if _IS_DIRECTIONAL.match(char):
        return "directional"
    return "controls" if _IS_CONTROL.match(char) else "zero_width"


def _kept(before: str, run: str, after: str) -> str:
    """Return the characters of an invisible run that have a function between the visible characters around it."""
    kept = ""
    if before and _IS_SELECTOR.match(run[0]) and _takes_selector(before, run[0]):
        kept = run[0]
    joiner = run[len(kept) :]
    if len(joiner) == 1 and joiner in _JOINERS and before and after and _takes_joiner(before, joiner, after):
        kept += joiner
    return kept


def _takes_selector(before: str, selector: str) -> bool:
    if "\u180b" <= selector <= "\u180f":
        return "\u1820" <= before <= "\u18aa"
    if _HAN.match(before):
        return True
    return selector <= "\ufe0f" and (before in "#*0123456789" or unicodedata.category(before) in {"So", "Sm", "Po", "Sk"})


def _takes_joiner(before: str, joiner: str, after: str) -> bool:
    if _JOINING.match(before) and _JOINING.match(after):
        return unicodedata.category(before)[0] in "LM" and unicodedata.category(after)[0] in "LM"
    return joiner == "\u200d" and unicodedata.category(before) in {"So", "Sk"} and unicodedata.category(after) == "So"
