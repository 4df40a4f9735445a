"""Windows of neighbouring sentences, in which a verifier reads a passage."""

from __future__ import annotations

import re

from nlp_retrieval.text.sentences import sentence_spans

__all__ = ["Span", "sentences_of", "window_spans"]

Span = tuple[int, int]

_PARAGRAPH = re.compile(r"(?:(?!\n[^\S\n]*\n).)+", re.DOTALL)


def sentences_of(text: str) -> list[Span]:
    """Return where each sentence of a text begins and ends, in characters, in order; a blank line ends a sentence.

    Args:
        text: any text.
    """
    return [
        (paragraph.start() + begin, paragraph.start() + end)
        for paragraph in _PARAGRAPH.finditer(text)
        for begin, end in sentence_spans(paragraph[0])
    ]


def window_spans(text: str, size: int) -> list[Span]:
    """Return windows of whole neighbouring sentences that together hold all of them; one for a short text.

    Args:
        text: any text.
        size: how long a window may be, in characters; a longer sentence is a window of its own.
    """
    windows: list[Span] = []
    for begin, end in sentences_of(text):
        if windows and end - windows[-1][0] <= size:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((begin, end))
    return windows
