r"""Marks of citations in a line of text: numbers, labels, and authors with a year.

Marks are ``[3]``, ``[1, 2]``, ``[1-3]``, ``[1, p. 5]``, ``[S1]``, ``[citation:4]``, ``【4†source】``, ``[@key]``,
``\cite{key}``, raised digits, ``(Frisch, 1965)``, and ``(1)`` in a report that has no other numbers. Intervals
(``95% CI [12, 45]``), subscripts (``x[1]``) and years in brackets are not marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["SOURCE_WORDS", "Mark", "MarkReader", "author_and_year", "key_of", "numbers_of"]

_LONGEST_RANGE = 100
_MOST_FROM_RANGES = 100_000
_YEARS = 1_000

SOURCE_WORDS = (
    r"(?:citations?|cites?|cit|sources?|src|references?|refs?|footnotes?|notes?|fn|nos?|nr|quellen?|belege?|fu\u00dfnoten?"
    r"|r\u00e9f\u00e9rences?|r\u00e9fs?|fuentes?|citas?|fontes?|fonti|notas?|bronn?en|bron|n|источник|来源|來源|资料|文献|注|出典|参考|引用|출처|참고)"
)
"""Words that precede the number of a source."""

_SEE = r"(?:(?:see also|see|cf|e\.g|vgl|siehe|voir|v\u00e9ase|vid|ver|см|见|見)[.,:]{0,2} )?"
_NUMBER = r"[0-9]{1,9}"
_DASHES = "\u2010-\u2015\u2212-"
_DASH = f"[{_DASHES}]"
_PLACE = rf"(?:pp?|pages?|s|sec|sections?|ch|chapters?|figs?|figures?|tables?|paras?|§{{1,2}}|l|lines?)\.? ?[0-9][0-9.{_DASHES}]{{0,15}}"  # noqa: E501
_ITEM = re.compile(
    rf"{_SEE}(?P<word>{SOURCE_WORDS}(?=[\W_]|[0-9]))?[.: #_-]{{0,3}}(?P<prefix>[^\W\d_]{{1,10}}[-_:. ]?)?(?P<first>{_NUMBER})"
    rf"(?: ?{_DASH} ?(?P<again>[^\W\d_]{{1,10}}[-_:. ]?)?(?P<last>{_NUMBER}))?"
    rf"(?:[:] ?[0-9][0-9.{_DASHES}]{{0,15}}|:? {_PLACE}|\u2020[^\u2020]{{0,120}})?",
    re.IGNORECASE,
)
_NOTHING_BUT_PLACE = re.compile(rf"{_PLACE}|[0-9]{{1,5}}\u2020[^\u2020]{{0,120}}", re.IGNORECASE)
_SEPARATOR = re.compile(r" ?[;,，、；&] ?| (?:and|und|et|y|e|og|och|en) ")  # noqa: RUF001
_KEY = re.compile(rf"{_SEE}-?@\{{?([\w:.#$%&+?<>~/-]{{1,100}}?)\}}?(?:[, ].{{0,60}})?", re.IGNORECASE)
_CHAT = re.compile(
    r"(?:cite)?turn[0-9]{1,4}[a-z]{1,12}[0-9]{1,4}|[0-9]{1,4}:[0-9]{1,4}\u2020[^\u2020]{0,120}|oaicite:[0-9]{1,4}"
)

_RAISED_DIGITS = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079"
_CANDIDATE = re.compile(
    rf"\[(?P<low>[^\W\d_]{{0,10}}{_NUMBER})\] ?{_DASH} ?\[(?P<high>[^\W\d_]{{0,10}}{_NUMBER})\]"
    r"|\^\[?(?P<caret>[0-9][0-9, \u2013-]{0,40})\]?\^|\$\^\{\[?(?P<tex>[0-9][0-9, \u2013-]{0,40})\]?\}\$"
    r"|\\[a-z]{0,12}cite[a-z]{0,8}\*?(?:\[[^\[\]]{0,80}\]){0,2}\{(?P<keys>[^{}]{1,200})\}"
    r"|:contentReference\[(?P<content>oaicite:[0-9]{1,4})\](?:\{index=[0-9]{1,4}\})?"
    r"|\ue200cite(?P<private>(?:\ue202[^\ue200-\ue202]{1,80}){1,50})\ue201|(?P<chat>(?<![^\W_])citeturn[0-9]{1,4}[a-z]{1,12}[0-9]{1,4})"
    r"|\[ ?(?P<square>[^\[\]]{1,200}?) ?\]|【 ?(?P<lens>[^【】]{1,200}?) ?】|〔 ?(?P<shell>[^〔〕]{1,200}?) ?〕"  # noqa: RUF001
    r"|\( ?(?P<round>[^()\[\]【】]{1,200}?) ?\)"
    rf"|(?P<raised>[{_RAISED_DIGITS}]{{1,9}}(?:[, \u02d2\u207b\u2013-]{{1,2}}[{_RAISED_DIGITS}]{{1,9}}){{0,30}})"
)
_RAISED_SIGNS = frozenset("\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079")
_LOWERED = str.maketrans("\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079\u207b\u02d2 ", "1230456789-,,")
_NARROW = str.maketrans("\uff3b\uff3d\uff08\uff09\uff1b\uff1a０１２３４５６７８９", "[]();:0123456789")  # noqa: RUF001
_ONLY_NUMBERS = re.compile(rf"{_NUMBER}(?: ?{_DASH} ?{_NUMBER})?(?: ?[,;] ?{_NUMBER}(?: ?{_DASH} ?{_NUMBER})?)*")
_MAY_BE_RAISED_AFTER = re.compile(r"(?:[^\W\d_]{3}|[.,;:!?)\]\"\u2019\u201d»。，、\u3040-\u30ff\u4e00-\u9fff])\Z")  # noqa: RUF001
_SURELY_RAISED_AFTER = re.compile(r"[.;:!?)\]\"\u201d»。]\Z")

_PAIR = re.compile(rf"{_NUMBER} ?[,;{_DASHES}] ?{_NUMBER}")
_BEFORE_INTERVAL = re.compile(
    r"(?:\b(?:c\.?i\.?|cri|hdi|hpd|ki|kis|ic|iqr|pi|loa|interval(?:s|o|os|le|les|l|le)?|intervall[eo]?|ranges?|range of|between|scale"  # noqa: E501
    r"|domain|bounds?|limits?|zwischen|bereich|plage|rango|区间|[0-9]{1,2}(?:\.[0-9]{1,2})? ?%(?: (?:c\.?i\.?|ki|ic))?)"
    r"(?: (?:of|is|was|from|in|von|de))?[ :=,(]{0,3}|[\u2208=~\u2248] ?)\Z",
    re.IGNORECASE,
)
_VALUE = re.compile(r"(?<![\w.])([0-9]{1,9}(?:\.[0-9]{1,9})?) ?%? ?[(,]? ?\Z")
_AFTER_INTERVAL = re.compile(r"[ -]?(?:interval|range|scale|intervall|bereich)\b", re.IGNORECASE)
_BEFORE_NUMBERS = re.compile(
    r"\b(?:vectors?|arrays?|lists?|matrix|tensors?|shapes?|tuple|sequence|sizes?|input|output)(?: of)?[ :=,(]{0,3}\Z",
    re.IGNORECASE,
)
_INDEXED = re.compile(
    r"(?:(?<![\w.])[a-z]|[^\W_]\w*_\w*|[a-z]+[A-Z]\w*|\w\(\)|\b(?:arr|args|argv|kwargs|vec|idx|buf|lst|dict|df))\Z"
)
_COUNTED = re.compile(
    r"(?:\A|[,;:([\u2013\u2014]|\b(?:and|or|und|oder|et|ou|y|o|e|by|to|of|in|eq|eqn|eqs|equations?|fig|figs|figures?|tables?|steps?|items?"
    r"|options?|types?|phases?|points?|cases?|class|level|stages?|rules?|conditions?|criteri(?:on|a)|hypothes[ie]s|gleichung)\.?) ?\Z",  # noqa: E501
    re.IGNORECASE,
)

_SURNAME = (
    r"(?:(?:van|von|de|der|den|del|della|di|da|le|la|el|al|bin)[ -]){0,3}[A-ZÀ-ÖØ-ÞĀ-ŽА-Я][^\W\d_]*(?:['\u2019-][^\W\d_]+){0,3}"
)
_AUTHORS = rf"{_SURNAME}(?:(?:, | ?(?:&|and|und|et|y) |, (?:&|and) ){_SURNAME}){{0,6}}(?: (?:et al|u\. ?a|y otros)\.?,?)?"
_AUTHOR_YEAR = re.compile(rf"{_SEE}(?P<authors>{_AUTHORS}),? \(?(?P<year>(?:1[6-9]|20)[0-9]{{2}}[a-z]?)\)?(?:[,:] ?.{{0,40}})?")
_YEAR = re.compile(r"((?:1[6-9]|20)[0-9]{2}[a-z]?)(?:, .{0,40})?")
_NARRATIVE = re.compile(rf"(?P<authors>{_SURNAME}(?: (?:&|and|und|et|y) {_SURNAME})?(?: et al\.?)?)[ ,]{{1,2}}\Z")
_SEVERAL = re.compile(r"&| et al\b| u\. ?a\.")
_NO_SURNAMES = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug sep
    sept oct nov dec spring summer autumn fall winter early late mid since until by in from to and est q1 q2 q3 q4
    januar februar märz mai juni juli oktober dezember frühjahr sommer herbst seit bis ab as accessed updated published
    version edition figure table chapter section act law directive regulation""".split()
)


