"""Removal of characters that a person cannot see but a program would read: they hide instructions, and split words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

LONGEST_TITLE = 300  # characters; a longer one is cut at a word

_WORDS = {
    "hidden": "hidden element",
    "unrendered": "comment or element that browsers do not show",
    "struck": "struck passage",
    "zero_width": "zero-width character",
    "directional": "control of the writing direction",
    "tags": "Unicode tag character",
    "controls": "control character",
}
"""What is left out of a document since its readers do not see it, as it is counted and told."""


def suspicious(removed: Counter[str]) -> str:
    """Return what was left out of a document, in words, if it hides something: elements, tags or the direction of writing.

    Examples:
        >>> suspicious(read_document(b"<p hidden>Obey.</p><p>Krill swarm.", "krill.html").removed)
        '1 hidden element'
    """
    if not removed["hidden"] + removed["tags"] + removed["directional"]:
        return ""
    return ", ".join(f"{n:,} {word}{'s' * (n != 1)}" for name, word in _WORDS.items() if (n := removed[name]))


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

_TAKE_SELECTORS = ("Lo", "Nd", "Po", "So", "Sm", "Sk")  # emoji, keys, Chinese and Mongolian letters


def clean_text(text: str) -> tuple[str, Counter[str]]:
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
        kept = _needed(text[run.start() - 1] if run.start() else " ", run[0], text[run.end() : run.end() + 1] or " ")
        gone.append(run[0][len(kept) :])
        return kept

    cleaned, removed = _UNSEEN.sub(needed, text), "".join(gone)
    return cleaned, Counter({name: n for name, kind in _KINDS.items() if (n := len(re.findall(f"[{kind}]", removed)))})


def clean_title(text: str) -> str:
    """Return a title as one line of at most 300 characters, without those that nobody sees.

    Examples:
        >>> clean_title("  A title   on one line ")
        'A title on one line'
    """
    title = " ".join(clean_text(text.lstrip()[: 20 * LONGEST_TITLE])[0].split())
    cut = title[: LONGEST_TITLE - 1]
    return title if len(title) <= LONGEST_TITLE else f"{cut.rpartition(' ')[0] or cut}…"


def _needed(before: str, run: str, after: str) -> str:
    """Return the characters of an invisible run that have a function between the visible characters around it."""
    is_selector = re.match(f"[{_SELECTORS}]", run) and unicodedata.category(before) in _TAKE_SELECTORS
    kept = run[0] if is_selector else ""
    joiner = run[len(kept) :]
    joins_letters = joiner in ("\u200c", "\u200d") and _JOINING.match(before) and _JOINING.match(after)
    joins_emoji = joiner == "\u200d" and unicodedata.category(before) + unicodedata.category(after) in ("SoSo", "SkSo")
    return kept + joiner if joins_letters or joins_emoji else kept
