"""Boundaries of sentences, in a text and in an item.

A full stop ends a sentence unless it belongs to an abbreviation, an initial or a number. Uncertain ones are not split: half
a sentence misleads its reader, two sentences do not. The sentences of an item are those of its data set if its metadata give
them; starts out of order, or outside the text, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from nlp_retrieval.core.models import SearchableItem

ENDS = frozenset(".!?…。\uff01\uff1f\uff0e｡؟\u06d4।॥\u0589።፧။។៕\u037e")
"""Characters that end sentences."""

CLOSERS = "\"')]}”\u2019»」』\uff09】"
"""Characters that may occur between the end of a sentence and the next one."""

_UNSPACED = "。\uff01\uff1f\uff0e｡"
_OPENERS = "\"'([{“\u2018«„「『\uff08【*_"
_LONGEST = 5_000
_PARAGRAPH = re.compile(r"(?:(?!\n[^\S\n]*\n).)+", re.DOTALL)
_END = re.compile(rf"[{re.escape(''.join(sorted(ENDS)))}]+(?P<closers>[{re.escape(CLOSERS)}]*)")
_WORD_BEFORE = re.compile(r"[^\W_]+(?:[.'\u2019-][^\W_]+)*\Z")
_WORD_AFTER = re.compile(rf"[\s{re.escape(_OPENERS)}]*([^\W_]+(?:['\u2019-][^\W_]+)*)")
_OPENING = re.compile(rf"[ \t\n{re.escape(_OPENERS)}]*")
_VISIBLE = re.compile(r"\S")
_REACH = 60

_NEVER_LAST = frozenset(
    "adj adv approx assoc bros ca capt cf col comdr dept dr ed eds eg e.g eq eqs esp fig figs gen gov hon ie i.e lt maj mr mrs "
    "ms mt nat op par prof pres ref refs rep resp rev sen sgt st tab univ viz vs v "
    "abb abs aufl bd bspw bzw d.h evtl ggf hrsg inkl insb sog u.a usw vgl z.b "
    "mio mrd tsd mln mlrd mld fa ggü städt zzgl mme mmes mlle mgr env av hab sra srta sres dra uds ud avda aprox núm EE FF "
    "sig sigg dott prof.ssa sig.ra dhr mevr bijv ul inż św tys t.ex bl.a "
    "г гг им ул проф акад напр см т.е т.н тыс млн млрд".split()
)
_BEFORE_NUMBERS = frozenset(
    "ann art ch chap cap cl kap no nos nr nrn p pág págs pag pp para pt s sec sect ser ss str vers vol vols max min "
    "jan feb febr apr jun jul aug sept okt oct nov dec dez janv f\u00e9vr juil d\u00e9c".split()
)
_SOMETIMES_LAST = frozenset("al etc inc ltd co corp cos jr sr plc llc est".split())
_BEFORE_INITIALS = frozenset("and by for from in of the to with von und".split())
_FIRST_WORDS = frozenset(
    "A After All Although An And Another Are As At Because Before Both But By During Each For From He Her His How However If "
    "In Is It Its Later Many Most Moreover No Not On One Only Other Our Several She Since So Some Such That The Their "
    "Then There These They This Those Three Thus To Today Two Under Until We What When Where Which While With You "
    "Das Der Die Ein Eine Es Im Sie Dies Diese".split()
)
_MONTHS = frozenset("Januar Februar März April Mai Juni Juli August September Oktober November Dezember Jahrhundert".split())


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
            space = text.rfind(" ", begin + 1, begin + _LONGEST)
            cut = end if end - begin <= _LONGEST else space if space > 0 else begin + _LONGEST
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
    lower = word.lower()
    if len(word) > 1 and word.isupper() and "." not in word:
        return word in _NEVER_LAST
    if lower in _NEVER_LAST or (lower in _BEFORE_NUMBERS and following[:1].isdigit()):
        return True
    if word.isdigit():
        return len(word) <= 2 and following in _MONTHS
    dotted = "." in word and all(len(part) <= 2 for part in word.split(".")) and not word.replace(".", "").isdigit()
    if lower in _SOMETIMES_LAST or dotted:
        return following not in _FIRST_WORDS
    if len(word) == 1 and word.isupper():
        return following not in _FIRST_WORDS and _names(before)
    return len(word) == 1 and word.isalpha() and len(following) == 1  # "z. B."


def _names(before: str) -> bool:
    """Return whether a capital after these words is an initial, and not a letter as in "vitamin C"."""
    words = before.split()
    if not words:
        return True
    last = words[-1]
    if last in ("and", "und") and len(words) > 1 and len(words[-2].rstrip(",")) == 1:
        return False  # "the notes C, E, and G"
    return last[0].isupper() or last[-1] in ",(&;" or last in _BEFORE_INITIALS or (len(last) == 2 and last[1] == ".")


SENTENCE_STARTS = "sentence_starts"
"""The metadata key with the start of each sentence of the content, in characters."""


def item_sentence_spans(item: SearchableItem) -> list[tuple[int, int]]:
    """Return where each sentence of an item's content begins and ends, in characters; an empty sentence keeps its number."""
    stored = item.metadata.get(SENTENCE_STARTS)
    starts = [start for start in stored if type(start) is int] if isinstance(stored, list) else []
    spans = list(pairwise([*starts, len(item.content)]))
    is_believable = starts == stored and starts[:1] == [0] and all(one <= other for one, other in spans)
    return spans if is_believable else sentence_spans(item.content)
