"""The entries that marks name: definitions of links, footnotes, and the list of references at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from unicodedata import combining, normalize

from nlp_retrieval.documents import Document, Piece, Reference, TextBlock
from nlp_retrieval.systems.evidence.citations.marks import (
    IBID,
    LONGEST_RANGE,
    SOURCE_WORDS,
    Mark,
    MarkReader,
    author_and_year,
    without_article,
    without_particles,
    word_set,
)

_LIST_NAMES, _BESIDE = word_set("list_names"), word_set("beside_list_names")
_LIST_PHRASES = frozenset(
    "further reading;works cited;works referenced;works consulted;literature cited;notes;weiterführende literatur".split(";")
)
_NUMBERING = re.compile(
    r"[\W_]*(?:(?:[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}|[IVXLC]{1,6}|[A-Z]|[一二三四五六七八九十]{1,3})[.):、\s]+)?"
)
_INITIALS = re.compile(r"(?<![^\W_])(?:[a-z]\.){2,6}")
_LONGEST_NAME = 80
_MOST_WORDS = 8
_WORDS = re.compile(r"[^\W\d_]+")
_BEGINNING = 300
_ENTRY = re.compile(
    rf"\s*(?:[\[【]\s?(?:{SOURCE_WORDS}[.: #]{{0,2}})?\^?([0-9]{{1,9}}|\^?[^\[\]【】\s]{{1,40}}?|[^\[\]【】\n]{{1,50}}?[0-9]{{4}}[a-z]?)\^?[\]】]:?"  # noqa: E501
    rf"|\(([0-9]{{1,4}}|[A-Z]{{1,3}}[0-9]{{1,4}})\)|(?:{SOURCE_WORDS}[.: #]{{0,2}}|#)?([0-9]{{1,4}})(?:[.):](?=\s)|\s[\u2013\u2014-](?=\s))"  # noqa: E501
    rf"|([A-Z]{{1,3}}[0-9]{{1,4}})(?:[.):](?=\s)|\s[\u2013\u2014-](?=\s))|([\u00b9\u00b2\u00b3\u2070\u2074-\u2079]{{1,4}}))\s*",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"\s*([0-9]{1,3})\s{1,4}(?=[^\W\d_]|[\"\u201c\u2018(])")
_SIGNS = str.maketrans("\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079", "1230456789")
_BRACKETED = re.compile(r"\s*[\[【]\^?(?:[0-9]{1,9}|[A-Z]{1,3}[0-9]{1,4})\^?[\]】](:?)")
_CITES = re.compile(r"[\[【]\^?([0-9]{1,4})(?=[\]】,;\u2020:\u2013-])")
_YEAR = re.compile(r"\b(?:1[5-9]|20)[0-9]{2}[a-z]?\b|\bn\.d\.(?:-?[a-z]\b)?|\bin press\b|\bforthcoming\b")
_MOST_COMPARED = 200
_SHARED = 0.8
"""Share of the words of a short note that the entry must have."""
_PERSON = re.compile(r"[^\W\d_][\w'\u2019-]{0,40}, (?:[^\W\d_]\.|[^\W\d_][\w-]{1,30}[.,&]? )")
_LEAD = re.compile(
    r"[\s(\[<]*(?:\b(?:url|doi|link|available (?:at|from)|retrieved from|online|verfügbar unter)\b)?[\s:(<\[]*\Z", re.IGNORECASE
)
_MOST_ADDRESSES = 5
_AROUND = " \t.,:;|\"'\u2010\u2011\u2012\u2013\u2014-\u201c\u201d*"
_EMPTY = re.compile(r"[(\[<]\s*[)\]>]")


class _DatedEntry(NamedTuple):
    """An entry, the beginning of its text, and the years there."""

    entry: Reference
    beginning: str
    years: list[str]


@dataclass
class References:
    """The entries of a report, by key if they have a mark, those that its footnotes name, and all other blocks."""

    defined: dict[str, Reference] = field(default_factory=dict)
    listed: dict[str, Reference] = field(default_factory=dict)
    notes: dict[str, Reference] = field(default_factory=dict)
    unmarked: list[Reference] = field(default_factory=list)
    works: dict[str, Reference] = field(default_factory=dict)
    named: list[Reference] = field(default_factory=list)
    cited_in: dict[str, list[str]] = field(default_factory=dict)  # by the keys of footnotes, what marks in them name
    prose: list[TextBlock] = field(default_factory=list)
    _by_year: dict[str, list[_DatedEntry]] | None = field(default=None, init=False, repr=False)
    _by_word: dict[str, list[Reference]] | None = field(default=None, init=False, repr=False)
    _works_found: dict[str, list[Reference]] = field(default_factory=dict, init=False, repr=False)

    def knows(self, name: str) -> bool:
        """Return whether there is an entry that a mark names, or several."""
        return self.find(name) is not None or bool(self._works_found[name])

    def find(self, name: str, note: bool = False) -> Reference | None:
        """Return the entry that a mark names, preferably of its own kind, and with a URL."""
        first, last = (self.notes, self.works) if note else (self.works, self.notes)
        entries = [kind[key] for kind in (first, self.listed, self.defined, last) if (key := key_of(name)) in kind]
        if not entries:
            if name not in self._works_found:
                work = author_and_year(name)
                works = self.works_of(*work) if work is not None else []
                self._works_found[name] = works if len(works) == 1 or (work and work[1]) else []
            entries = self._works_found[name] if len(self._works_found[name]) == 1 else []
        return next((entry for entry in entries if entry.url), entries[0] if entries else None)

    def cited(self, mark: Mark, last: Reference | None) -> Iterator[tuple[str, str, str, Reference | None]]:
        """Yield each citation of a mark: its name, the URL and title of what it cites, and its entry; ibid. cites the last."""
        for name in mark.names:
            entry = last if name == IBID else self.find(name, mark.note)
            shown = name if name == IBID else (entry.mark if entry is not None else "") or name
            title = mark.title or (entry.title if entry is not None else "") or mark.text
            url = mark.url or (entry.url if entry is not None else "")
            yield shown, url, title, entry
            for inner in self.cited_in.get(key_of(name), ()) if mark.note else ():
                work = self.find(inner)
                if work is None or work.url not in ("", url):
                    yield inner, work.url if work else "", work.title if work else "", work
        if not mark.names:
            yield "", mark.url, mark.title or mark.text, None

    def why_missing(self, name: str) -> str:
        """Return why a mark has no entry, in words; empty if there is no more to say."""
        if re.fullmatch(r"\D{0,12}[0-9]{1,9}-[0-9]{1,9}", name):
            return f"[{name}] is no range from a number to a higher one, of at most {LONGEST_RANGE} references"
        work = author_and_year(name)
        if work is None or not work[1]:
            return ""
        entries = len(self.works_of(*work))
        return f"{entries} references are by {name}; tell them apart by letters" if entries else f"no reference is by {name}"

    def works_of(self, surnames: tuple[str, ...], year: str) -> list[Reference]:
        """Return the work of these authors in this year; several if it is not clear which."""
        if self._by_year is None:
            self._by_year = {}
            for work in self._works():
                for year_found in {"", *work.years, *(f"{one[:4]}*" for one in work.years if one[4:])}:
                    self._by_year.setdefault(year_found, []).append(work)
        begin: list[_DatedEntry] = []
        works: list[_DatedEntry] = []
        # of an old work the list may give the year of the first edition or of this one: 1900/1953; and one may lack its letter
        years = dict.fromkeys((year, *reversed(year.split("/")), year.rstrip("abcdefgh"), f"{year}*"))
        for first in dict.fromkeys((surnames[0], without_particles(surnames[0]))):
            dated = ([work for work in self._by_year.get(one, ()) if _names_author(work.beginning, first)] for one in years)
            works = works or next(filter(None, dated), [])
            begin = begin or [work for work in works if _begins_with(work.beginning, first)]
        if not year:
            return [work.entry for work in begin if work.entry in self.unmarked]
        works = begin or works
        for narrower in (
            lambda work: work.years[0] == year,
            lambda work: all(_names_author(work.beginning, name) for name in surnames[1:] if name != "..."),
        ):
            if len(works) > 1:
                works = [work for work in works if narrower(work)] or works
        return [work.entry for work in works]

    def _works(self) -> Iterator[_DatedEntry]:
        """Yield the entries that may name authors and a year, with the beginning of each."""
        texts = [(entry, entry.title) for entry in (*self.works.values(), *self.unmarked)]
        # [Frisch 1965] may be the mark of an entry, which its title lacks
        texts += [(one, one.title if one.mark.isdecimal() else f"{one.mark} {one.title}") for one in self.listed.values()]
        for entry, text in texts:
            yield _DatedEntry(entry, text[:_BEGINNING], _YEAR.findall(text[:_BEGINNING]) or ["n.d."])

    def resolve_notes(self, reader: MarkReader) -> None:
        """Give footnotes without an address that of the work that they name: by a key, by author and year, or in short."""
        last: Reference | None = None
        for key, note in self.notes.items():
            if not note.url:
                if re.match(r"\W*(?:ibid|ebd|ebenda)", note.title[:20], re.IGNORECASE):
                    work = last
                else:
                    marked = (name for *_, names in reader.find(note.title[:2000]) for name in names)
                    names = self.cited_in[key] = self.cited_in.get(key) or [*filter(self.knows, marked)]
                    works = filter(None, map(self.find, [*names, note.title[:_BEGINNING]]))
                    work = next((work for work in works if work.url), None) or self.of_short_note(note.title)
                if work is not None and work.url:
                    self.notes[key] = replace(note, url=work.url, other_urls=work.other_urls)
                    self.named.append(work)
            last = self.notes[key] if self.notes[key].url else last

    def of_short_note(self, text: str) -> Reference | None:
        """Return the work with an address that a footnote without one names: "Frisch, *The dance*, 45", or in full."""
        words = _words_of(text)
        if len(words) < 2:
            return None
        if self._by_word is None:
            self._by_word = {}
            for entry in (*self.works.values(), *self.unmarked, *self.listed.values(), *self.notes.values()):
                for word in _words_of(entry.title) if entry.url else ():
                    self._by_word.setdefault(word, []).append(entry)
        known = sorted((self._by_word[word] for word in words if word in self._by_word), key=len)
        best: list[Reference] = []
        most = _SHARED
        for entry in known[0][:_MOST_COMPARED] if known else ():
            others = _words_of(entry.title)
            share = len(words & others) / min(len(words), max(len(others), 2))
            if share >= most:
                best, most = ([] if share > most else best) + [entry], share
        return best[0] if len({entry.url for entry in best}) == 1 else None

    def entries(self) -> list[Reference]:
        """Return every entry that counts, in the order of the report."""
        entries = [*self.defined.values(), *self.listed.values(), *self.notes.values(), *self.unmarked]
        return sorted(entries, key=lambda entry: entry.line)

    def add(self, kind: dict[str, Reference], entry: Reference) -> None:
        """Add an entry; the first one of a mark that has a URL counts, or the first one if none has a URL."""
        kept = kind.setdefault(key_of(entry.mark), entry)
        if entry.url and not kept.url:
            kind[key_of(entry.mark)] = entry


def references_of(report: Document) -> References:
    """Return the entries of a report, and its other blocks."""
    references = References()
    for definition in report.definitions:
        references.add(references.defined, replace(definition, title=_title([definition.title])))
    stated = [block for block in report.blocks if block.kind != "other"]
    blocks = _without_notes(list(_with_entries(stated)) if report.unit == "page" else stated, references)
    lists = _lists(blocks)
    end = _before_closing_list(blocks)
    within = 0
    draft = _OpenEntry(references)
    under: int | None = None
    """Number of entries before a list under a paragraph, not under a heading: it may be that paragraph's own."""

    def end_list(line: int) -> None:
        nonlocal under
        draft.close()
        own = references.unmarked[under:] if under is not None else []
        if own and references.prose and all(entry.url for entry in own):
            links = [Piece("link", "", entry.line, entry.url, title=entry.title) for entry in own]
            references.prose.append(TextBlock("paragraph", line, [links]))
            del references.unmarked[under:]
        under = None

    for number, block in enumerate(blocks):
        if under is not None and (block.kind == "heading" or number in lists):
            end_list(block.line)
        if block.kind == "heading":
            within = block.level if number in lists else within if 0 < within < block.level else 0
            if within:
                draft.close()
                continue
        elif number in lists:
            within = 7
            draft.close()
            under = len(references.unmarked) if references.prose else None
            if len(lines_of(block)) > 1:
                draft.read(block, lines_of(block)[1:])
            continue
        elif (within or number >= end) and draft.read(block, lines_of(block)):
            continue
        end_list(block.line)
        within = within if within != 7 else 0
        references.prose.append(block)
    draft.close()
    return references


