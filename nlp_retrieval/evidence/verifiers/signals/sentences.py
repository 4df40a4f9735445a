"""Where the sentences of a text are, and windows of neighbouring sentences.

Every character that is not white space belongs to one sentence. A blank line ends a sentence, a full stop does where the
next word may begin one; abbreviations, initials and decimals do not end a sentence.
"""

from __future__ import annotations

import re

__all__ = ["Span", "sentence_spans", "window_spans"]

Span = tuple[int, int]

_ABBREVIATIONS = frozenset(
    "al approx art assoc ave bros ca capt cf ch co col corp dept dr ed eds eg eq eqs esp est etc fig figs gen gov hon ie inc"
    " jan feb mar apr jun jul aug sep sept oct nov dec jr lt ltd maj messrs mr mrs ms mt no nos op pp prof ref refs rep rev sec"
    " sen sgt sr st supp suppl tab univ viz vol vols vs".split()
)
_END = re.compile(r"[.!?…]+[\"')\]}”\u2019»]*(?=\s)|[。\uff01\uff1f｡]+[」』\uff09】”\u2019]*|\n\s*\n\s*")
_WORD_BEFORE = re.compile(r"([^\W\d_]+(?:\.[^\W\d_]+)*)\.?$")
_LONGEST = 2000


def sentence_spans(text: str) -> list[Span]:
    """Return where each sentence begins and ends, in characters, in order; a very long one is cut at white space.

    Args:
        text: any text.
    """
    spans: list[Span] = []
    begin = 0
    for match in _END.finditer(text):
        if match[0].isspace() or _ends(text, match):
            end = match.start() if match[0].isspace() else match.end()
            _add(spans, text, begin, end)
            begin = match.end()
    _add(spans, text, begin, len(text))
    return spans


def window_spans(text: str, size: int = 450) -> list[Span]:
    """Return windows of whole neighbouring sentences that together hold all of them; one for a short text.

    Args:
        text: any text.
        size: how long a window may be, in characters; a longer sentence is a window of its own.
    """
    windows: list[Span] = []
    for begin, end in sentence_spans(text):
        if windows and end - windows[-1][0] <= size:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((begin, end))
    return windows


def _ends(text: str, match: re.Match[str]) -> bool:
    after = text[match.end() : match.end() + 40].lstrip()
    if not after or match[0][0] != "." or len(match[0].rstrip("\"')]}”\u2019»")) > 1:
        return not after[:1].islower()
    if after[0].islower():
        return False
    before = _WORD_BEFORE.search(text, max(0, match.start() - 30), match.start())
    if before is None:
        return True
    word = before[1]
    # an initial, or letters with full stops between them: "J. Smith", "U.S. Army"
    if (len(word) == 1 and word.isupper()) or "." in word:
        return False
    return word.lower() not in _ABBREVIATIONS


def _add(spans: list[Span], text: str, begin: int, end: int) -> None:
    part = text[begin:end]
    begin += len(part) - len(part.lstrip())
    end = begin + len(part.strip())
    while end - begin > _LONGEST:
        cut = max(text.rfind(" ", begin, begin + _LONGEST), text.rfind("\n", begin, begin + _LONGEST))
        cut = cut if cut > begin else begin + _LONGEST
        spans.append((begin, cut))
        begin = cut + (len(text[cut:end]) - len(text[cut:end].lstrip()))
    if end > begin:
        spans.append((begin, end))