@dataclass(frozen=True)
class Mark:
    """A mark or link that cites within a sentence.

    Args:
        names: of the entries that it names; empty for a plain link.
        line: of the report, from 1.
        text: of a plain link.
        url: of a link.
        title: of a link's target, by its definition.
        note: whether it names footnotes.
    """

    names: tuple[str, ...]
    line: int
    text: str = ""
    url: str = ""
    title: str = ""
    note: bool = False


def key_of(name: str) -> str:
    """Return the key that all spellings of a mark share: ``"01"`` and ``"1^"`` have ``"1"``."""
    name = " ".join(name.split()).casefold().lstrip("@")
    number = name.strip("^[]")
    return str(int(number)) if number.isascii() and number.isdecimal() and len(number) <= 18 else name


def numbers_of(text: str) -> str:
    """Return the number of a text such as ``"[3]"`` or ``"3"``; empty if it is anything else."""
    match = re.fullmatch(rf"\[?\^?({_NUMBER})\^?\]?", text.strip())
    return match[1] if match else ""


def author_and_year(name: str) -> tuple[str, str] | None:
    """Return the first surname, in lower case, and the year of a mark such as ``"Frisch et al., 1965"``; else None."""
    match = _AUTHOR_YEAR.fullmatch(name)
    if match is None:
        return None
    surname = re.match(_SURNAME, match["authors"])
    return (surname[0].casefold(), match["year"]) if surname and surname[0].casefold() not in _NO_SURNAMES else None


