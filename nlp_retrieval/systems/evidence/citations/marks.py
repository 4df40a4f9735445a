r"""Marks of citations in a line of text: numbers, labels, and authors with a year.

Marks are ``[3]``, ``[1, 2]``, ``[1-3]``, ``[1, p. 5]``, ``[S1]``, ``[citation:4]``, ``【4†source】``, ``[@key]``,
``\cite{key}``, raised digits, ``(Frisch, 1965)``, and ``(1)`` in a report that has no other numbers. Intervals
(``95% CI [12, 45]``), subscripts (``x[1]``) and years in brackets are not marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.core import read_yaml

_WORDS_BY_USE: dict[str, str] = read_yaml(Path(__file__).with_name("words.yaml"))


def word_set(use: str) -> frozenset[str]:
    """Return the words of ``words.yaml`` for a use."""
    return frozenset(_WORDS_BY_USE[use].split())


LONGEST_RANGE = 100
_MOST_FROM_RANGES = 100_000
_YEARS = 1_000
_LONGEST_NAME = 300

SOURCE_WORDS = (  # before the number of a source
    r"(?:citations?|cites?|cit|sources?|src|references?|refs?|footnotes?|notes?|fn|nos?|nr|quellen?|belege?|fu\u00dfnoten?"
    r"|r\u00e9f\u00e9rences?|r\u00e9fs?|fuentes?|citas?|fontes?|fonti|notas?|bronn?en|bron|n|источник|来源|來源|资料|文献|注|出典|参考|引用|출처|참고)"
)
_SEE = r"(?:(?:see also|see|cf|e\.g|vgl|siehe|voir|v\u00e9ase|vid|ver|см|见|見)[.,:]{0,2} )?"
_NUMBER = r"[0-9]{1,9}"
_DASHES = "\u2010-\u2015\u2212-"
_DASH = f"[{_DASHES}]"
_PLACE = rf"(?:pp?|pages?|s|sec|sections?|ch|chapters?|figs?|figures?|tables?|paras?|§{{1,2}}|l|lines?)\.? ?(?:[0-9][0-9.{_DASHES}]{{0,15}}|[ivxlc]{{1,6}}\b)"  # noqa: E501
_RANGE = rf"(?: ?(?:{_DASH}|~|\.{{2,3}}|…) ?| (?:to|bis|à|al|hasta) )"
_ITEM = re.compile(
    rf"{_SEE}(?P<word>{SOURCE_WORDS}(?=[\W_]|[0-9]))?[.: #_-]{{0,3}}(?P<prefix>[^\W\d_]{{1,10}}[-_:. ]?)?(?P<first>{_NUMBER})"
    rf"(?:{_RANGE}(?P<again>[^\W\d_]{{1,10}}[-_:. ]?)?(?P<last>{_NUMBER}))?"
    rf"(?:[:] ?[0-9][0-9.{_DASHES}]{{0,15}}|:? {_PLACE}|\u2020[^\u2020]{{0,120}})?",
    re.IGNORECASE,
)
_NOTHING_BUT_PLACE = re.compile(rf"{_PLACE}|[0-9]{{1,5}}\u2020[^\u2020]{{0,120}}", re.IGNORECASE)
_WORDS = re.compile(r"[^=<>\u00b1]*[^\W\d_]{2}[^=<>\u00b1]*")
_SEPARATOR = re.compile(r" ?[;,，、；&+] ?(?:(?:and|und|et|y|e) )?| (?:and|und|et|y|e|og|och|en) |(?<=[0-9]) (?=[0-9])")  # noqa: RUF001
_KEY = re.compile(r"(?<![\w.@/])[+-]?@\{?([\w:.#$%&+?<>~/-]{0,99}\w)")
_LOOKS_CITED = re.compile(
    r"\[ ?(?:[0-9]{1,3}[a-z*]|[A-Z][A-Za-z+]{1,6}[0-9]{2}[a-z]?|[0-9]{1,3} ?[,;(].*[^\W\d_].*) ?\]|\{.*"
    rf"|(?i:refs?\.? [0-9]{{1,3}}|\({_SEE}(?:references?|sources?|citations?|quellen?):? ?[0-9]{{1,3}}\))"
)
_CHAT = re.compile(r"turn[0-9]{1,4}[a-z]{1,12}?[0-9]{1,4}|[0-9]{1,4}:[0-9]{1,4}\u2020[^\u2020]{0,120}|oaicite:[0-9]{1,4}")

_RAISED_DIGITS = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079"
_CANDIDATE = re.compile(
    rf"\[(?P<low>[^\W\d_]{{0,10}}{_NUMBER})\] ?{_DASH} ?\[(?P<high>[^\W\d_]{{0,10}}{_NUMBER})\]"
    r"|\^\[?(?P<caret>[0-9][0-9, \u2013-]{0,40})\]?\^|\$\^\{\[?(?P<tex>[0-9][0-9, \u2013-]{0,40})\]?\}\$"
    r"|\\(?!nocite)[A-Za-z]{0,12}[cC]ite[a-z]{0,8}\*?(?:\[[^\[\]]{0,80}\]){0,2}\{(?P<keys>[^{}]{1,200})\}"
    r"|\{[{%][ -]{0,2}[a-z]{0,10}cite[a-z]{0,10} (?P<template>[^{}]{1,200})\}"
    r"|(?<![\w@./:+-])-?@(?:\{(?P<braced>[^{}\s]{1,100})\}|(?P<at>\w(?:[\w:.#$%&+?<>~/-]{0,98}\w)?))(?: \[[^\[\]@]{1,60}\])?"
    r"|:contentReference\[(?P<content>oaicite:[0-9]{1,4})\](?:\{index=[0-9]{1,4}\})?"
    r"|\ue200cite(?P<private>(?:\ue202[^\ue200-\ue202]{1,80}){1,50})\ue201|(?P<chat>(?<![^\W_])cite(?:turn[0-9]{1,4}[a-z]{1,12}?[0-9]{1,4}){1,20})"
    r"|\[ ?(?P<square>[^\[\]]{1,600}?) ?\]|【 ?(?P<lens>[^【】]{1,200}?) ?】|〔 ?(?P<shell>[^〔〕]{1,200}?) ?〕"  # noqa: RUF001
    r"|\( ?(?P<round>(?:[^()\[\]【】]|\[(?:[A-Z]{2,10}|[0-9]{4})\]){1,600}?) ?\)"
    rf"|(?<!\w)[Rr]efs?\.? (?P<ref>{_NUMBER}(?: ?(?:{_DASH}|,|and) ?{_NUMBER}){{0,9}})(?![\w%.]\w)"
    rf"|(?P<raised>[{_RAISED_DIGITS}]{{1,9}}(?:[, \u02d2\u207b\u2013-]{{1,2}}[{_RAISED_DIGITS}]{{1,9}}){{0,30}})"
)
_RAISED_SIGNS = frozenset("\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079")
_LOWERED = str.maketrans("\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079\u207b\u02d2 ", "1230456789-,,")
_NARROW = str.maketrans("\uff3b\uff3d\uff08\uff09\uff1b\uff1a\uff0c０１２３４５６７８９", "[]();:,0123456789")  # noqa: RUF001
_ONLY_NUMBERS = re.compile(rf"{_NUMBER}(?:{_RANGE}{_NUMBER})?(?: ?[,;&+] ?{_NUMBER}(?:{_RANGE}{_NUMBER})?)*")
_MAY_BE_RAISED_AFTER = re.compile(
    r"(?:[^\W\d_]{3}|(?<![0-9.,])(?:19|20)[0-9]{2}|[0-9][,\u2009\u00a0 ][0-9]{3}"
    r"|[%.,;:!?)\]\"\u2019\u201d»。，、\u3040-\u30ff\u4e00-\u9fff])\Z"  # noqa: RUF001
)
_SURELY_RAISED_AFTER = re.compile(r"(?:[%.;:!?)\]\"\u201d»。]|(?<![0-9.,])(?:19|20)[0-9]{2}|(?<![^\W\d_])[^\W\d_]{5,40})\Z")
_NO_POWER, _NO_SURNAMES = word_set("with_powers"), word_set("no_surnames")
_PAIR = re.compile(rf"{_NUMBER}(?: ?[,;] ?|{_RANGE}){_NUMBER}")
_BEFORE_INTERVAL = re.compile(
    r"(?:\b(?:c\.?i\.?|cri|hdi|hpd|ki|kis|ic|iqr|pi|loa|interval(?:s|o|os|le|les|l|le)?|intervall[eo]?|ranges?|range of|between|scale"  # noqa: E501
    r"|domain|bounds?|limits?|zwischen|bereich|plage|rango|区间|[0-9]{1,2}(?:\.[0-9]{1,2})? ?%(?: (?:c\.?i\.?|ki|ic))?)"
    r"(?: (?:of|is|was|from|in|von|de))?[ :=,(]{0,3}|[\u2208=~\u2248] ?)\Z",
    re.IGNORECASE,
)
_VALUE = re.compile(r"(?<![\w.])([0-9]{1,9}(?:\.[0-9]{1,9})?) ?%? ?[(,]? ?\Z")
_AFTER_INTERVAL = re.compile(r"[ -]?(?:interval|range|scale|intervall|bereich)\b", re.IGNORECASE)
_INDEXED = re.compile(
    r"(?:(?<![\w.])[a-z]|[^\W_]\w*_\w*|[a-z]+[A-Z]\w*|\w\(\)|\b(?:arr|args|argv|kwargs|vec|idx|buf|lst|dict|df))\Z"
)
_COUNTED = re.compile(
    r"(?:\A|[,;:([\u2013\u2014]|\b(?:and|or|und|oder|et|ou|y|o|e|by|to|of|in|eq|eqn|eqs|equations?|fig|figs|figures?|tables?|steps?|items?"
    r"|options?|types?|phases?|points?|cases?|class|level|stages?|rules?|conditions?|criteri(?:on|a)|hypothes[ie]s|gleichung)\.?) ?\Z",  # noqa: E501
    re.IGNORECASE,
)

_PARTICLES = r"(?:van|von|de|der|den|del|della|di|da|dos|le|la|el|al|bin|ter|ten)"
_SURNAME = (
    rf"(?:{_PARTICLES}[ -]){{0,3}}(?:[dl]['\u2019])?"
    r"[A-ZÀ-ÖØ-ÞĀ-ŽА-Я][^\W\d_]*(?:['\u2019-][^\W\d_]+){0,3}"
)
_INITIALS = r"(?:[A-ZÀ-Þ]\.[ -]?){0,3}"
_JOINED = r"(?:, | ?[&/] ?| (?:and|und|u\.|et|y) |, (?:&|and) )"
_OTHERS = (
    r"(?:colleagues|co-?workers|co-?authors|collaborators|others|coll(?:aborateurs)?|autres|otros|otras|cols|colaboradores|andere"
    r"|Mitarbeiter)"
)
_ET_AL = rf"(?:,? (?:et al|et alii|u\. ?a|(?:and|&|und|et|y|e) {_OTHERS})(?!\w)\.?)"
_PEOPLE = rf"{_INITIALS}{_SURNAME}(?:, (?:[A-ZÀ-Þ]\.[ -]?){{1,3}}(?=,? ?[(0-9n]))?(?:{_JOINED}{_INITIALS}{_SURNAME}){{0,6}},?{_ET_AL}?"  # noqa: E501
_WORD_OF_GROUP = r"[A-ZÀ-ÖØ-Þ][\w.&'\u2019-]{0,40}"
_GROUP = (
    rf"(?:[Tt]he )?{_WORD_OF_GROUP}(?:,? (?:(?:of|for|and|the|on|in|de|des|du|der|f\u00fcr|und|la|&) ){{0,3}}{_WORD_OF_GROUP}){{1,9}}"  # noqa: E501
    rf"(?: \[[A-Z]{{2,10}}\])?{_ET_AL}?"
)
_ONE_YEAR = r"(?:(?:1[5-9]|20)[0-9]{2}(?:/(?:1[5-9]|20)[0-9]{2})?[a-z]?\b|n\. ?d\.(?:-?[a-z]\b)?|in press|forthcoming)"
_YEARS_CITED = (
    rf"(?:\[(?:1[5-9]|20)[0-9]{{2}}\],? ?)?(?P<years>{_ONE_YEAR}(?:(?:, ?|,? (?:and|&|und) |/)(?:{_ONE_YEAR}|[a-z]\b)){{0,9}})"
)
_PLACE_AFTER = (
    r"(?: ?[,:] ?[^;]{0,60}| (?:and|&|und|sowie|et|y) [^;]{0,120}| \(?(?:pp?|S)\. ?[^;]{0,30}| ?\[[0-9]{4}\][^;]{0,60}"
    r"| for (?:an? )?(?:[a-z]{1,20} )?(?:reviews?|overviews?|discussions?|summar(?:y|ies)|details?|examples?)[^;]{0,30})?"
)
# what precedes authors: "Source:", and words in lower case, "see also", "data from", "zitiert nach"
_LEAD = rf"(?:(?i:{SOURCE_WORDS}): ?)?" r"(?:[^\W\d_A-ZÀ-ÖØ-ÞА-Я][\w.'\u2019-]{0,20}[.,:]{0,2} ){0,6}?"
_AUTHOR_YEAR = re.compile(rf"{_LEAD}(?P<authors>{_PEOPLE}|{_GROUP}),? ?\(?{_YEARS_CITED}\)?{_PLACE_AFTER}", re.DOTALL)
_AUTHOR_PAGE = re.compile(
    rf"{_LEAD}(?P<authors>{_PEOPLE}|{_GROUP})(?:, [^,;0-9]{{2,60}},?)? (?P<pages>[0-9]{{1,4}}(?:{_DASH}[0-9]{{1,4}})?)",
    re.DOTALL,
)
_YEARS_ALONE = re.compile(rf"{_YEARS_CITED}{_PLACE_AFTER}(?P<more>; .{{1,150}})?")
_NARRATIVE = re.compile(
    rf"(?<!\w)(?P<authors>{_INITIALS}{_SURNAME}(?:{_JOINED}{_SURNAME}){{0,3}}{_ET_AL}?)(?P<has>['\u2019]s?)?[ ,]{{1,2}}\Z"
)
_GROUP_BEFORE = re.compile(rf"(?P<authors>{_GROUP})(?:['\u2019]s?)?[ ,]{{1,2}}\Z")
_AND = re.compile(r" ?(?:[&/]|\b(?:and|und|et|y)\b) ?")
_POSSESSIVE = re.compile(r"['\u2019]s\Z|(?<=s)['\u2019]\Z")
_PREPOSITION = re.compile(r"(?:\A|\W)(?:in|of|from|for|at|to|on|since|until|during|per) \Z", re.IGNORECASE)
_MATHS = re.compile(r"(?<![\\$\w])\$(?![\s$^])([^$]{1,200}?)(?<!\s)\$(?![$\w])")
_LONG_WORD = re.compile(r"(?<![\\\w])[^\W\d_]{4}")
_IBID = re.compile(
    r"(?:see )?(?:ibid(?:em)?|idem|ebd|ebenda|loc\. ?cit|op\. ?cit|a\. ?a\. ?O)\b\.?(?:[,:]? .{0,40})?", re.IGNORECASE
)
_CROSS_REFERENCE = re.compile(r"(?:fig|tbl|eq|sec|lst|thm|tab)[:-]")
IBID = "ibid."  # name of a mark that cites what the mark before it cites
_SEVERAL = re.compile(rf"&|{_ET_AL}")
_ARTICLE = re.compile(r"\A(?:the|die|der|das|la|le|el|los|las|les|il) ", re.IGNORECASE)


@dataclass(frozen=True)
class Mark:
    """A mark that names entries, or footnotes (``note``), or a plain link without names."""

    names: tuple[str, ...]
    line: int
    text: str = ""
    url: str = ""
    title: str = ""
    note: bool = False


def author_and_year(name: str) -> tuple[tuple[str, ...], str] | None:
    """Return surnames ("..." for "et al.") in lower case, and the year, "" beside a page; None for any other mark."""
    if len(name) > _LONGEST_NAME:
        return None
    match = _AUTHOR_YEAR.fullmatch(name)
    years = _years_of(match["years"]) if match else []
    if match is None or not years:
        match, years = _AUTHOR_PAGE.fullmatch(name), [""]
    surnames = surnames_of(match["authors"]) if match else ()
    return (surnames, years[0]) if surnames else None


def surnames_of(authors: str) -> tuple[str, ...]:
    """Return the surnames of a mark's authors, or the name of a group, in lower case; none if the words name no author."""
    authors = re.sub(r"(?:, ?(?:[A-ZÀ-Þ]\.[ -]?){1,3})?[, ]{0,3}\Z", "", authors)
    authors = _POSSESSIVE.sub("", authors)
    people = re.fullmatch(_PEOPLE, authors)
    if people is None:
        name = re.sub(rf" \[[A-Z]{{2,10}}\]\Z|{_ET_AL}\Z", "", without_article(authors)).casefold()
        first = re.match(r"[^\W\d_]+", name)
        return () if first is None or first[0] in _NO_SURNAMES else (name,)
    names = [surname[0].casefold() for surname in re.finditer(_SURNAME, re.sub(_ET_AL, "", re.sub(r"[A-ZÀ-Þ]\.", "", authors)))]
    if not names or names[0] in _NO_SURNAMES:
        return ()
    return (*names, "...") if re.search(_ET_AL, authors) else tuple(names)


