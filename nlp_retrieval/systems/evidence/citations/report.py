"""Reading the citations of a Markdown report.

It reads ``[1]``, ``[S1]`` and the like with a list of references, footnotes, links, addresses and DOIs in the text, raised
numbers, authors with a year, several marks on one sentence and ranges of marks, and ``(1)`` if a report has no other numbers.
It skips code. Text is data: nothing in it is followed, and an address that is not ``http`` or ``https`` is
never a link.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby, repeat
from urllib.parse import urlsplit

from nlp_retrieval.documents import Document, Piece, Reference, TextBlock, read_markdown, web_address
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.citations.formats import report_blocks
from nlp_retrieval.systems.evidence.citations.marks import (
    IBID,
    LONGEST_RANGE,
    Mark,
    MarkReader,
    author_and_year,
    key_of,
    numbers_of,
)
from nlp_retrieval.systems.evidence.citations.published import CheckedReference
from nlp_retrieval.systems.evidence.citations.references import References, references_of
from nlp_retrieval.text import CLOSERS, ENDS, sentence_spans

# The sentences of a block of text, and the marks of citations on each.
#
# A mark belongs to the sentence that it is in. After a full stop it belongs to the sentence before it, at the beginning of a
# paragraph to the one after it, and as the subject ("[2] shows that ...") to its own. Marks are removed from the sentences; so
# are links that only name a source: in brackets, after a sentence, or at its end if the name is that of the site, of an author
# with a year, or says nothing ("Product page").

_SLOT, _NAMED, _LINE = "\ufffc", "\ufff9", "\ufffb"
"""Placeholders for a mark, for a link before its name, and for the beginning of a line; no text that is read has them."""

_SOURCE_WORD = (
    r"(?:(?:and|und|et|y|or|see|also|cf|e\.g|sources?|via|refs?|references?|citations?|urls?|links?|quellen?|siehe|vgl|voir|fuentes?|fontes?"
    r"|fonti)\b|来源|來源|出处|出典|参见|参考|出处)"
)
_GROUP = re.compile(r"[(\[\uff08]([^()\[\]\uff08\uff09]{0,600})[)\]\uff09]")
_NAMES_SOURCES = re.compile(rf"(?:{_SLOT}|[ {_LINE},;:/&|·+.]|{_SOURCE_WORD})*", re.IGNORECASE)
_BETWEEN = re.compile(rf"{_SLOT}(?:[ {_LINE}]*(?:(?:[,;&\u2010-\u2015-]|and\b|und\b)[ {_LINE}]*)?{_SLOT})+")
_RUN = re.compile(rf"(?:(?<![ {_LINE}])[ {_LINE}]+)?{_SLOT}[ {_SLOT}{_LINE}]*")
_SECOND_STOP = re.compile(rf"(?<=[.!?…])([{_SLOT}{_LINE}]+)\.(?=[ {_LINE}]|\Z)")
_LABEL = re.compile(
    rf"(?:(?<=[ {_LINE}|(])|\A)(?:(?:[A-Za-z]{{2,20}} )?(?:urls?|links?)|sources?|refs?|references?|quellen?|fuentes?|fonti?)[:\uff1a][ {_LINE}]*(?={_SLOT})",  # noqa: E501
    re.IGNORECASE,
)
_STOPS_BEFORE = re.compile(rf"[{re.escape(''.join(sorted(ENDS)))}][{re.escape(CLOSERS)}]*[ {_LINE}]*\Z")
_WORD_BEFORE = re.compile(rf"([^\W_]+)[,;:]?[ {_LINE}]*\Z")
_SENTENCE_ENDS = re.compile(rf"[ {_LINE}]*(?:[{re.escape(''.join(sorted(ENDS)))};)\]]|\Z|[\u2013\u2014|]|- )")
_NEXT = re.compile(rf"[ {_LINE}]*[,;&]?[ {_LINE}]*(?:(?:and|und|et|y|e)[ {_LINE}]+)?{_SLOT}")
_ONES_BEFORE = re.compile(rf"(?:[ {_LINE}]*{_SLOT}[ {_LINE}]*[,;&]?[ {_LINE}]*(?:(?:and|und|et|y|e)[ {_LINE}]+)?)+\Z")
_SEPARATED = re.compile(
    rf"[ {_LINE}]*(?:[\u2013\u2014|\u00b7:]|-(?=[ {_LINE}]))[ {_LINE}]*((?:{_SLOT}[ {_LINE},;&]*)+)(?=[.!?。][ {_LINE}]|[.!?。]?\Z|[\u2013\u2014|\u00b7]|- )"  # noqa: E501
)
_NOTHING_MORE = ("", ";", ")", "]", *ENDS)
_GENERIC = re.compile(
    r"\W*(?:(?:product|web|full|official|original|reddit|wiki|the|this|our|read|click|view|see|more|project|press)[ -])*"
    r"(?:pages?|threads?|links?|sites?|websites?|webpages?|articles?|posts?|here|more|details|pdfs?|texts?|reports?|stud(?:y|ies)|papers?"
    r"|documents?|docs|releases?|sources?|urls?|hier|mehr|lien|ici|enlace|aqu\u00ed|链接|原文|网页|リンク)\W*",
    re.IGNORECASE,
)
_AUTHOR = re.compile(r"[^\W\d_].{0,80}?[ ,(](?:1[6-9]|20)[0-9]{2}[a-z]?\)?")
_LEADS_ON = frozenset(
    """by in of from the a an to with on at per via as and or for than under over into about called named like is are was were be
    this that these those its their his her our your my said says see
    von der die das dem den des im am bei laut nach aus und mit für auf zu ein eine einen einem einer als
    le la les du de un une par selon dans et avec pour sur chez el los las por según en con y del al una il lo gli da di secondo""".split()  # noqa: E501
)
_PAGE_RAISED = re.compile(r"\s*:\s*[0-9][0-9,\s\u2013-]{0,20}")
_LOWER_CASE_WORD = re.compile(r"[a-z]+(?![\w-])")
_TIGHT = frozenset(",.;:!?)]}”»")


@dataclass
class MarkedSentence:
    """A sentence as plain text, and its marks in order; a heading states nothing.

    ``places`` are the characters of the text before each mark; marks without one are at its end.
    """

    text: str
    line: int
    marks: list[Mark] = field(default_factory=list)
    places: list[int] = field(default_factory=list, kw_only=True)
    states: bool = True
    quoted: bool = False
    block: int = 0
    kind: str = "paragraph"


@dataclass
class _SlottedText:
    """Text with a character for each mark and for each beginning of a line."""

    parts: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def marked_sentences(block: TextBlock, reader: MarkReader) -> list[MarkedSentence]:
    """Return the sentences of a block; one without text if it holds only marks, none if it is empty.

    A row of a table is one sentence, ``"Country: France; Population: 68 million"``.
    """
    if block.kind == "row":
        return _row(block, reader)
    sentences = _drafted_sentences(_drafted(block.pieces[0], reader), block.line)
    for sentence in sentences:
        sentence.quoted = block.quoted
    return sentences


def _row(block: TextBlock, reader: MarkReader) -> list[MarkedSentence]:
    """Return a row of a table with the heads of its columns as one sentence.

    If several of its cells are cited, or the head of a column is, there is a sentence for each of these: the first cell of the
    row, and that cell.
    """
    cells = [_cell(cell, block.line, reader) for cell in block.pieces]
    heads = [_cell([Piece("text", head, block.line)], block.line, reader) for head in block.heads]
    heads += [MarkedSentence("", block.line)] * (len(cells) - len(heads))
    texts = [
        f"{head.text}: {cell.text}" if head.text and cell.text else cell.text for head, cell in zip(heads, cells, strict=False)
    ]
    marks = [list(dict.fromkeys([*cell.marks, *head.marks])) for head, cell in zip(heads, cells, strict=False)]
    values = [number for number in range(1, len(cells)) if marks[number] and cells[number].text]
    if len(values) > 1 or any(heads[number].marks for number in values):
        each = [
            MarkedSentence("; ".join(filter(None, (texts[0], texts[number]))), block.line, marks[number]) for number in values
        ]
        others = [number for number in range(len(cells)) if number not in values]
    else:
        each, others = [], list(range(len(cells)))
    whole = MarkedSentence("; ".join(filter(None, texts)), block.line, [mark for number in others for mark in marks[number]])
    if each and not whole.marks:
        uncited = [texts[number] for number in others if texts[number]]
        whole.text = "; ".join(uncited) if len(uncited) > 1 else ""
    return [*each, whole] if whole.text or whole.marks else each


def _cell(pieces: Sequence[Piece], line: int, reader: MarkReader) -> MarkedSentence:
    """Return the text and the marks of a cell."""
    sentences = _drafted_sentences(_drafted(pieces, reader), line)
    text = " ".join(sentence.text for sentence in sentences if sentence.text)
    return MarkedSentence(text, line, [mark for sentence in sentences for mark in sentence.marks])


def _drafted(pieces: Sequence[Piece], reader: MarkReader) -> _SlottedText:
    draft = _SlottedText()
    for is_text, alike in groupby(pieces, key=lambda piece: piece.kind in ("text", "break")):
        if is_text:
            _add_text(draft, list(alike), reader)
            continue
        for piece in alike:
            if piece.kind == "note":
                _mark(draft, Mark(reader.labels(piece.text), piece.line, note=True))
            elif piece.kind == "raised" and (
                names := reader.raised(piece.text.strip(), "".join(draft.parts[-8:])[-60:].rstrip())
            ):
                _mark(draft, Mark(names, piece.line))
            elif piece.kind == "raised" and draft.parts[-1:] == [_SLOT] and _PAGE_RAISED.fullmatch(piece.text):
                continue  # ":14", the page in what the mark before it cites
            elif piece.kind == "link":
                _add_link(draft, piece, reader)
            elif piece.kind == "code":
                draft.parts.append(re.sub(r"\s+", " ", piece.text))
            else:
                _add_text(draft, [piece], reader)
    return draft


def _mark(draft: _SlottedText, mark: Mark) -> None:
    draft.parts.append(_SLOT)
    draft.marks.append(mark)


def _add_text(draft: _SlottedText, pieces: Sequence[Piece], reader: MarkReader) -> None:
    """Add text of one or several lines; a mark may go on in the next line."""
    text, breaks, starts = "", list[tuple[int, int]](), list[tuple[int, int]]()
    for piece in pieces:
        starts.append((len(text), piece.line))
        if piece.kind == "break":
            text = text.rstrip(" ")
            breaks.append((len(text), piece.line))
            text += " "
        else:
            part = re.sub(r"\s+", " ", piece.text)
            text += part.lstrip(" ") if text.endswith(" ") else part
    later = iter([*breaks, (len(text) + 1, 0)])
    position, line = next(later)

    def add(begin: int, end: int) -> None:
        nonlocal position, line
        while position < end:
            draft.parts += [text[begin : max(position, begin)], f" {_LINE}"]
            draft.lines.append(line)
            begin = max(position + 1, begin)
            position, line = next(later)
        draft.parts.append(text[begin:end])

    begin = 0
    for start, end, names in reader.find(text):
        add(begin, start)
        _mark(draft, Mark(names, starts[bisect_right(starts, (start, 10**9)) - 1][1]))
        begin = end
    add(begin, len(text))


def _add_link(draft: _SlottedText, piece: Piece, reader: MarkReader) -> None:
    number = numbers_of(piece.text)
    url = piece.url
    label = key_of(piece.label)
    if number and label and label != number:
        # "[1][2]" is a link named 1 to the parser, but two marks to its writer
        _mark(draft, Mark((number,), piece.line))
        _mark(draft, Mark((piece.label,), piece.line, url=url, title=piece.title))
    elif number or (url and label and label == key_of(piece.text)):
        _mark(draft, Mark((number or piece.label,), piece.line, url=url, title=piece.title))
    elif url:
        _mark(draft, Mark((piece.label,) if label else (), piece.line, " ".join(piece.text.split()), url, piece.title))
    else:
        _add_text(draft, [piece], reader)


def _drafted_sentences(draft: _SlottedText, line: int) -> list[MarkedSentence]:
    text, positions, lines = _read(_with_names("".join(draft.parts), draft.marks), draft, line)
    spans = sentence_spans(text)
    if not spans:
        return [MarkedSentence("", line, [mark for mark, _ in positions])] if positions else []
    starts, breaks = [begin for begin, _ in spans], [begin for begin, _ in lines]
    sentences = [MarkedSentence(_clean(text[a:b]), lines[bisect_right(breaks, a) - 1][1]) for a, b in spans]
    for mark, position in positions:
        number = max(0, bisect_left(starts, position) - 1)
        sentences[number].marks.append(mark)
        sentences[number].places.append(len(_clean(text[starts[number] : position])))
    return [sentence for sentence in sentences if sentence.text or sentence.marks]


def _clean(text: str) -> str:
    return " ".join(text.replace(_SLOT, " ").split()).lstrip(" ,;:")


def _with_names(text: str, marks: Sequence[Mark]) -> str:
    """Return the text with the names of those links that are part of a sentence; the other links are removed."""
    text, sources = _without_groups(text)
    sources |= _named_sources(text, marks)
    numbers = count()

    def named(_: re.Match[str]) -> str:
        mark = marks[number := next(numbers)]
        return _SLOT if not mark.text or number in sources or _is_no_name(mark) else _NAMED + mark.text

    text = _SEPARATED.sub(_unseparated, _LABEL.sub(_unseparated, re.sub(_SLOT, named, text)))
    text = _BETWEEN.sub(lambda run: "".join(char for char in run[0] if char in (_SLOT, _LINE)), text)
    return _SECOND_STOP.sub(r"\1", _RUN.sub(_joined, text))


def _unseparated(run: re.Match[str]) -> str:
    """Return marks without the "URL:", dash or colon that only separates them from their sentence."""
    text, after = run.string, run.string[run.end() :][:60].lstrip(_SLOT)
    if _STOPS_BEFORE.search(text, max(0, run.start() - 60), run.start()) and after.lstrip(f" {_LINE}")[:1] not in _NOTHING_MORE:
        return run[0]
    kept = "".join(char for char in run[0] if char in (_SLOT, _LINE))
    return f" {kept} " if after[:1] in ("\u2013", "\u2014", "|", "\u00b7", "-") else f" {kept}"


def _without_groups(text: str) -> tuple[str, set[int]]:
    """Return the text without brackets that hold only sources, and the numbers of the marks in them."""
    sources: set[int] = set()
    seen = position = 0

    def bare(group: re.Match[str]) -> str:
        nonlocal seen, position
        if _SLOT not in group[1]:
            return group[0]
        seen += text.count(_SLOT, position, group.start())
        position = group.start()
        if not _NAMES_SOURCES.fullmatch(group[1]):
            return group[0]
        sources.update(range(seen, seen + group[1].count(_SLOT)))
        return "".join(char for char in group[1] if char in (_SLOT, _LINE))

    return _GROUP.sub(bare, text), sources


def _named_sources(text: str, marks: Sequence[Mark]) -> set[int]:
    """Return the numbers of marks whose name is not part of a sentence: they follow it, or end it and name the source."""
    sources: set[int] = set()
    positions = [position for position, char in enumerate(text) if char == _SLOT]
    for number in range(len(positions) - 1, -1, -1):
        if not marks[number].text:
            continue
        before, after = (
            text[max(0, positions[number] - 60) : positions[number]],
            text[positions[number] + 1 : positions[number] + 60],
        )
        following = _NEXT.match(after)
        ends = bool(_SENTENCE_ENDS.match(after)) or (following is not None and number + 1 in sources)
        plain = _ONES_BEFORE.sub("", before)
        if _STOPS_BEFORE.search(plain):
            if ends or re.match(rf"[ {_LINE}]+[\"\u201c(*]*[^\W\d_a-z]", after):
                sources.add(number)
        elif ends and _names_source(marks[number]):
            word = _WORD_BEFORE.search(plain)
            if word is None or word[1].casefold() not in _LEADS_ON:
                sources.add(number)
    return sources


def _names_source(mark: Mark) -> bool:
    """Return whether the name of a link is that of its site, of an author with a year, or says nothing."""
    if _GENERIC.fullmatch(mark.text) or _AUTHOR.fullmatch(mark.text) or web_address(mark.text):
        return True
    try:
        parts = urlsplit(mark.url.casefold())
    except ValueError:
        return False
    name = "".join(char for char in mark.text.casefold() if char.isalnum())
    sites = [label.replace("-", "") for label in parts.netloc.partition(":")[0].split(".")[-3:-1] if label != "www"]
    folders = [] if " " in mark.text else parts.path.split("/")[1:-1]
    return len(name) > 1 and (
        any(name in label for label in [*sites, *folders])
        or any(len(site) > 1 and (site in name or (name[0] == site[0] and _is_within(site, name))) for site in sites)
    )


def _is_within(short: str, long: str) -> bool:
    """Return whether another text has the letters of a text in this order, as with an abbreviation."""
    letters = iter(long)
    return all(letter in letters for letter in short)


def _is_no_name(mark: Mark) -> bool:
    try:
        host = urlsplit(mark.url).netloc.lower()
    except ValueError:
        return False
    return web_address(mark.text) != "" or mark.text.lower() in (host, host.removeprefix("www."), mark.url.lower())


def _joined(run: re.Match[str]) -> str:
    """Return marks without the spaces around them that are not needed."""
    text = run.string
    before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
    kept = run[0].replace(" ", "")
    if not before or not after or after in _TIGHT or before in "([{":
        return kept
    stands_apart = run[0].startswith((" ", _LINE)) and run[0].endswith((" ", _LINE))
    if stands_apart and (before in ENDS or before in CLOSERS) and _LOWER_CASE_WORD.match(text, run.end()):
        return f" {kept.replace(_SLOT, _SLOT + _NAMED)} "
    return f"{kept} " if " " in run[0] or (before in ENDS and after.isupper()) else kept


def _read(text: str, draft: _SlottedText, line: int) -> tuple[str, list[tuple[Mark, int]], list[tuple[int, int]]]:
    """Return plain text, the position of each mark in it, and that of each line; a mark that is a subject stays a character."""
    marks, numbers = iter(draft.marks), iter(draft.lines)
    parts: list[str] = []
    places: list[tuple[Mark, int]] = []
    lines = [(0, line)]
    length = 0
    for stretch in re.split(f"({_SLOT}{_NAMED}|[{_SLOT}{_NAMED}{_LINE}])", text):
        if stretch == _LINE:
            lines.append((length, next(numbers)))
        elif stretch == _SLOT:
            places.append((next(marks), length))
        elif stretch in (_NAMED, _SLOT + _NAMED):
            places.append((next(marks), length + 1))
            stretch = stretch[:-1]  # noqa: PLW2901 - what of it is text
            parts.append(stretch)
            length += len(stretch)
        else:
            parts.append(stretch)
            length += len(stretch)
    return "".join(parts), places, lines


# Sentences that state something that a source could refute: a number, a date, a name.

_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*")
_BEGINS_ANEW = frozenset(':"\u201c\u201e\u2018«(;')
_NO_NAMES = frozenset("I I'm I've I'd I'll I\u2019m I\u2019ve I\u2019d I\u2019ll".split())
_FEWEST_WORDS = 3


def states_fact(sentence: str) -> bool:
    """Return whether a sentence holds a number, or a capitalised word that is not its first; questions state nothing."""
    if sentence.rstrip(CLOSERS + " ").endswith(("?", ":", "\uff1f")):
        return False
    words = list(_WORD.finditer(sentence))
    if len(words) < _FEWEST_WORDS:
        return False
    if _DIGIT.search(sentence):
        return True
    return any(
        word[0][0].isupper() and word[0] not in _NO_NAMES and sentence[: word.start()].rstrip()[-1:] not in _BEGINS_ANEW
        for word in words[1:]
    )


_MOST_LISTED = 20

MAX_CHARACTERS = 20_000_000
"""Longest report; nobody writes or reads a longer one."""


def read_report(report: str | Document, bibliography: Sequence[Reference] = ()) -> CitedReport:
    """Return every citation of a report with its sentence; keys and authors may name works of a bibliography beside it."""
    if isinstance(report, str) and len(report) > MAX_CHARACTERS:
        raise InputError(
            f"the report has {len(report):,} characters, and at most {MAX_CHARACTERS:,} are read; audit it in parts"
        )
    text = read_markdown(report, "the report") if isinstance(report, str) else report
    references = references_of(replace(text, blocks=report_blocks(text)))
    references.works = {key_of(entry.mark): entry for entry in bibliography}
    known: dict[str, bool] = {}

    def knows(name: str) -> bool:
        if name not in known:
            work = author_and_year(name)
            known[name] = references.find(name) is not None or bool(work and work[1] and references.works_of(*work))
        return known[name]

    reader = MarkReader(knows, keys=bool(references.works))
    references.resolve_notes(reader)
    title, sentences = _sentences(references, reader)
    names = [name for sentence in sentences for mark in sentence.marks for name in mark.names]
    has_numbers = any(name.isdecimal() and knows(name) for name in names)
    # authors in a report that cites in no other way are no places
    authors = len(reader.unsure) > 1 and not any(sentence.marks for sentence in sentences)
    round_numbers = not has_numbers and any(key.isdecimal() for key in references.listed)
    keys = bool(references.works) or reader.has_keys
    if authors or round_numbers or (keys and not references.works):
        # the references of a report decide what counts as a citation in it
        reader = MarkReader(knows, round_numbers=round_numbers, authors=authors, keys=keys)
        title, sentences = _sentences(references, reader)
    citations: list[Citation] = []
    missing: list[Citation] = []
    cited: set[Reference] = set(references.named)
    addresses: set[str] = set()
    flow: list[ReportSentence] = []
    last: Reference | None = None
    for sentence in sentences:
        first = len(citations) + 1
        for mark, place in zip(sentence.marks, chain(sentence.places, repeat(len(sentence.text))), strict=False):
            for name, url, named, entry in _cited(mark, references, last):
                last = entry or (Reference(name, named, url, mark.line) if url else last)
                if entry is not None:
                    cited.add(entry)
                others = entry.other_urls if entry is not None and entry.url == url else ()
                is_missing = bool(name) and entry is None and not url
                problem = _problem(name, references) if is_missing else ""
                citation = Citation(
                    len(citations) + 1, name, sentence.text, url, named, mark.line, sentence.quoted, others, problem, place
                )
                citations.append(citation)
                addresses.add(url)
                if is_missing:
                    missing.append(citation)
        numbers = tuple(range(first, len(citations) + 1))
        flow.append(ReportSentence(sentence.text, sentence.line, sentence.kind, sentence.block, numbers))
    return CitedReport(
        text.title or title,
        citations,
        [
            UncitedSentence(sentence.text, sentence.line)
            for sentence in sentences
            if sentence.states and not sentence.marks and states_fact(sentence.text)
        ],
        missing,
        [entry for entry in references.entries() if entry not in cited and (entry.mark or entry.url not in addresses)],
        references.duplicates,
        sentences=flow,
        references=list(references.entries()),
        unit=text.unit,
        notes=[*text.notes, *_not_understood(reader)],
    )


def _not_understood(reader: MarkReader) -> list[str]:
    """Return what to say of what looks like a citation and was not taken for one."""
    found = list({**reader.unsure, **reader.unread})
    if not found:
        return []
    more = f"; and {len(found) - _MOST_LISTED:,} more" if len(found) > _MOST_LISTED else ""
    return [f"no reference fits these, so they are not taken for citations: {'; '.join(found[:_MOST_LISTED])}{more}"]


def _problem(name: str, references: References) -> str:
    """Return why a mark has no entry, in words."""
    spread = re.fullmatch(r"\D{0,12}([0-9]{1,9})-([0-9]{1,9})", name)
    if spread and int(spread[2]) < int(spread[1]):
        return f"[{name}] is a range that ends before it begins"
    if spread and int(spread[2]) - int(spread[1]) >= LONGEST_RANGE:
        return (
            f"[{name}] is a range of {int(spread[2]) - int(spread[1]) + 1:,} references; at most {LONGEST_RANGE} are expanded"
        )
    if name == IBID:
        return "nothing is cited before this ibid."
    work = author_and_year(name)
    if work is None:
        return ""
    entries = references.works_of(*work)
    if len(entries) > 1:
        return f"{len(entries)} references are by {name}; tell them apart, as in {work[1]}a and {work[1]}b"
    return f"no reference begins with {name.rpartition(',')[0] or name} and has the year {work[1]}" if work[1] else ""


def _sentences(references: References, reader: MarkReader) -> tuple[str, list[MarkedSentence]]:
    """Return the first heading and all sentences; marks alone in a paragraph belong to the sentence before it."""
    title = ""
    all_sentences: list[MarkedSentence] = []
    last: MarkedSentence | None = None
    for number, block in enumerate(references.prose):
        sentences = marked_sentences(block, reader)
        if block.kind == "heading":
            last = None
            text = " ".join(sentence.text for sentence in sentences).strip()
            title = title or text
            marks = [mark for sentence in sentences for mark in sentence.marks]
            all_sentences.append(MarkedSentence(text, block.line, marks, states=False, block=number, kind=block.kind))
            continue
        for sentence in sentences:
            sentence.block, sentence.kind = number, block.kind
            if not sentence.text and last is not None:
                last.marks += sentence.marks
            else:
                all_sentences.append(sentence)
                last = sentence
    return title, all_sentences


def _cited(mark: Mark, references: References, last: Reference | None) -> Iterator[tuple[str, str, str, Reference | None]]:
    """Yield each citation of a mark: its name, the URL and title of what it cites, and its entry; ibid. cites the last."""
    for name in mark.names:
        entry = last if name == IBID else references.find(name, mark.note)
        shown = name if name == IBID else (entry.mark if entry is not None else "") or name
        title = mark.title or (entry.title if entry is not None else "") or mark.text
        yield shown, mark.url or (entry.url if entry is not None else ""), title, entry
    if not mark.names:
        yield "", mark.url, mark.title or mark.text, None


@dataclass(frozen=True)
class Citation:
    """One occurrence of one citation.

    Args:
        number: 1 for the first of the report.
        mark: as written: "3", the name of a footnote; empty for a plain link.
        sentence: the sentence that it is for, as plain text, without marks of citations.
        url: of what is cited; empty if the reference has none, or there is no such reference.
        title: of what is cited, by the reference.
        line: of the report, from 1.
        quoted: whether the sentence is in a block quote, so that the source must contain it word for word.
        other_urls: under which the same work may be stored: the DOI, and the page of the publisher.
        problem: why there is no such reference, in words; empty if there is one, or nothing more is known.
        place: number of characters of the sentence before the mark; 0 if that is not known.
    """

    number: int
    mark: str
    sentence: str
    url: str
    title: str
    line: int
    quoted: bool = False
    other_urls: tuple[str, ...] = ()
    problem: str = ""
    place: int = 0


@dataclass(frozen=True)
class UncitedSentence:
    """A sentence that states a fact (a number, a date, a name) and carries no citation."""

    sentence: str
    line: int


@dataclass(frozen=True)
class ReportSentence:
    """A sentence of a report, the kind and the number of its block, and the numbers of its citations."""

    text: str
    line: int
    kind: str
    block: int
    citations: tuple[int, ...]


@dataclass(frozen=True)
class CitedReport:
    """Citations of a report, and what is wrong with its references; ``unit`` is what each ``line`` counts.

    ``checked`` is what a register of published works says of the references, if it was asked.
    """

    title: str
    citations: list[Citation]
    uncited: list[UncitedSentence]
    missing: list[Citation]
    unused: list[Reference]
    duplicates: list[Reference] = field(default_factory=list)
    sentences: list[ReportSentence] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    checked: list[CheckedReference] = field(default_factory=list)
    unit: str = "line"
    notes: list[str] = field(default_factory=list)


def cited_claims(claims: Sequence[Mapping[str, object]]) -> CitedReport:
    """Return claims (``text``, ``cited_url``: one URL, several or None) as a report of which each is a sentence."""
    if not isinstance(claims, Sequence):
        raise InputError(f"claims come as a list of dicts with text and cited_url, not as {type(claims).__name__}")
    citations: list[Citation] = []
    sentences: list[ReportSentence] = []
    for number, claim in enumerate(claims, start=1):
        where = f"claim {number} of {len(claims)}"
        if not isinstance(claim, Mapping) or not {"text", "cited_url"} <= claim.keys():
            found = ", ".join(map(repr, claim)) if isinstance(claim, Mapping) else type(claim).__name__
            raise InputError(f'{where} needs "text" and "cited_url" (found: {found or "an empty dict"})')
        text, cited = claim["text"], claim["cited_url"]
        urls = list(cited) if isinstance(cited, list | tuple) else [cited]
        if not isinstance(text, str) or not text.strip():
            raise InputError(f'{where}: "text" is {text!r:.60}; write the sentence to be checked')
        if wrong := [url for url in urls if url is not None and not isinstance(url, str)]:
            raise InputError(f'{where}: "cited_url" is {wrong[0]!r:.60}; write a URL, a list of them, or None')
        first = len(citations) + 1
        for url in [str(url or "") for url in urls] or [""]:
            problem = "" if url else "the claim cites no URL"
            citations.append(Citation(len(citations) + 1, str(number), text, url, "", number, problem=problem))
        sentences.append(ReportSentence(text, number, "paragraph", number, tuple(range(first, len(citations) + 1))))
    return CitedReport("", citations, [], [], [], sentences=sentences, unit="claim")
