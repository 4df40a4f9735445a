"""Fencing texts from outside for a language model: on one line, in which nothing can be a mark of a prompt."""

from __future__ import annotations

import unicodedata

__all__ = ["fenced", "is_unseen"]

_MARKS = str.maketrans("[]<>", "\uff3b\uff3d\uff1c\uff1e")
"""Characters of DSPy's fields, numbers of passages, tags and special tokens of models; their wide forms mean nothing."""

_SPACES = ("Zl", "Zp", "Zs")
_UNSEEN = ("Cf", "Co", "Cs", "Cn")
_JOINERS = "\u200c\u200d"


def fenced(text: str) -> str:
    """Return a text on one line, without brackets, tags, invisible characters and more than one space in a row.

    Args:
        text: of a source, a claim or a question.
    """
    shown = text.translate(_MARKS)
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(" " if _is_space(char) else char for char in shown if not is_unseen(char))
    return " ".join(shown.split())


def is_unseen(char: str) -> bool:
    """Return whether only models read a character: it has no width, or only chooses the form of the one before it.

    Args:
        char: one character. Joiners count as visible, because scripts and signs need them.
    """
    selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return selector or (unicodedata.category(char) in _UNSEEN and char not in _JOINERS)


def _is_space(char: str) -> bool:
    category = unicodedata.category(char)
    return category in _SPACES or category == "Cc"