def without_article(name: str) -> str:
    """Return the name of a group without an article before it, in which the text and an entry may differ."""
    return _ARTICLE.sub("", name)


def without_particles(surname: str) -> str:
    """Return a surname as lists also have it: "Frisch, K. von" for "von Frisch"."""
    return re.sub(rf"\A(?:{_PARTICLES}[ -])+", "", surname)


def _years_of(text: str) -> list[str]:
    """Return the years of ``"2019a, b"``: ``["2019a", "2019b"]``."""
    years: list[str] = []
    for part in re.findall(rf"{_ONE_YEAR}|\b[a-z]\b", text):
        if len(part) == 1:
            if years:
                years.append(years[-1].rstrip("abcdefghijklmnopqrstuvwxyz") + part)
        else:
            years.append(re.sub(r"\An\. ?d\.", "n.d.", part))
    return years


class MarkReader:
    """Finds marks in text, by the names that a report has an entry of; options say what else cites."""

    def __init__(
        self, known: Callable[[str], bool], *, round_numbers: bool = False, authors: bool = False, keys: bool = False
    ) -> None:
        self._known = known
        self._round_numbers, self._authors, self._keys = round_numbers, authors, keys
        self._left = _MOST_FROM_RANGES
        # authors with a year of whom there is no entry; what else looks like a citation that no entry fits
        self.unsure, self.unread = dict[str, None](), dict[str, None]()
        # whether a mark in brackets was a key: [@key]; whether raised digits named an entry
        self.has_keys = self.has_raised = False

    def find(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield the begin and end of each mark in a text with single spaces, and the names in it."""
        text = text.translate(_NARROW)
        if "$" in text:
            text = _MATHS.sub(lambda maths: maths[0] if _LONG_WORD.search(maths[1]) else "$" * len(maths[0]), text)
        position, refused = 0, -1
        while (match := _CANDIDATE.search(text, position)) is not None:
            before = text[max(0, match.start() - 60) : match.start()]
            names: tuple[str, ...] = ()
            if match["square"] and (match.start() == refused or _INDEXED.search(before)):
                refused = match.end()  # x[1][2]
            else:
                names = self._names(match, before, text[match.end() : match.end() + 300])
                if not names and _LOOKS_CITED.fullmatch(match[0]):
                    self.unread[match[0]] = None
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
            case "template":
                return tuple(filter(self._known, re.findall(r"[\w:.+-]+", content)))
            case "keys":
                return tuple(key.strip() for key in content.split(",") if key.strip())
            case "private":
                return tuple(filter(None, content.split("\ue202")))
            case "content":
                return (content,)
            case "chat":
                return tuple(_CHAT.findall(content))
            case "round":
                return self._round(content, before, after)
            case "at" | "braced":
                return self._key_in_text(content)
            case "ref":
                names = self._numbers(content)
                return names if all(map(self._known, names)) else ()
        if kind == "square" and self._is_no_citation(content, before, after):
            return ()
        return self._listed(content) or self._numbers(content, sure=kind == "lens") or self._author(content)

    def raised(self, text: str, before: str) -> tuple[str, ...]:
        """Return the names in raised text; none if it is more likely an exponent of the text before it."""
        text = re.sub(r"[,;]{2,}", ",", text.strip("[] "))
        if not _ONLY_NUMBERS.fullmatch(text) or not _MAY_BE_RAISED_AFTER.search(before):
            return ()
        names = self._numbers(text)
        if text.isdecimal() and not all(map(self._known, names)) and all(map(self._known, text)):
            names = tuple(text)  # two adjacent marks of one digit
        if all(map(self._known, names)):
            self.has_raised = self.has_raised or bool(names)
            return names
        surely = _SURELY_RAISED_AFTER.search(before)
        if names and not surely:
            self.unread[f"^{text}^"] = None
        return names if names and surely and surely[0].casefold() not in _NO_POWER else ()

    def labels(self, text: str) -> tuple[str, ...]:
        """Return the names in the mark of a footnote: one that has an entry, or several."""
        names = self._numbers(text.replace("^", "")) if not self._known(text) else ()
        return names or (text,)

    def _listed(self, content: str) -> tuple[str, ...]:
        """Return one name or several, if all have an entry."""
        if content.isdecimal() or author_and_year(content) is not None:
            return ()
        if self._known(content):
            return (content,)
        parts = [part for part in re.split(r" ?[;,] ?", content) if part]
        if any(map(author_and_year, parts)):
            return ()
        return tuple(parts) if len(parts) > 1 and all(map(self._known, parts)) else ()

    def _numbers(self, content: str, *, sure: bool = False) -> tuple[str, ...]:
        """Return the numbers and labels of a mark; empty if it is not a mark."""
        if _CHAT.fullmatch(content):
            return (content.partition("\u2020")[0],)
        if "@" in content:
            names = _KEY.findall(content)
            self.has_keys = self.has_keys or bool(names)
            return tuple(name for name in names if self._known(name) or not _CROSS_REFERENCE.match(name))
        names = []
        surely = sure
        for part in _SEPARATOR.split(content):
            item = _ITEM.fullmatch(part)
            if item is None:
                if names and (_NOTHING_BUT_PLACE.fullmatch(part) or (_WORDS.fullmatch(part) and all(map(self._known, names)))):
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
        # without such entries, [0, 1] is an interval and [2019] a year
        likely = all(self._known(name) or not name.isdecimal() or 0 < int(name) < _YEARS for name in names)
        return tuple(names) if surely or likely else ()

    def _round(self, content: str, before: str, after: str) -> tuple[str, ...]:
        if _IBID.fullmatch(content):
            return (IBID,)
        if names := self._narrative(content, before):
            return names
        if _ONLY_NUMBERS.fullmatch(content):
            names = self._numbers(content)
            cites = self._round_numbers and names and all(map(self._known, names)) and not _COUNTED.search(before)
            following = rf"(?:[,;:]|\b(?:and|or|und|oder)) \({int(content[-9:]) + 1 if content.isdecimal() else '~'}\)"
            return names if cites and not re.search(following, after) else ()  # "(1) bees, (2) ants" counts
        names = self._listed(content) if any(char.isdigit() for char in content) else ()
        names = names or self._numbers(content)
        return names if names and all(map(self._known, names)) else self._author(content)

    def _narrative(self, content: str, before: str) -> tuple[str, ...]:
        """Return the names in brackets after their author: "Frisch (1965)", "Frisch and Doe (1965, p. 4; 1967)"."""
        match = _YEARS_ALONE.fullmatch(content)
        if match is None:
            return ()
        years = _years_of(match["years"])
        for year in (match["more"] or "").removeprefix("; ").split("; "):
            if more := _YEARS_ALONE.fullmatch(year):
                years += _years_of(more["years"])
        people = _NARRATIVE.search(before)
        candidates = [by["authors"] for by in (_GROUP_BEFORE.search(before), people) if by]
        begin = people.start() if people else 0
        if people and (led_to := self._led_to(people["authors"], before[:begin])):
            candidates.append(led_to)
            begin = people.start() + people["authors"].index(led_to)
        for authors in candidates:
            names = [f"{_POSSESSIVE.sub('', authors)}, {year}" for year in years]
            if any(map(self._known, names)):
                return tuple(names)
        if people is None or not years[0][0].isdigit() or not surnames_of(candidates[-1]):
            return ()
        return self._sure(names) if not _PREPOSITION.search(before[:begin]) else ()  # in Germany (2009)

    @staticmethod
    def _led_to(authors: str, before: str) -> str:
        """Return the author after a place or the like, "In Norway, Frisch (1965)"; empty if all are authors."""
        _, _, rest = authors.partition(", ")
        is_list = "," in rest or (_AND.search(rest) and not _PREPOSITION.search(before))
        return "" if is_list else rest

    def _key_in_text(self, key: str) -> tuple[str, ...]:
        is_key = self._keys and re.search("[0-9]", key) and re.search(r"[^\W\d_]", key) and not _CROSS_REFERENCE.match(key)
        return (key,) if self._known(key) or is_key else ()

    def _author(self, content: str) -> tuple[str, ...]:
        """Return authors with their years."""
        if _IBID.fullmatch(content):
            return (IBID,)
        if not any(char.isdigit() for char in content) and not re.search(r"n\. ?d\.|in press|forthcoming", content):
            return ()
        names: list[str] = []
        last = ""
        for part in content.split(";"):
            works, last = self._works(part.strip(), last)
            names += works or [name for name in self._numbers(part.strip()) if self._known(name)]  # [Frisch, 1965; 2]
        return self._sure(names)

    def _sure(self, names: list[str]) -> tuple[str, ...]:
        """Return authors with years if one has an entry or is several people; "(Paris, 2015)" may name a place."""
        if self._authors or any(map(self._known, names)) or any(map(_SEVERAL.search, names)):
            return tuple(names)
        self.unsure |= dict.fromkeys(names)
        return ()

    def _works(self, part: str, last: str) -> tuple[list[str], str]:
        """Return the names in one part of a bracket, and its authors; years alone belong to the authors before them."""
        if _IBID.fullmatch(part):
            return [IBID], last
        if last and (more := _YEARS_ALONE.fullmatch(part)):
            return [f"{last}, {year}" for year in _years_of(more["years"])], last
        match = _AUTHOR_YEAR.fullmatch(part)
        if match is None or not surnames_of(match["authors"]):
            page = _AUTHOR_PAGE.fullmatch(part)
            name = f"{page['authors']} {page['pages']}" if page else ""
            return ([name] if name and self._known(name) else []), last
        authors = match["authors"].rstrip(", ")
        names = [f"{authors}, {year}" for year in _years_of(match["years"])]
        rest = re.sub(r"\A(?:and|&|und|sowie|et|y) ", "", part[match.end("years") :].lstrip("), "))
        if rest and rest[0].isupper():  # (Frisch 1965, Doe 2000)
            further, last = self._works(rest, authors)
            return names + further, last
        return names, authors

    def _is_no_citation(self, content: str, before: str, after: str) -> bool:
        """Return whether numbers in square brackets are more likely an interval or a list."""
        if not _PAIR.fullmatch(content):
            return False
        if _BEFORE_INTERVAL.search(before) or _AFTER_INTERVAL.match(after):
            return True
        low, high = re.findall(_NUMBER, content)
        value = None if self._known(low) and self._known(high) else _VALUE.search(before)
        return value is not None and int(low) <= float(value[1]) <= int(high)

    def _spread(self, first: str, last: str | None, prefix: str) -> list[str]:
        low, high = int(first), int(last or first)
        if low > high or high - low >= LONGEST_RANGE or high - low > self._left:
            return [f"{prefix}{first}-{last}"]
        self._left -= high - low
        return [f"{prefix}{number}" for number in range(low, high + 1)]


_SOURCE_PREFIXES = frozenset("s r w src doc docs document web url link cite".split())
