"""How much of a part of a document a passage holds, so that passages that were cut in another way can be judged by it."""

from __future__ import annotations

from nlp_retrieval.text.quotations import fold


def coverage(span: str, passage: str) -> float:
    """Return the share of a span's characters that a passage of the same document holds in one piece.

    Args:
        span: part of the document.
        passage: another part, which may overlap with it at either end.

    Examples:
        >>> coverage("red fox saw it", "In the snow, the red fox"), coverage("red fox", "the red fox saw")
        (0.5, 1.0)
    """
    wanted, held = fold(span).folded.strip(), fold(passage).folded.strip()
    if not wanted or not held:
        return 0.0
    if wanted in held:
        return 1.0
    if held in wanted:
        return len(held) / len(wanted)
    return max(_overlap(held, wanted), _overlap(wanted, held)) / len(wanted)


def _overlap(first: str, second: str) -> int:
    """Return the length of the longest end of one text that begins the other, cut at words; linear (Knuth-Morris-Pratt)."""
    first = first[-len(second) :]
    text = second + "\0" + first
    borders = [0] * len(text)
    for position in range(1, len(text)):
        border = borders[position - 1]
        while border and text[position] != text[border]:
            border = borders[border - 1]
        borders[position] = border + (text[position] == text[border])
    length = borders[-1]
    whole = (length == len(second) or not second[length - 1 : length + 1].isalnum()) and (
        length == len(first) or not first[-length - 1 : -length + 1 or None].isalnum()
    )
    return length if length and whole else 0