def _lists(blocks: Sequence[TextBlock]) -> set[int]:
    """Return the numbers of headings over a list of references, by their names, or by cited entries alone below them."""
    headings: set[int] = set()
    cited: Counter[str] | None = None
    for number, block in enumerate(blocks):
        # the parser takes "7. References" over a line of dashes for an item
        is_own_block = block.kind == "paragraph" or (block.kind == "item" and block.name.isdecimal() and block.level == 1)
        if not is_own_block and block.kind != "heading":
            continue
        name = _plain(block.pieces[0] if not is_own_block else lines_of(block)[0][1])
        if is_list_name(name, alone=is_own_block):
            headings.add(number)
            continue
        if block.kind == "item" or (is_own_block and not _may_head(block, name)):
            continue
        marks = _marks_of_entries(_below(blocks, number))
        if marks is None:
            continue
        if cited is None:
            cited = _numbers_cited(blocks)
        own = _numbers_cited(_below(blocks, number))
        n_cited = sum(cited[mark] > own[mark] for mark in marks)
        if 2 * n_cited >= len(marks) > 0:
            headings.add(number)
    return headings


def _may_head(block: TextBlock, text: str) -> bool:
    return (
        0 < len(text.strip()) <= _LONGEST_NAME
        and len(lines_of(block)) == 1
        and not _ENTRY.match(text)
        and not _url(block.pieces[0])
        and text.rstrip("* ")[-1:] not in ".?!。"
    )


