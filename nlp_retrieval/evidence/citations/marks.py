"""Marks of citations in a line of text: ``[3]``, ``[1, 2]``, ``[1-3]``, ``[1, p. 5]``, ``[cite: 4]``, ``【4†source】``, raised.

Not read are ``(1)``, which counts things as often as it cites, and an author with a year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Mark", "MarkReader", "key_of", "numbers_of"]

_LONGEST_RANGE = 100
_MOST_FROM_RANGES = 100_000
_NUMBER = r"[0-9]{1,9}"
_DASH = "[-\u2010-\u2015]"
_ITEM = rf"{_NUMBER}(?: ?{_DASH} ?{_NUMBER})?"
_ITEMS = rf"{_ITEM}(?: ?[,;] ?{_ITEM})*"
_PLACE = r"(?:[,:]? ?(?:pp?|sec|sections?|ch|chapters?|figs?|tables?|para|§)\.? ?[0-9][0-9.\u2010-\u2015-]{0,10})?"
_LIST = re.compile(rf" ?({_ITEMS}) ?")
_MARK = re.compile(
    rf"\[({_NUMBER})\] ?{_DASH} ?\[({_NUMBER})\]"
    rf"|\[ ?(?:(?:cite|sources?|refs?)\.?:? ?)?({_ITEMS}){_PLACE} ?\]"
    rf"|[【\[]({_NUMBER})(?:[†:][^\[\]【】]{{0,80}})?[】\]]"
    r"|([\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+(?:[,\u02d2\u207b\u2013-][\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+)*)",
    re.IGNORECASE,
)
_PLAIN = str.maketrans("\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079\u207b\u02d2", "1230456789-,")
_MAY_BE_RAISED_AFTER = re.compile(r"(?:[^\W\d_]{3}|[.,;:!?)\]\"\u2019\u201d»])\Z")
_YEARS = 1_000


@dataclass(frozen=True)
class Mark:
    """What cites within a sentence.

    Args:
        names: of the entries that it names; empty for a plain link.
        line: of the report, from 1.
        text: what a plain link is called.
        url: of a link.
        title: what the definition of a link calls its target.
        note: whether it names footnotes.
    """

    names: tuple[str, ...]
    line: int
    text: str = ""
    url: str = ""
    title: str = ""
    note: bool = False


def key_of(name: str) -> str:
    """What two ways to write one mark have in common: ``"01"`` is ``"1"``, ``"1^"`` too."""
    name = " ".join(name.split()).casefold()
    number = name.strip("^[]")
    return str(int(number)) if number.isascii() and number.isdecimal() and len(number) <= 18 else name


def numbers_of(text: str) -> str:
    """The number that a whole text such as ``"[3]"`` or ``"3"`` is; empty where it is none."""
    found = re.fullmatch(rf"\[?\^?({_NUMBER})\^?\]?", text.strip())
    return found[1] if found else ""


class MarkReader:
    """Finds marks in text.

    Args:
        known: whether a report has an entry of this name.
    """

    def __init__(self, known: Callable[[str], bool]) -> None:
        self._known = known
        self._left = _MOST_FROM_RANGES

    def find(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield where each mark begins and ends, and the names in it.

        Args:
            text: with single spaces.
        """
        for match in _MARK.finditer(text):
            if match[1]:
                names = self._spread(f"{match[1]}-{match[2]}")
            elif match[5]:
                names = self.raised(match[5].translate(_PLAIN), text[max(0, match.start() - 3) : match.start()])
            else:
                names = self._spread(match[3] or match[4])
            if names and (match[5] or self._plausible(names)):
                yield match.start(), match.end(), names

    def raised(self, text: str, before: str) -> tuple[str, ...]:
        """The names in raised text; none where it is rather an exponent, or not all of them have an entry.

        Args:
            text: what stands raised.
            before: the end of what stands before it.
        """
        found = _LIST.fullmatch(text)
        if found is None or not _MAY_BE_RAISED_AFTER.search(before):
            return ()
        names = self._spread(found[1])
        return names if all(map(self._known, names)) else ()

    def _plausible(self, names: tuple[str, ...]) -> bool:
        """``[0, 1]`` is rather an interval and ``[2019]`` a year, unless there are such entries."""
        return all(self._known(name) or not name.isdecimal() or 0 < int(name) < _YEARS for name in names)

    def _spread(self, items: str) -> tuple[str, ...]:
        names: list[str] = []
        for item in re.split(r" ?[,;] ?", items):
            begin, *end = (number.strip() for number in re.split(_DASH, item))
            low, high = int(begin), int(end[0]) if end else int(begin)
            if low > high or high - low >= _LONGEST_RANGE or high - low > self._left:
                names.append(item.replace(" ", ""))
            else:
                self._left -= high - low
                names.extend(map(str, range(low, high + 1)))
        return tuple(names)
