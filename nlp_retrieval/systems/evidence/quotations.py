"""Quotations of a report, and the check that its source contains them.

All of Unicode's quotation marks count, in the pairs of any language (English, German, French, Danish, Swedish, Chinese and so
on), also if another mark of the same family closes, if pairs are nested, and if a sentence holds only the beginning or the
end of a quotation. An apostrophe opens none. The work is linear in the length of the sentence and of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from nlp_retrieval.text import FoldedText, fold, is_unspaced, places_of, words_of

_DOUBLE = frozenset('"\uff02\u201c\u201d\u201e\u201f\u2033\u2036\u275d\u275e\u2760\u301d\u301e\u301f\u2e42\u05f4')
_SINGLE = frozenset("'\uff07\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c\u275f`\u00b4\u02bc\u02bb\u05f3")
_PAIRED = {
    "\u00ab": "\u00bb", "\u00bb": "\u00ab\u00bb", "\u2039": "\u203a", "\u203a": "\u2039\u203a", "\u276e": "\u276f",
    "\u300c": "\u300d", "\u300e": "\u300f", "\u300a": "\u300b", "\u3008": "\u3009", "\uff62": "\uff63", "\ufe41": "\ufe42",
    "\ufe43": "\ufe44", "\u226a": "\u226b", "\u27ea": "\u27eb", "\u27e8": "\u27e9", "\u2e22": "\u2e23", "\u2e24": "\u2e25",
}  # fmt: skip
_ENDING = frozenset("".join(_PAIRED.values()))
_OPENS_ALWAYS = frozenset("\u201c\u201e\u201a\u275d\u275b\u301d\u2e42") | _PAIRED.keys()
_BEGINS = frozenset("\u201c\u201e\u201d\u301d\u00ab") | (_PAIRED.keys() - frozenset("\u00bb\u203a"))
_TITLES = frozenset("\u300a\u3008\u27ea\u27e8")
_WRITTEN_AS = (("<<", "\u00ab"), (">>", "\u00bb"), ("``", "\u201c"), ("''", "\u201d"), (",,", "\u201e"))
_MARK = re.compile(f"[{re.escape(''.join(sorted(_DOUBLE | _SINGLE | _PAIRED.keys() | _ENDING)))}]")
_SHORTENED = re.compile(r"\d\ds?\b|(?:tis|twas|twere|twill|em|n|cause|til|till|round|bout|cos|s|t)\b", re.IGNORECASE)
_LOWER_CASE = re.compile(r"\s[a-z]")
_LEFT_OUT = re.compile(
    r"[\[(\u3010]\s?(?:\.\s?\.\s?\.|\u2026|\u22ef|sic!?)\s?[\])\u3011]|\[[^\[\]]{0,200}\]|\u2026+|\u22ef+|\.\s?\.\s?\.(?:\s?\.)*|\u3002{3,6}|\x00"
)
_CHANGED_LETTER = re.compile(r"\[([^\W\d_])\](?=\w)")
_SENTENCE_MARKS = re.compile(r"[\uff0c\u3002\uff01\uff1f\uff1b,;!?]")
_ATTRIBUTION = re.compile(r"(?:^|\s)(?:[\u2014\u2015]|--)\s?")
_QUOTED_WORD = re.compile(r"[^\W\d_]+")
_MOST_QUOTATIONS, _MOST_PARTS, _MOST_PLACES = 50, 40, 20
_LONGEST = 2_000
_LONG_WORD = 4
_FEWEST_WORDS = 3
_FEWEST_IN_PART = 2
_NEAR = 1_000
"""Most characters of a source between two parts of a quotation; parts farther apart are not one quotation."""

_DEEPEST = 8


def missing_quotations(sentence: str, source: str, *, all_quoted: bool = False) -> tuple[str, ...]:
    """Return the quotations of a sentence that a source does not contain word for word, in order.

    A quotation may omit words ("...") or insert some in brackets. The parts around these must be in the source in this order
    and near each other, and parts of two words or more must have at least half of the words: single words prove nothing.
    Fewer than three words in quotation marks may be scare quotes, and words of which the first and half of the others are
    capitalised are the title of a work: these are not quotations. The case of the first letter does not matter.

    Args:
        sentence: of a report, as plain text.
        source: what it cites, with its title.
        all_quoted: whether it is in a block quote, so that all of it is a quotation if it has no quotation marks.
    """
    quotations = list(dict.fromkeys(islice(_quotations(sentence), _MOST_QUOTATIONS)))
    if all_quoted and not quotations:
        quotations = [_ATTRIBUTION.split(sentence)[0].strip()]
    wanted = [quotation for quotation in quotations if _is_quotation(quotation)]
    if not wanted:
        return ()
    folded = fold(source)
    return tuple(quotation for quotation in wanted if not _is_quoted(quotation, folded))


@dataclass
class _OpenQuotation:
    """A mark that opened a quotation, and the position of a mark that may be its end or an apostrophe; -1 for none."""

    mark: str
    place: int
    perhaps: int = -1

    def closes(self, mark: str) -> bool:
        if self.mark in _PAIRED:
            return mark in _PAIRED[self.mark]
        return mark in (_DOUBLE if self.mark in _DOUBLE else _SINGLE)


def _quotations(sentence: str) -> Iterator[str]:
    """Yield the words within quotation marks, in the order of their ends."""
    for opening, mark in _WRITTEN_AS:
        sentence = sentence.replace(opening, mark)
    opened: list[_OpenQuotation] = []

    def inside(begin: int, end: int) -> Iterator[str]:
        if 0 < end - begin <= _LONGEST and (words := sentence[begin:end].strip()):
            titled = sentence[begin - 1 : begin] in _TITLES and is_unspaced(words[0]) and not _SENTENCE_MARKS.search(words)
            yield from () if titled else (words,)

    for match in _MARK.finditer(sentence):
        mark, position = match[0], match.start()
        before, after = sentence[position - 1 : position], sentence[position + 1 : position + 2]
        can_open = _can_open(mark, before, after, sentence, position)
        number = next((n for n in range(len(opened) - 1, -1, -1) if opened[n].closes(mark)), None)
        if number is not None and _can_close(mark, before, after, can_open=can_open):
            quotation = opened[number]
            if mark in _SINGLE and before in "sS" and mark not in "\u2018" and _LOWER_CASE.match(sentence, position + 1):
                quotation.perhaps = position if quotation.perhaps < 0 else quotation.perhaps
                continue
            yield from inside(quotation.place + 1, position)
            del opened[number:]
        elif can_open:
            if number is not None and opened[number].perhaps >= 0:
                yield from inside(opened[number].place + 1, opened[number].perhaps)
                del opened[number:]
            opened = [*opened[-_DEEPEST:], _OpenQuotation(mark, position)]
        elif number is None and mark not in _SINGLE and not before.isdigit():
            yield from inside(0, position)  # it began in an earlier sentence
    for quotation in opened:
        if quotation.perhaps >= 0:
            yield from inside(quotation.place + 1, quotation.perhaps)
        elif quotation.mark not in _SINGLE and (quotation.mark in _BEGINS or quotation.mark in _DOUBLE):
            yield from inside(quotation.place + 1, len(sentence))  # it ends in a later sentence


def _is_letter(char: str) -> bool:
    return char.isalnum() and not is_unspaced(char) and not "\uac00" <= char <= "\ud7a3"


def _can_open(mark: str, before: str, after: str, sentence: str, position: int) -> bool:
    if mark in _OPENS_ALWAYS:
        return mark != "\u201c" or not (before and not before.isspace() and (not after or after.isspace()))
    if mark in _ENDING or _is_letter(before) or not after or (after.isspace() and mark not in "\u00bb\u203a"):
        return False
    if mark in _SINGLE:
        return not _SHORTENED.match(sentence, position + 1) and (before not in _SINGLE or not before)
    return True


def _can_close(mark: str, before: str, after: str, *, can_open: bool) -> bool:
    if mark in _ENDING or mark in "\u00ab\u2039":
        return True
    if _is_letter(after):
        return False
    if before.isspace():
        return mark in "\u201d" and not can_open
    return True


def _is_quotation(text: str) -> bool:
    first, *others = _QUOTED_WORD.findall(text) or [""]
    long = [word for word in others if len(word) >= _LONG_WORD and not is_unspaced(word[0])]
    titled = long and not first[:1].islower() and 2 * sum(word[0].isupper() for word in long) >= len(long)
    return _count(text) >= _FEWEST_WORDS and not titled


def _count(text: str) -> float:
    """Return the number of words of a text; in a script without spaces, two characters count as one word."""
    words = words_of(text)
    unspaced = sum(map(is_unspaced, words))
    return len(words) - unspaced / 2


def _is_quoted(quotation: str, source: FoldedText) -> bool:
    """Return whether a source contains the parts of a quotation in order, near each other."""
    pieces = _LEFT_OUT.split(_CHANGED_LETTER.sub("\x00\\1", quotation))
    parts = [part for part in (piece.strip(" ,;:.!?\u3001\u3002\uff0c") for piece in pieces) if words_of(part)]
    counts = [_count(part) for part in parts]
    if len(parts) > 1 and 2 * sum(count for count in counts if count >= _FEWEST_IN_PART) < sum(counts):
        return False
    if not parts or len(parts) > _MOST_PARTS:
        return not parts
    longest = max(range(len(parts)), key=lambda number: (len(parts[number]), -number))
    for begin, end in islice(_part_spans(parts[longest], source, 0, len(source.text)), _MOST_PLACES):
        if _follow(parts[longest + 1 :], source, end) and _precede(parts[:longest], source, begin):
            return True
    return False


def _follow(parts: list[str], source: FoldedText, position: int) -> bool:
    for part in parts:
        span = next(_part_spans(part, source, position, position + _NEAR + len(part)), None)
        if span is None:
            return False
        position = span[1]
    return True


def _precede(parts: list[str], source: FoldedText, position: int) -> bool:
    for part in reversed(parts):
        spans = list(_part_spans(part, source, max(0, position - _NEAR - len(part)), position))
        if not spans:
            return False
        position = spans[-1][0]
    return True


def _part_spans(part: str, source: FoldedText, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of a part, whatever the case of its first letter, in order."""
    forms = dict.fromkeys((part, part[0].swapcase() + part[1:]))
    return iter(sorted({span for form in forms for span in islice(places_of(form, source, begin, end, 1), _MOST_PLACES)}))
