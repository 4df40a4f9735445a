"""Reading the citations of a report, each with its sentence.

Text is data: nothing in it is followed, and an address that is not ``http`` or ``https`` is never a link.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise, repeat
from urllib.parse import urlsplit

from nlp_retrieval.documents import Document, Piece, Reference, TextBlock, read_markdown, web_address
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.citations.marks import LONGEST_RANGE, Mark, MarkReader, word_set
from nlp_retrieval.systems.evidence.citations.published import CheckedReference
from nlp_retrieval.systems.evidence.citations.references import References, key_of, marks_of_link, number_of, references_of
from nlp_retrieval.text import CLOSERS, ENDS, sentence_spans

# The sentences of a block of text, and the marks of citations on each.
#
# A block is stretches of text with a mark between each two. A mark belongs to the sentence that it is in. After a full stop it
# belongs to the sentence before it, at the beginning of a paragraph to the one after it, and as the subject ("[2] shows that
# ...") to its own. The name of a link that only names a source is no text: in brackets, after a sentence, or at its end if the
# name is that of the site, of an author with a year, or says nothing ("Product page").

_SOURCE_WORD = (
    r"(?:(?:and|und|et|y|or|see|also|cf|e\.g|sources?|via|refs?|references?|citations?|urls?|links?|quellen?|siehe|vgl|voir|fuentes?|fontes?"
    r"|fonti)\b|来源|來源|出处|出典|参见|参考|出处)"
)
_NAMES_SOURCES = rf"(?:[\s,;:/&|·+.\u2010-\u2015-]|{_SOURCE_WORD})*"
_OPENED = re.compile(rf"[(\[\uff08]{_NAMES_SOURCES}\Z", re.IGNORECASE)
_WITHIN = re.compile(_NAMES_SOURCES, re.IGNORECASE)
_CLOSED = re.compile(rf"{_NAMES_SOURCES}[)\]\uff09]", re.IGNORECASE)
_DASHED = re.compile(r"\s*\]?\s*[\u2010-\u2015-]\s*\[?\s*")
_BETWEEN = re.compile(r"\s*(?:(?:[,;&\u2010-\u2015-]|and\b|und\b)\s*)?")
_NEXT = re.compile(r"\s*[,;&]?\s*(?:(?:and|und|et|y|e)\s+)?")
_LABEL = re.compile(
    r"(?:(?<=[\s|(])|\A)(?:(?:[A-Za-z]{2,20} )?(?:urls?|links?)|sources?|refs?|references?|quellen?|fuentes?|fonti?)[:\uff1a]"
    r"\s*\Z",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*(?:[\u2013\u2014|\u00b7:]|-(?=\s))\s*\Z")
_AFTER_SEPARATED = re.compile(r"[\s,;&]*(?=[.!?。](?:\s|\Z)|\Z|[\u2013\u2014|\u00b7]|-\s)")
_STOPS = re.compile(rf"[{re.escape(''.join(sorted(ENDS)))}][{re.escape(CLOSERS)}]*\s*\Z")
_WORD_BEFORE = re.compile(r"([^\W_]+)[,;:]?\s*\Z")
_SENTENCE_ENDS = re.compile(rf"\s*(?:[{re.escape(''.join(sorted(ENDS)))};)\]]|[\u2013\u2014|]|-\s)")
_BEGINS_SENTENCE = re.compile(r"\s+[\"\u201c(*]*[^\W\d_a-z]")
_ROLE = re.compile(r"(?:\{|(?<!\w):)[a-z:]{0,12}cite[a-z:]{0,12}(?:\}|(?<=:))\Z")  # {cite:p}`key`, :cite:`key`
_MOST_TOGETHER = 30  # marks in a row of which the first one's place counts
_NOTHING_MORE = ("", ";", ")", "]", *ENDS)
_GENERIC = re.compile(
    r"\W*(?:(?:product|web|full|official|original|reddit|wiki|the|this|our|read|click|view|see|more|project|press)[ -])*"
    r"(?:pages?|threads?|links?|sites?|websites?|webpages?|articles?|posts?|here|more|details|pdfs?|texts?|reports?|stud(?:y|ies)|papers?"
    r"|documents?|docs|releases?|sources?|urls?|hier|mehr|lien|ici|enlace|aqu\u00ed|链接|原文|网页|リンク)\W*",
    re.IGNORECASE,
)
_AUTHOR = re.compile(r"[^\W\d_].{0,80}?[ ,(](?:1[6-9]|20)[0-9]{2}[a-z]?\)?")
_LEADS_ON = word_set("leading_on")
_PAGE = re.compile(r"\s*:\s*[0-9][0-9,\s\u2013-]{0,20}")
_LOWER_CASE_WORD = re.compile(r"[a-z]+(?![\w-])")
_TIGHT, _LEADING = frozenset(",.;:!?)]}”»"), " ,;:"


@dataclass
class MarkedSentence:
    """A sentence as plain text, its marks in order, and the characters before each."""

    text: str
    line: int
    marks: list[Mark] = field(default_factory=list)
    places: list[int] = field(default_factory=list, kw_only=True)
    quoted: bool = False
    block: int = 0
    kind: str = "paragraph"


@dataclass
class _Stretch:
    """Text between two marks, in which lines end as in the report, and the number of lines that began before it."""

    text: str = ""
    line: int = 0
    is_name: bool = False  # it begins with the name of the link before it
    is_begun: bool = False  # it begins a sentence of which the marks before it are the subject

    def cut(self, begin: int) -> None:
        """Leave out the first characters."""
        self.line += self.text.count("\n", 0, begin)
        self.text = self.text[begin:]


class _Draft:
    """A block as stretches of text, with a mark between each two, and the number of each of its lines."""

    def __init__(self, line: int) -> None:
        self.lines = [line]
        self.stretches = [_Stretch()]
        self.marks: list[Mark] = []

    @property
    def end(self) -> str:
        """Return the last characters."""
        return "".join(stretch.text for stretch in self.stretches[-4:])[-60:].rstrip()

    def mark(self, mark: Mark) -> None:
        """Add a mark."""
        last = self.stretches[-1]
        self.marks.append(mark)
        self.stretches.append(_Stretch(line=last.line + last.text.count("\n")))


def marked_sentences(block: TextBlock, reader: MarkReader) -> list[MarkedSentence]:
    """Return the sentences of a block; one without text if it holds only marks, none if it is empty."""
    if block.kind == "row":
        return _row(block, reader)
    sentences = _drafted_sentences(_drafted(block.pieces[0], block.line, reader))
    for sentence in sentences:
        sentence.quoted = block.quoted
    return sentences


def _row(block: TextBlock, reader: MarkReader) -> list[MarkedSentence]:
    """Return a row of a table with the heads of its columns as one sentence, or one for each cell if several are cited."""
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
    sentences = _drafted_sentences(_drafted(pieces, line, reader))
    text = " ".join(sentence.text for sentence in sentences if sentence.text)
    return MarkedSentence(text, line, [mark for sentence in sentences for mark in sentence.marks])


def _drafted(pieces: Sequence[Piece], line: int, reader: MarkReader) -> _Draft:
    draft = _Draft(line)
    for is_text, alike in groupby(pieces, key=lambda piece: piece.kind in ("text", "break")):
        if is_text:
            _add_text(draft, list(alike), reader)
            continue
        for piece in alike:
            if piece.kind == "note":
                draft.mark(Mark(reader.labels(piece.text), piece.line, note=True))
            elif piece.kind == "raised" and (names := reader.raised(piece.text.strip(), draft.end)):
                draft.mark(Mark(names, piece.line))
            elif piece.kind == "raised" and (piece.text.isalpha() or _PAGE.fullmatch(draft.stretches[-1].text + piece.text)):
                continue  # the letter of a note below a table; ":14", the page in what the mark before it cites
            elif piece.kind == "link" and (marks := marks_of_link(piece)):
                for mark in marks:
                    draft.mark(mark)
            elif piece.kind == "code" and (role := _ROLE.search(draft.stretches[-1].text)):
                draft.stretches[-1].text = draft.stretches[-1].text[: role.start()]
                draft.mark(Mark(tuple(re.findall(r"[^\s,;]+", piece.text)), piece.line))
            elif piece.kind == "code":
                draft.stretches[-1].text += re.sub(r"\s+", " ", piece.text)
            else:
                _add_text(draft, [piece], reader)
    return draft


def _add_text(draft: _Draft, pieces: Sequence[Piece], reader: MarkReader) -> None:
    """Add text of one or several lines; a mark may go on in the next line."""
    text, starts = "", list[tuple[int, int]]()
    for piece in pieces:
        starts.append((len(text), piece.line))
        if piece.kind == "break":
            draft.lines.append(piece.line)
            text = text.rstrip(" ") + "\n"
        else:
            part = re.sub(r"\s+", " ", piece.text)
            text += part.lstrip(" ") if text.endswith((" ", "\n")) else part
    begin = 0
    for start, end, names in reader.find(text.replace("\n", " ")):
        draft.stretches[-1].text += text[begin:start]
        draft.mark(Mark(names, starts[bisect_right(starts, (start, 10**9)) - 1][1]))
        draft.stretches[-1].line += text.count("\n", start, end)
        begin = end
    draft.stretches[-1].text += text[begin:]


def _with_ranges(draft: _Draft) -> None:
    """Let the second of two marks with a dash between them name all after the first: [1]\u2013[3], each a link."""
    for at, (before, mark) in enumerate(pairwise(draft.marks), 1):
        first, last = (number_of(one.names[0]) if len(one.names) == 1 else "" for one in (before, mark))
        is_dashed = first and last and not mark.url and _DASHED.fullmatch(draft.stretches[at].text)
        if is_dashed and 1 < int(last) - int(first) < LONGEST_RANGE:
            draft.marks[at] = replace(mark, names=tuple(map(str, range(int(first) + 1, int(last) + 1))))


def _drafted_sentences(draft: _Draft) -> list[MarkedSentence]:
    """Return the sentences of a draft, which is changed."""
    _with_ranges(draft)
    sources = _in_brackets(draft)
    sources |= _named_sources(draft, sources)
    for number, mark in enumerate(draft.marks):
        if mark.text and number not in sources and not _is_no_name(mark):
            named = draft.stretches[number + 1]
            named.text, named.is_name = mark.text + named.text, True
    _join(draft)
    text, breaks, places, begun = "", list[tuple[int, int]](), list[int](), [0]
    for number, stretch in enumerate(draft.stretches):
        if number:
            places.append(len(text) + (stretch.is_name or stretch.is_begun))
        if stretch.is_begun:
            begun.append(len(text))
        breaks.append((len(text), draft.lines[stretch.line]))
        ends = (match.end() for match in re.finditer("\n", stretch.text))
        breaks += [(len(text) + end, draft.lines[stretch.line + at]) for at, end in enumerate(ends, 1)]
        text += stretch.text
    spans = [(part + a, part + b) for part, end in pairwise([*begun, len(text)]) for a, b in sentence_spans(text[part:end])]
    if not spans:
        return [MarkedSentence("", draft.lines[0], draft.marks)] if draft.marks else []
    starts, lines = [begin for begin, _ in spans], [begin for begin, _ in breaks]
    sentences = [MarkedSentence(_clean(text[a:b]), breaks[bisect_right(lines, a) - 1][1]) for a, b in spans]
    for mark, place in zip(draft.marks, places, strict=True):
        number = max(0, bisect_left(starts, place) - 1)
        sentences[number].marks.append(mark)
        sentences[number].places.append(len(_clean(text[starts[number] : place])))
    return [sentence for sentence in sentences if sentence.text or sentence.marks]


def _clean(text: str) -> str:
    return " ".join(text.split()).lstrip(_LEADING)


def _in_brackets(draft: _Draft) -> set[int]:
    """Leave out brackets that hold only sources, and return the numbers of the marks in them."""
    sources: set[int] = set()
    stretches = draft.stretches
    for begin, stretch in enumerate(stretches):
        opened = _OPENED.search(stretch.text)
        end = begin + 1
        while opened and end < len(stretches) - 1 and _WITHIN.fullmatch(stretches[end].text):
            end += 1
        closed = _CLOSED.match(stretches[end].text) if opened and end < len(stretches) else None
        if opened and closed:
            stretch.text = stretch.text[: opened.start()]
            for inner in stretches[begin + 1 : end]:
                inner.cut(len(inner.text))
            stretches[end].cut(closed.end())
            sources.update(range(begin, end))
    return sources


def _named_sources(draft: _Draft, sources: set[int]) -> set[int]:
    """Return the numbers of marks whose name is not part of a sentence: they follow it, or end it and name the source."""
    numbers: set[int] = set()
    texts = [stretch.text for stretch in draft.stretches]
    for number in range(len(draft.marks) - 1, -1, -1):
        if not draft.marks[number].text:
            continue
        after, is_last = texts[number + 1], number + 1 == len(draft.marks)
        follows = not is_last and bool(_NEXT.fullmatch(after))
        ends = bool(_SENTENCE_ENDS.match(after)) or (is_last and not after.strip())
        ends = ends or (follows and number + 1 in sources | numbers)
        first = number
        while first and number - first < _MOST_TOGETHER and _NEXT.fullmatch(texts[first]):
            first -= 1
        before = texts[first][-60:]
        if _STOPS.search(before):
            if ends or _BEGINS_SENTENCE.match(after):
                numbers.add(number)
        elif ends and _names_source(draft.marks[number]):
            word = _WORD_BEFORE.search(before)
            if word is None or word[1].casefold() not in _LEADS_ON:
                numbers.add(number)
    return numbers


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


def _join(draft: _Draft) -> None:
    """Leave out what only separates marks from each other and from their sentence."""
    stretches, begin = draft.stretches, 0
    while begin < len(draft.marks):
        end = begin + 1  # of marks without names that stand together
        while end < len(draft.marks) and not stretches[end].is_name and not stretches[end + 1].is_name:
            if not _BETWEEN.fullmatch(stretches[end].text):
                break
            stretches[end].cut(len(stretches[end].text))
            end += 1
        if stretches[begin + 1].is_name:
            begin += 1
            continue
        _settle(stretches[begin], stretches[end], stretches[end + 1].text if end < len(draft.marks) else "")
        for inner in stretches[begin + 1 : end]:
            inner.is_begun = stretches[end].is_begun
        begin = end


def _settle(left: _Stretch, right: _Stretch, following: str) -> None:
    """Join the text before some marks and that after them, which may be followed by the name of a link."""
    separated = False
    if (label := _LABEL.search(left.text)) and _is_separated(left.text[: label.start()], right.text):
        left.text, separated = left.text[: label.start()], True
    dash, after = _SEPARATOR.search(left.text), _AFTER_SEPARATED.match(right.text) if not following else None
    if dash and after and _is_separated(left.text[: dash.start()], right.text):
        left.text, separated = left.text[: dash.start()], True
        right.cut(after.end())
    spaced_before, spaced_after = separated or left.text[-1:].isspace(), right.text[:1].isspace()
    left.text = left.text.rstrip()
    right.cut(len(right.text) - len(right.text.lstrip()))
    before, after_marks = left.text[-1:], right.text or following
    if not before or not after_marks or after_marks[0] in _TIGHT or before in "([{":
        if before in (".", "!", "?", "…") and re.match(r"\.(?:\s|\Z)", right.text):  # a second stop
            right.cut(1)
        return
    if spaced_before and spaced_after and (before in ENDS or before in CLOSERS) and _LOWER_CASE_WORD.match(after_marks):
        right.is_begun = sentence_spans(f"{left.text[-200:]} X")[-1][0] > len(left.text[-200:])  # no abbreviation
    if spaced_before or spaced_after or (before in ENDS and after_marks[0].isupper()):
        left.text += " "


def _is_separated(before: str, after: str) -> bool:
    """Return whether a "URL:", dash or colon before marks only separates them from their sentence."""
    return not _STOPS.search(before[-60:]) or after.lstrip()[:1] in _NOTHING_MORE


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


def read_report(report: str | Document, bibliography: Sequence[Reference] = ()) -> CitedReport:
    """Return every citation of a report with its sentence; keys and authors may name works of a bibliography beside it."""
    text = read_markdown(report, "the report") if isinstance(report, str) else report
    references = references_of(text)
    references.works = {key_of(entry.mark): entry for entry in bibliography}
    reader = MarkReader(references.knows, keys=bool(references.works))
    references.resolve_notes(reader)
    entries = references.entries()
    title, sentences = _sentences(references, reader)
    names = [name for sentence in sentences for mark in sentence.marks for name in mark.names]
    has_numbers = any(name.isdecimal() and references.knows(name) for name in names)
    # authors in a report that cites in no other way are no places
    authors = len(reader.unsure) > 1 and not any(sentence.marks for sentence in sentences)
    round_numbers = not has_numbers and any(key.isdecimal() for key in references.listed)
    keys = bool(references.works) or reader.has_keys
    if authors or round_numbers or (keys and not references.works):
        # the references of a report decide what counts as a citation in it
        reader = MarkReader(references.knows, round_numbers=round_numbers, authors=authors, keys=keys)
        title, sentences = _sentences(references, reader)
    citations: list[Citation] = []
    missing: list[Citation] = []
    cited: set[Reference] = set(references.named)
    addresses: set[str] = set()
    flow: list[ReportSentence] = []
    uncited: list[ReportSentence] = []
    last: Reference | None = None
    for sentence in sentences:
        first = len(citations) + 1
        for mark, place in zip(sentence.marks, chain(sentence.places, repeat(len(sentence.text))), strict=False):
            for name, url, named, entry in references.cited(mark, last):
                last = entry or (Reference(name, named, url, mark.line) if url else last)
                if entry is not None:
                    cited.add(entry)
                others = entry.other_urls if entry is not None and entry.url == url else ()
                is_missing = bool(name) and entry is None and not url
                problem = references.why_missing(name) if is_missing else ""
                citation = Citation(
                    len(citations) + 1, name, sentence.text, url, named, mark.line, sentence.quoted, others, problem, place
                )
                citations.append(citation)
                addresses.add(url)
                if is_missing:
                    missing.append(citation)
        numbers = tuple(range(first, len(citations) + 1))
        flow.append(ReportSentence(sentence.text, sentence.line, sentence.kind, sentence.block, numbers))
        if sentence.kind != "heading" and not sentence.marks and states_fact(sentence.text):
            uncited.append(flow[-1])
    # where no raised number is a mark, one is a power
    unread = [mark for mark in (*reader.unsure, *reader.unread) if reader.has_raised or not mark.startswith("^")]
    more = f"; and {len(unread) - _MOST_LISTED:,} more" if len(unread) > _MOST_LISTED else ""
    said = f"no reference fits these, so they are not taken for citations: {'; '.join(unread[:_MOST_LISTED])}{more}"
    return CitedReport(
        text.title or title,
        citations,
        uncited,
        missing,
        [entry for entry in entries if entry not in cited and (entry.mark or entry.url not in addresses)],
        sentences=flow,
        references=entries,
        unit=text.unit,
        notes=[*text.notes, *([said] if unread else [])],
    )


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
            all_sentences.append(MarkedSentence(text, block.line, marks, block=number, kind=block.kind))
            continue
        for sentence in sentences:
            sentence.block, sentence.kind = number, block.kind
            if not sentence.text and last is not None:
                last.marks += sentence.marks
            else:
                all_sentences.append(sentence)
                last = sentence
    return title, all_sentences


@dataclass(frozen=True)
class Citation:
    """One occurrence of one citation: its mark as written, its sentence without marks, and what its reference names."""

    number: int
    mark: str
    sentence: str
    url: str
    title: str
    line: int
    quoted: bool = False
    other_urls: tuple[str, ...] = ()  # under which the same work may be stored
    problem: str = ""  # why there is no reference
    place: int = 0  # characters of the sentence before the mark, if known


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
    """Citations of a report, and what is wrong with its references; ``unit`` is what each ``line`` counts."""

    title: str
    citations: list[Citation]
    uncited: list[ReportSentence]
    missing: list[Citation]
    unused: list[Reference]
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
        given = claim if isinstance(claim, Mapping) else {}
        text, cited = given.get("text"), given.get("cited_url", 0)
        urls = [cited] if not isinstance(cited, list | tuple) else cited or [None]
        if not isinstance(text, str) or not text.strip() or not all(isinstance(url, str | None) for url in urls):
            what = 'as "text" one sentence, and as "cited_url" a URL, a list of them, or None'
            raise InputError(f"claim {number} of {len(claims)} needs {what}")
        first = len(citations) + 1
        for url in urls:
            problem = "" if url else "the claim cites no URL"
            citations.append(Citation(len(citations) + 1, str(number), text, str(url or ""), "", number, problem=problem))
        sentences.append(ReportSentence(text, number, "paragraph", number, tuple(range(first, len(citations) + 1))))
    return CitedReport("", citations, [], [], [], sentences=sentences, unit="claim")
