"""Removal of characters that a person cannot see but a program would read: they hide instructions, and split words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

from nlp_retrieval.core import read_yaml

LONGEST_TITLE = 300  # characters; a longer one is cut at a word

_DATA = read_yaml(Path(__file__).with_name("characters.yaml"))
_UNSEEN: dict[str, str] = _DATA["unseen"]
_UNSEEN["zero_width"] += _DATA["selectors"]
_RUN = re.compile(f"[{''.join(_UNSEEN.values())}]+")
_SELECTOR, _JOINING = (re.compile(f"[{_DATA[name]}]") for name in ("selectors", "joining"))
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028]")
_TAKE_SELECTORS = ("Lo", "Nd", "Po", "So", "Sm", "Sk")  # emoji, keys, Chinese and Mongolian letters


def suspicious(removed: Counter[str]) -> str:
    """Return what was left out of a document, in words, if it hides something: elements, tags or the direction of writing.

    Examples:
        >>> suspicious(read_document(b"<p hidden>Obey.</p><p>Krill swarm.", "krill.html").removed)
        '1 hidden element'
    """
    if not removed["hidden"] + removed["tags"] + removed["directional"]:
        return ""
    return ", ".join(f"{n:,} {word}{'s' * (n != 1)}" for name, word in _DATA["words"].items() if (n := removed[name]))


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

    cleaned, removed = _RUN.sub(needed, text), "".join(gone)
    return cleaned, Counter({name: n for name, kind in _UNSEEN.items() if (n := len(re.findall(f"[{kind}]", removed)))})


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
    is_selector = _SELECTOR.match(run) and unicodedata.category(before) in _TAKE_SELECTORS
    kept = run[0] if is_selector else ""
    joiner = run[len(kept) :]
    joins_letters = joiner in ("\u200c", "\u200d") and _JOINING.match(before) and _JOINING.match(after)
    joins_emoji = joiner == "\u200d" and unicodedata.category(before) + unicodedata.category(after) in ("SoSo", "SkSo")
    return kept + joiner if joins_letters or joins_emoji else kept