class MarkReader:
    """Finds marks in text.

    Args:
        known: returns whether a report has an entry of this name.
        round_numbers: whether numbers in round brackets cite.
        authors: whether authors with a year cite even if no entry has them.
    """

    def __init__(self, known: Callable[[str], bool], *, round_numbers: bool = False, authors: bool = False) -> None:
        self._known = known
        self._round_numbers, self._authors = round_numbers, authors
        self._left = _MOST_FROM_RANGES

    def find(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield the begin and end of each mark in a text with single spaces, and the names in it."""
        text = text.translate(_NARROW)
        position, refused = 0, -1
        while (match := _CANDIDATE.search(text, position)) is not None:
            before = text[max(0, match.start() - 60) : match.start()]
            names: tuple[str, ...] = ()
            if match["square"] and (match.start() == refused or _INDEXED.search(before)):
                refused = match.end()  # x[1][2]
            else:
                names = self._names(match, before, text[match.end() : match.end() + 300])
            # brackets that are not a mark may contain one
            position = match.end() if names else match.start() + 1
            if names:
                yield match.start(), match.end(), tuple(dict.fromkeys(names))

    def _names(self, match: re.Match[str], before: str, after: str) -> tuple[str, ...]:  # noqa: PLR0911
        kind, content = match.lastgroup or "", match[match.lastgroup or 0] or ""
        match kind:
            case "high":
                return self._numbers(f"{match['low']}-{content}")
            case "raised":
                return self.raised(content.translate(_LOWERED), before.rstrip()) if before[-1:] not in _RAISED_SIGNS else ()
            case "caret" | "tex":
                return self.raised(content.strip(" ,"), before.rstrip())
            case "keys":
                return tuple(key.strip() for key in content.split(",") if key.strip())
            case "private":
                return tuple(filter(None, content.split("\ue202")))
            case "content" | "chat":
                return (content,)
            case "round":
                return self._round(content, before, after)
        if kind == "square" and self._is_no_citation(content, before, after):
            return ()
        return self._listed(content) or self._numbers(content, sure=kind == "lens") or self._author(content)

    def raised(self, text: str, before: str) -> tuple[str, ...]:
        """Return the names in raised text; none if it is more likely an exponent of the text before it."""
        text = re.sub(r"[,;]{2,}", ",", text.strip("[] "))
        if not _ONLY_NUMBERS.fullmatch(text) or not _MAY_BE_RAISED_AFTER.search(before):
            return ()
        names = self._numbers(text)
        if all(map(self._known, names)):
            return names
        if text.isdecimal() and all(map(self._known, text)):
            return tuple(text)  # two adjacent marks of one digit
        return names if names and _SURELY_RAISED_AFTER.search(before) else ()

    def labels(self, text: str) -> tuple[str, ...]:
        """Return the names in the mark of a footnote: one that has an entry, or several."""
        names = self._numbers(text.replace("^", "")) if not self._known(text) else ()
        return names or (text,)

    def _listed(self, content: str) -> tuple[str, ...]:
        """Return one name or several, if all have an entry."""
        if content.isdecimal():
            return ()
        if self._known(content):
            return (content,)
        parts = [part for part in re.split(r" ?[;,] ?", content) if part]
        return tuple(parts) if len(parts) > 1 and all(map(self._known, parts)) else ()

    def _numbers(self, content: str, *, sure: bool = False) -> tuple[str, ...]:
        """Return the numbers and labels of a mark; empty if it is not a mark."""
        if _CHAT.fullmatch(content):
            return (content.partition("\u2020")[0],)
        if "@" in content:
            keys = [_KEY.fullmatch(part.strip()) for part in content.split(";")]
            return tuple(key[1].rstrip(".") for key in keys if key) if all(keys) else ()
        names: list[str] = []
        surely = sure
        for part in _SEPARATOR.split(content):
            item = _ITEM.fullmatch(part)
            if item is None:
                if names and _NOTHING_BUT_PLACE.fullmatch(part):
                    continue
                return ()
            prefix = item["prefix"] or ""
            surely = surely or bool(item["word"]) or prefix.rstrip("-_:. ").casefold() in _SOURCE_PREFIXES
            if item["again"] not in (None, prefix):
                return ()
            spread = self._spread(item["first"], item["last"], prefix)
            if prefix and surely and not any(map(self._known, spread)) and self._known(item["first"]):
                spread = self._spread(item["first"], item["last"], "")  # [S1], and a list that counts 1, 2, 3
            names += spread
            if prefix and not surely and not all(map(self._known, spread)):
                return ()
        return tuple(names) if surely or self._plausible(names) else ()

    def _round(self, content: str, before: str, after: str) -> tuple[str, ...]:
        year = _YEAR.fullmatch(content)
        if year and (by := _NARRATIVE.search(before)):
            name = f"{by['authors']}, {year[1]}"
            return (name,) if self._known(name) else ()
        if _ONLY_NUMBERS.fullmatch(content):
            names = self._numbers(content)
            cites = self._round_numbers and names and all(map(self._known, names)) and not _COUNTED.search(before)
            # "(1) bees, (2) ants" counts
            return (
                names
                if cites
                and not re.search(
                    rf"(?:[,;:]|\b(?:and|or|und|oder)) \({int(content[-9:]) + 1 if content.isdecimal() else '~'}\)", after
                )
                else ()
            )
        names = self._listed(content) if any(char.isdigit() for char in content) else ()
        names = names or self._numbers(content)
        return names if names and all(map(self._known, names)) else self._author(content)

    def _author(self, content: str) -> tuple[str, ...]:
        """Return authors with their years."""
        if not content[-1:].isalnum() or not any(char.isdigit() for char in content):
            return ()
        parts = content.split("; ")
        years = [author_and_year(part) for part in parts]
        if not all(years):
            return ()
        if all(map(self._known, parts)):
            return tuple(parts)
        # "(Paris, 2015)" may name a place
        return tuple(parts) if self._authors or any(self._known(part) or _SEVERAL.search(part) for part in parts) else ()

    def _is_no_citation(self, content: str, before: str, after: str) -> bool:
        """Return whether numbers in square brackets are more likely an interval or a list."""
        if _PAIR.fullmatch(content) and (_BEFORE_INTERVAL.search(before) or _AFTER_INTERVAL.match(after)):
            return True
        if _PAIR.fullmatch(content) and (value := _VALUE.search(before)) and not self._numbers_known(content):
            low, high = (int(end) for end in re.findall(_NUMBER, content))
            return low <= float(value[1]) <= high
        return "," in content and bool(_ONLY_NUMBERS.fullmatch(content) and _BEFORE_NUMBERS.search(before))

    def _numbers_known(self, content: str) -> bool:
        return all(map(self._known, re.findall(_NUMBER, content)))

    def _plausible(self, names: list[str]) -> bool:
        """Return whether names may be citations; without such entries, ``[0, 1]`` is an interval and ``[2019]`` a year."""
        return all(self._known(name) or not name.isdecimal() or 0 < int(name) < _YEARS for name in names)

    def _spread(self, first: str, last: str | None, prefix: str) -> list[str]:
        low, high = int(first), int(last or first)
        if low > high or high - low >= _LONGEST_RANGE or high - low > self._left:
            return [f"{prefix}{first}-{last}"]
        self._left -= high - low
        return [f"{prefix}{number}" for number in range(low, high + 1)]


_SOURCE_PREFIXES = frozenset("s r w src doc docs document web url link cite".split())
