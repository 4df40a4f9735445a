"""Boundaries of sentences, in a text and in an item.

A full stop ends a sentence unless it belongs to an abbreviation, an initial or a number. Uncertain ones are not split: half
a sentence misleads its reader, two sentences do not. The sentences of an item are those of its data set if its metadata give
them; starts out of order, or outside the text, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from nlp_retrieval.core.models import SearchableItem

ENDS = frozenset(".!?…。\uff01\uff1f\uff0e｡؟\u06d4।॥\u0589።፧။។៕\u037e")
"""Characters that end sentences."""

CLOSERS = "\"')]}”\u2019»」』\uff09】"
"""Characters that may occur between the end of a sentence and the next one."""

_UNSPACED = "。\uff01\uff1f\uff0e｡"
_OPENERS = "\"'([{“\u2018«„「『\uff08【*_"
_LONGEST = 5_000
_PARAGRAPH = re.compile(r"(?:(?!\n[^\S\n]*\n).)+", re.DOTALL)
_END = re.compile(rf"[{re.escape(''.join(sorted(ENDS)))}]+(?P<closers>[{re.escape(CLOSERS)}“\u2018«]*(?:[^\S\n]»(?!\S))?)")
_WORD_BEFORE = re.compile(r"[^\W_]+(?:[.'\u2019-][^\W_]+)*\Z")
_WORD_AFTER = re.compile(rf"[\s{re.escape(_OPENERS)}]*([^\W_]+(?:['\u2019-][^\W_]+)*)")
_OPENING = re.compile(rf"[ \t\n{re.escape(_OPENERS)}]*")
_VISIBLE, _NUMERAL = re.compile(r"\S"), re.compile(r"\d|[IVXLC]{2,}\b")
_ELISION = re.compile(r"^\w+['\u2019](?=\w\w)")  # "d'env. 300", and not "John's. 3"
_REACH = 60


@cache
def _words() -> dict[str, frozenset[str]]:
    from nlp_retrieval.core import read_yaml

    return {name: frozenset(words.split()) for name, words in read_yaml(Path(__file__).with_name("sentence_ends.yaml")).items()}


def sentences_of(text: str) -> list[tuple[int, int]]:
    r"""Return where each sentence of a text begins and ends, in characters, in order; a blank line ends a sentence.

    Args:
        text: of any number of paragraphs.

    Examples:
        >>> text = "A heading\n\nIt is cold. It snows."
        >>> [text[begin:end] for begin, end in sentences_of(text)]
        ['A heading', 'It is cold.', 'It snows.']
    """
    return [
        (paragraph.start() + begin, paragraph.start() + end)
        for paragraph in _PARAGRAPH.finditer(text)
        for begin, end in sentence_spans(paragraph[0])
    ]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends, in characters, in order; together they cover all but white space.

    A text without ends of sentences is one sentence; a sentence ends after 5,000 characters at the latest.

    Args:
        text: of one paragraph; its line ends count as spaces.

    Examples:
        >>> text = "Dr. Smith came. He left."
        >>> [text[begin:end] for begin, end in sentence_spans(text)]
        ['Dr. Smith came.', 'He left.']
    """
    spans = []
    begin = 0
    for end in (*_ends(text), len(text)):
        while first := _VISIBLE.search(text, begin, end):
            begin = first.start()
            cut = end if end - begin <= _LONGEST else text.rfind(" ", begin + 1, begin + _LONGEST)
            cut = cut if cut > 0 else begin + _LONGEST
            spans.append((begin, begin + len(text[begin:cut].rstrip())))
            begin = cut
    return spans


def _ends(text: str) -> Iterator[int]:
    begin = 0
    for match in _END.finditer(text):
        end = match.end()
        if end == len(text):
            return
        unspaced = text[match.end() - len(match["closers"]) - 1] in _UNSPACED
        if unspaced or (text[end].isspace() and _ends_here(text, begin, match)):
            yield end
            begin = end


def _ends_here(text: str, begin: int, match: re.Match[str]) -> bool:
    word_match = _WORD_AFTER.match(text, match.end(), match.end() + _REACH)
    following = word_match[1] if word_match else ""
    is_name = any(map(str.isdigit, following)) or "\u10d0" <= following[:1] <= "\u10ff"  # p53; Georgian has one case
    if following.islower() and not is_name:
        return False
    mark = text[match.start() : match.start("closers")]
    if mark != ".":
        return True
    before = text[max(begin, match.start() - _REACH) : match.start()]
    word_match = _WORD_BEFORE.search(before)
    if word_match is None:
        return True
    word = word_match[0]
    if len(word) <= 3 and word.replace(".", "").isdigit() and _OPENING.fullmatch(text, begin, match.start() - len(word)):
        return False  # the number of an item
    return not _abbreviated(word, before[: word_match.start()], following)


def _abbreviated(word: str, before: str, following: str) -> bool:
    words, lower = _words(), _ELISION.sub("", word).lower()
    if len(word) > 1 and word.isupper() and "." not in word:
        return word in words["never last"]
    forms = {word} if lower in words["as written"] else {word, lower}
    if forms & words["never last"] or (forms & words["before numbers"] and _NUMERAL.match(following)):
        return True
    if word.isdigit():
        is_ordinal = not words["before ordinals"].isdisjoint(before.lower().split()[-1:])
        return len(word) <= 2 and (
            following in words["after ordinals"] or (is_ordinal and following not in words["first words"])
        )
    dotted = "." in word and all(len(part) <= 2 for part in word.split(".")) and not word.replace(".", "").isdigit()
    if len(word) == 1 and word.isupper():
        return following not in words["first words"] and _names(before)
    if forms & words["sometimes last"] or dotted:
        return following not in words["first words"]
    return len(word) == 1 and word.isalpha() and len(following) == 1  # "z. B."


def _names(before: str) -> bool:
    """Return whether a capital after these words is an initial, and not a letter as in "vitamin C"."""
    words = before.split()
    if not words:
        return True
    last = words[-1]
    if last in ("and", "und") and len(words) > 1 and len(words[-2].rstrip(",")) == 1:
        return False  # "the notes C, E, and G"
    return last[0].isupper() or last[-1] in ",(&;" or last in _words()["before initials"] or (len(last) == 2 and last[1] == ".")


SENTENCE_STARTS = "sentence_starts"
"""The metadata key with the start of each sentence of the content, in characters."""


def item_sentence_spans(item: SearchableItem) -> list[tuple[int, int]]:
    """Return where each sentence of an item's content begins and ends, in characters; an empty sentence keeps its number."""
    stored = item.metadata.get(SENTENCE_STARTS)
    starts = [start for start in stored if type(start) is int] if isinstance(stored, list) else []
    spans = list(pairwise([*starts, len(item.content)]))
    is_believable = starts == stored and starts[:1] == [0] and all(one <= other for one, other in spans)
    return spans if is_believable else sentence_spans(item.content)
