"""Windows of neighbouring sentences of a passage, for verifiers."""

from __future__ import annotations

from nlp_retrieval.text import sentences_of

__all__ = ["Span", "window_spans"]

Span = tuple[int, int]


def window_spans(text: str, size: int) -> list[Span]:
    """Return windows of whole neighbouring sentences that together cover the text; one for a short text.

    Args:
        text: any text.
        size: the longest window, in characters; a longer sentence is a window of its own.
    """
    windows: list[Span] = []
    for begin, end in sentences_of(text):
        if windows and end - windows[-1][0] <= size:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((begin, end))
    return windows