def _below(blocks: Sequence[TextBlock], number: int) -> Iterator[TextBlock]:
    """Yield the blocks below a heading, up to the next heading that is not below it."""
    level = blocks[number].level or 7
    for at in range(number + 1, len(blocks)):
        if blocks[at].kind == "heading" and blocks[at].level <= level:
            return
        yield blocks[at]


def _marks_of_entries(blocks: Iterable[TextBlock]) -> list[str] | None:
    """Return the marks of blocks that are all entries of a list, most of them with a URL; None if one is not an entry."""
    marks: list[str] = []
    n_entries = n_urls = 0
    for block in blocks:
        if block.kind == "heading":
            continue
        if block.kind not in ("item", "paragraph"):
            return None
        for at, (_, pieces) in enumerate(lines_of(block)):
            mark = _ENTRY.match(_plain(pieces[:3]))
            has_url = bool(_url(pieces))
            n_urls += has_url
            if mark:
                marks.append(key_of(next(filter(None, mark.groups())).translate(_SIGNS)))
                n_entries += 1
            elif block.kind == "item" and block.name and not at:
                marks += [key_of(block.name)] if block.name.isdecimal() else []
                n_entries += 1
            elif block.kind == "paragraph" and not has_url:
                return None
    return marks if 2 * n_urls >= max(n_entries, 1) else None


def _numbers_cited(blocks: Iterable[TextBlock]) -> Counter[str]:
    """Return how often each number seems to be cited in a text."""
    return Counter(key_of(name[1]) for block in blocks for cell in block.pieces for name in _CITES.finditer(_plain(cell)))


def _without_notes(blocks: Sequence[TextBlock], references: References) -> list[TextBlock]:
    kept: list[TextBlock] = []
    note: TextBlock | None = None
    pieces: list[Piece] = []
    for block in (*blocks, None):
        if block is not None and block.kind == "note" and block.pieces != [[]]:
            pieces += [*([Piece("break", " ", block.line)] if pieces else []), *block.pieces[0]]
            continue
        if note is not None:
            references.add(references.notes, _reference(note.name, pieces, note.line))
            references.cited_in[key_of(note.name)] = [piece.text for piece in pieces if piece.kind == "note"]
        note, pieces = (block, []) if block is not None and block.kind == "note" else (None, [])
        if block is not None and note is None:
            kept.append(block)
    return kept


def _before_closing_list(blocks: Sequence[TextBlock]) -> int:
    """Return where a list of references without a heading begins: the last blocks that are ``[n] ... URL`` or ``[n]: ...``."""
    end = len(blocks)
    while end and (last := blocks[end - 1]).kind in ("paragraph", "item"):
        match = _BRACKETED.match(_plain(last.pieces[0][:3]))
        if match is None or not (match[1] or any(_url(line) for _, line in lines_of(last))):
            break
        end -= 1
    return end


class _OpenEntry:
    """An entry that may continue in the next line or block."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._mark = ""
        self._line = 0
        self._depth = 0
        self._last = 0
        self._pieces: list[Piece] = []

    def read(self, block: TextBlock, lines: list[tuple[int, list[Piece]]]) -> bool:
        """Read the entries of a block, and return whether it holds any."""
        if block.kind == "row":
            return self._row(block)
        first = self._mark_of(lines[0][1])
        has_url = any(_url(pieces) for _, pieces in lines)
        goes_on = bool(self._pieces) and block.kind == "item" and (not block.name or block.level > self._depth)
        if goes_on and not self._depth and has_url and _url(self._pieces):
            goes_on = False
        goes_on = goes_on or (bool(self._mark) and not first and not _plain(self._pieces).strip())  # "[1]" in a paragraph
        if block.kind == "paragraph" and not (first or goes_on or has_url):
            begins = _plain(lines[0][1])
            if not (_PERSON.match(begins[:100]) and _YEAR.search(begins[:_BEGINNING])):
                return False
        if block.kind == "item" and not (goes_on and not first):
            self._begin(block.name if not first and block.name.isdecimal() else "", lines[0][0], block.level)
            self._take(lines[0])
            lines = lines[1:]
        elif not goes_on:
            self.close()
        for line in lines:
            self._take(line)
        return True

    def _take(self, line: tuple[int, list[Piece]]) -> None:
        number, pieces = line
        match = self._mark_of(pieces)
        # a number with a full stop may also be the year at the end of a title
        begins = match and (match.re is _BARE_NUMBER or not match[3] or (bool(pieces) and int(match[3]) < 1000))
        if match and (begins or not self._pieces):
            if self._pieces or self._mark:
                self._begin("", number, self._depth)
            self._last = int(match[1]) if match.re is _BARE_NUMBER else self._last
            self._mark, self._line = next(filter(None, match.groups())).translate(_SIGNS), self._line or number
            pieces = _without_start(pieces, match.end())
        elif self._pieces and not self._mark and _url(self._pieces) and not self._depth:
            self._begin("", number, 0)
        self._line = self._line or number
        self._pieces += [*pieces, Piece("break", " ", number)]

    def _mark_of(self, pieces: Sequence[Piece]) -> re.Match[str] | None:
        """Return the mark that an entry begins with; numbers alone ("3 Frisch, K.") must count from 1."""
        text = _plain(pieces[:3])
        bare = _BARE_NUMBER.match(text)
        return _ENTRY.match(text) or (bare if bare and int(bare[1]) == self._last + 1 else None)

    def _row(self, block: TextBlock) -> bool:
        cells = [_plain(cell).strip() for cell in block.pieces]
        pieces = [piece for cell in block.pieces for piece in (*cell, Piece("break", " ", block.line))]
        mark = number_of(cells[0].rstrip(".")) if cells else ""
        if not mark and not _url(pieces):
            return False
        self._begin(mark, block.line, 0)
        self._pieces = _without_start(pieces, len(_plain(block.pieces[0]))) if mark else pieces
        self.close()
        return True

    def _begin(self, mark: str, line: int, depth: int) -> None:
        self.close()
        self._mark, self._line, self._depth = mark, line, depth

    def close(self) -> None:
        """Add the entry that was begun."""
        if self._mark or _plain(self._pieces).strip() or _url(self._pieces):
            entry = _reference(self._mark, self._pieces, self._line)
            if entry.mark:
                self._references.add(self._references.listed, entry)
            else:
                self._references.unmarked.append(entry)
        self._mark, self._line, self._depth, self._pieces = "", 0, 0, []


def _words_of(text: str) -> set[str]:
    """Return the words of an entry by which a short note names it."""
    return {word for word in _WORDS.findall(text[:_BEGINNING].casefold()) if len(word) > 3} - _BESIDE


@lru_cache(10_000)
def _folded(text: str, is_of_words: bool) -> str:
    """Return a text as it is compared with a name: "O\u2019Neill" as "O'Neill", "Müller" and "Mueller" as "muller"."""
    text = normalize("NFKD", text.casefold().replace("\u2019", "'"))
    text = re.sub("([aou])e", r"\1", "".join(char for char in text if not combining(char)))
    return _INITIALS.sub(lambda initials: initials[0].replace(".", ""), text) if is_of_words else text


def _begins_with(text: str, name: str) -> bool:
    text = without_article(_folded(text, " " in name).lstrip(" \"'\u201c*["))
    name = _folded(name, " " in name)
    # also an initial before the surname, as IEEE writes it
    return bool(re.match(rf"(?:[^\W\d_]\.[ -]?){{0,3}}{re.escape(name)}(?![\w'\u2019-])", text))


def _names_author(beginning: str, name: str) -> bool:
    """Return whether the beginning of an entry has a surname, or the full name of a group named by its initials."""
    folded, name = _folded(beginning, " " in name), _folded(name, " " in name)
    if re.search(rf"(?<![\w'\u2019-]){re.escape(name)}(?![\w-])", folded):
        return True
    if not (1 < len(name) <= 8 and name.isalpha()):
        return False
    words = _WORDS.findall(re.split(r"[.(]", beginning, maxsplit=1)[0])
    return len(words) > 1 and "".join(word[0] for word in words if word[0].isupper()).casefold() == name


def is_list_name(text: str, alone: bool = False) -> bool:
    """Return whether a text names a list of references: "Works Cited"; one alone in a paragraph needs more than "Notes"."""
    if len(text) > _LONGEST_NAME or (alone and text.rstrip("* ").endswith((".", "?", "!", "。"))):
        return False
    words = [word.casefold() for word in _WORDS.findall(_NUMBERING.sub("", text, count=1))]
    phrase = " ".join(words)
    if phrase in _LIST_PHRASES:
        return not alone or len(words) > 1 or text.rstrip("* ").endswith((":", "\uff1a"))
    return 0 < len(words) <= _MOST_WORDS and not _LIST_NAMES.isdisjoint(words) and set(words) <= _LIST_NAMES | _BESIDE


def key_of(name: str) -> str:
    """Return the key that all spellings of a mark share: ``"01"`` and ``"1^"`` have ``"1"``."""
    name = " ".join(name.split()).casefold().lstrip("@")
    number = name.strip("^[]")
    return str(int(number)) if number.isascii() and number.isdecimal() and len(number) <= 18 else name


def number_of(text: str) -> str:
    """Return the number of a text such as ``"[3]"`` or ``"3"``; empty if it is anything else."""
    match = re.fullmatch(r"\[?\^?([0-9]{1,9})\^?\]?", text.strip().translate(_SIGNS))
    return match[1] if match else ""


def marks_of_link(piece: Piece) -> list[Mark]:
    """Return the mark that a link is, or the two; none if it is text in brackets without an address."""
    number, label = number_of(piece.text), key_of(piece.label)
    if number and label and label != number:
        # "[1][2]" is a link named 1 to the parser, but two marks to its writer
        return [Mark((number,), piece.line), Mark((piece.label,), piece.line, url=piece.url, title=piece.title)]
    if number or (piece.url and label and label == key_of(piece.text)):
        return [Mark((number or piece.label,), piece.line, url=piece.url, title=piece.title)]
    names, text = (piece.label,) if label else (), " ".join(piece.text.split())
    return [Mark(names, piece.line, text, piece.url, piece.title)] if piece.url else []


def lines_of(block: TextBlock) -> list[tuple[int, list[Piece]]]:
    """Return the lines of a block, each with its number and its pieces."""
    lines: list[tuple[int, list[Piece]]] = [(block.line, [])]
    for piece in (piece for cell in block.pieces for piece in cell):
        if piece.kind == "break":
            lines.append((piece.line, []))
        else:
            lines[-1][1].append(piece)
    return lines


def _plain(pieces: Sequence[Piece]) -> str:
    return "".join(f"[^{piece.text}]" if piece.kind == "note" else _link_text(piece) for piece in pieces)


def _link_text(piece: Piece) -> str:
    if piece.kind == "raised" and piece.text.strip("[] ").isdecimal():
        return f"[{piece.text.strip('[] ')}]"
    mark = piece.kind == "link" and piece.label and key_of(piece.label) == key_of(piece.text)
    return f"[{piece.text}]" if mark else piece.text


def _without_start(pieces: Sequence[Piece], length: int) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        text = _plain([piece])
        if length >= len(text) and text:
            length -= len(text)
            # the number itself may be the link
            if piece.kind == "link" and piece.url and not piece.label:
                kept.append(Piece("link", "", piece.line, piece.url))
        elif length:
            kept.append(Piece(piece.kind, text[length:], piece.line, piece.url, "", piece.title))
            length = 0
        else:
            kept.append(piece)
    return kept


def _url(pieces: Sequence[Piece]) -> str:
    return next((piece.url for piece in pieces if piece.url), "")


def _reference(mark: str, pieces: Sequence[Piece], line: int) -> Reference:
    url = _url(pieces)
    texts = [piece.text.replace(url, " ") if url else piece.text for piece in pieces if piece.kind != "note"]
    linked = next((piece.title for piece in pieces if piece.url == url and piece.title), "")
    others = tuple(dict.fromkeys(piece.url for piece in pieces if piece.url and piece.url != url))[:_MOST_ADDRESSES]
    return Reference(mark.rstrip("^"), _title(texts) or _title([linked]), url, line, others)


def _title(texts: Sequence[str]) -> str:
    title = _EMPTY.sub("", " ".join("".join(texts).split())).rstrip()
    shorter = _LEAD.sub("", title[-200:])
    return (title[:-200] + shorter).strip(_AROUND)


# The list of references of a PDF: entries begin by their numbers, or else by authors at the beginning of a line.

_NUMBERED = tuple(map(re.compile, (r"\s*\[\s?[0-9]{1,4}\s?\]", r"\s*\([0-9]{1,3}\)", r"\s*[0-9]{1,3}\.(?=\s)")))
"""Numbers of entries, in brackets or with a full stop; a list has one kind."""

_NAMED = re.compile(
    r"(?:[A-ZÀ-Þ][^\W\d_]*|(?:van|von|de|der|den|del|da|di|la|le)\b)[^.,;:/]{0,60}"
    r"(?:, (?:[A-ZÀ-Þ]\.|[A-ZÀ-Þ][^\W\d_]+\b)|[.,]? \((?:1[5-9]|20)[0-9]{2}|\. )"
)
_DATED = re.compile(r"[^()]{2,200}\((?:1[5-9]|20)[0-9]{2}[a-z]?[,)]")
_IN_BRACKETS = re.compile(r"\((?:1[5-9]|20)[0-9]{2}[a-z]?[,)]")
_ENDED = re.compile(r"(?:[.)\]]|[0-9]|://\S{1,2000})\Z")

_Line = list[Piece]


def _filled_lines(block: TextBlock) -> list[_Line]:
    return [line for _, line in lines_of(block) if line]


def _with_entries(blocks: Sequence[TextBlock]) -> Iterator[TextBlock]:
    heading = next((at for at in range(len(blocks) - 1, -1, -1) if _heads_list(blocks, at) is not None), None)
    if heading is None:
        yield from blocks
        return
    lines, *others = map(_filled_lines, blocks[heading:])
    begin = _heads_list(blocks, heading) or 0
    yield from blocks[:heading]
    if begin:
        before = [piece for line in lines[:begin] for piece in (*line, Piece("break", " ", line[0].line))]
        yield TextBlock("paragraph", blocks[heading].line, [before])
    yield TextBlock("heading", lines[begin][0].line, [lines[begin]], level=1)
    yield from _entries([*lines[begin + 1 :], *chain.from_iterable(others)])


def _text(line: _Line) -> str:
    return "".join(piece.text or piece.url for piece in line)


def _heads_list(blocks: Sequence[TextBlock], at: int) -> int | None:
    """Return the line of a block that is the heading of a list of references; None if there is none."""
    if blocks[at].kind == "note":
        return None
    lines, *after = map(_filled_lines, blocks[at : at + 2])
    below = [*lines, *(after[0][:1] if after else [])]
    for number in range(len(lines) - 1, -1, -1):
        if is_list_name(_text(lines[number])) and number + 1 < len(below):
            following = _text(below[number + 1])
            if any(start.match(following) for start in (*_NUMBERED, _NAMED)) or "://" in following:
                return number
    return None


def _entries(lines: Sequence[_Line]) -> Iterator[TextBlock]:
    starts = {pattern: sum(1 for line in lines if pattern.match(_text(line))) for pattern in (*_NUMBERED, _NAMED)}
    most = max(_NUMBERED, key=starts.__getitem__)
    start = most if starts[most] and 2 * starts[most] >= starts[_NAMED] else _NAMED
    entry: _Line = []
    for line in lines:
        text, so_far = _text(line), _text(entry)
        ended = _ENDED.search(so_far) or (_DATED.match(text) and _IN_BRACKETS.search(so_far))
        if entry and start.match(text) and (ended or start is not _NAMED):
            yield TextBlock("paragraph", entry[0].line, [entry])
            entry = []
        entry = [*entry, *([Piece("text", " ", line[0].line)] if entry else []), *line]
    if entry:
        yield TextBlock("paragraph", entry[0].line, [entry])
