"""Reading a report in DOCX: its text with footnotes, endnotes, links, and citations that Zotero, Mendeley or Word stored.

The accepted text is read: insertions count, deletions do not. Comments, headers and hidden text are left out, macros are never
run, and nothing outside the file is opened. It is for a child process with limits, since a DOCX may come from anyone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

from nlp_retrieval.errors import InputError, SourceError
from nlp_retrieval.systems.evidence.citations.bibliography import as_doi, entries_of_csl, entry_of
from nlp_retrieval.systems.evidence.citations.blocks import Piece, Reference, ReportText, TextBlock
from nlp_retrieval.systems.evidence.citations.building import Draft, row_blocks

_MOST_PARTS = 20_000
_LARGEST_PART = 100 * 2**20
_MOST_STYLES = 20
_MOST_STORES = 100
_MOST_SPANNED = 50
_MOST_UNPACKED = 200
"""Times its packed size that a part of more than ten million bytes may have; text has about ten."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_HYPERLINK = re.compile(r'HYPERLINK\s{1,9}"([^"]{1,4000})"', re.IGNORECASE)
_CSL = re.compile(r"CSL_CITATION\s{0,9}(\{.*)", re.DOTALL)
_CITATION = re.compile(r"(?:\A\s*CITATION|\\m)\s{1,9}([^\s\\]{1,100})")
_B = "{http://schemas.openxmlformats.org/officeDocument/2006/bibliography}"
_STORE = re.compile(r"customXml/item[0-9]{1,4}\.xml")
_QUOTES = frozenset(("quote", "intense quote", "block text"))
_SKIPPED = frozenset(
    f"{_W}{name}"
    for name in ("del", "moveFrom", "rPr", "pPr", "instrText", "delText", "sdtPr", "sectPr", "object", "tblPr", "trPr", "tcPr")
)


def read_docx(data: bytes, where: str) -> ReportText:
    """Return the text of a report in DOCX; its lines are paragraphs.

    Raises:
        SourceError: it is no DOCX, encrypted, damaged, unpacks to far more than a document, declares a DTD, or has no text.
    """
    try:
        with ZipFile(BytesIO(data)) as archive:
            return _Document(archive, where).read()
    except BadZipFile as error:
        raise SourceError(
            f"{where}: it is no DOCX, or a damaged one ({error}); open it in a word processor and save it"
        ) from None
    except (NotImplementedError, EOFError, OSError) as error:
        raise SourceError(f"{where}: the DOCX is damaged ({type(error).__name__}: {error}); save it again") from None


@dataclass
class _Field:
    """A field in the making: its instruction, whether its shown text has begun, and whether that is text like any other."""

    instruction: str = ""
    shows: bool = False
    is_text: bool = False
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Style:
    """A style: its name, whether its text is raised, and the list that its paragraphs are counted in."""

    name: str = ""
    raised: bool = False
    number: str = ""
    depth: int = 0


@dataclass(frozen=True)
class _Level:
    """A level of a list that counts 1, 2, 3; lists of one kind go on counting unless one of them starts anew."""

    kind: str
    start: int
    starts_anew: bool


class _Document:
    def __init__(self, archive: ZipFile, where: str) -> None:
        self._archive, self._where = archive, where
        self._names = set(archive.namelist())
        self._left: Counter[str] = Counter()
        self._fields: list[_Field] = []
        self._works: dict[str, Reference] = {}
        self._counts: dict[tuple[str, int], int] = {}
        self._begun: set[tuple[str, int]] = set()
        self._merged: Draft | None = None
        self._in_notes = False
        self._paragraph = 0
        self._links: dict[str, str] = {}

    def read(self) -> ReportText:
        if len(self._names) > _MOST_PARTS:
            raise SourceError(f"{self._where}: the DOCX has {len(self._names):,} parts; at most {_MOST_PARTS:,} are read")
        main = "word/document.xml"
        if main not in self._names:
            cure = "save it as DOCX"
            if "content.xml" in self._names:
                cure = "it is an OpenDocument text; " + cure
            raise SourceError(f"{self._where}: a zip file without {main}, so no DOCX; {cure}")
        self._styles = self._read_styles()
        self._levels = self._read_numbering()
        self._sources = self._read_sources()
        blocks = self._part(main, "document.xml.rels")
        for part, kind in (("footnotes", "footnote"), ("endnotes", "endnote")):
            if f"word/{part}.xml" in self._names:
                blocks += self._notes(part, kind)
        if not any(piece.text.strip() for block in blocks for cell in block.pieces for piece in cell):
            raise SourceError(f"{self._where}: the DOCX has no text; if it holds scans, recognise their text first")
        return ReportText(blocks, unit="paragraph", works=list(self._works.values()), notes=self._said())

    def _said(self) -> list[str]:
        left, notes = self._left, []
        if changes := left["inserted"] + left["deleted"]:
            notes.append(
                f"{self._where}: {changes:,} tracked changes; the text was read as if all were accepted ({left['inserted']:,} "
                f"insertions read, {left['deleted']:,} deletions left out)"
            )
        if left["comments"]:
            notes.append(f"{self._where}: {left['comments']:,} comments were left out")
        if left["hidden"]:
            notes.append(f"{self._where}: {left['hidden']:,} stretches of hidden text were left out")
        if any(name.endswith("vbaProject.bin") for name in self._names):
            notes.append(f"{self._where}: it holds macros, which were not run")
        return notes

    # Parts.

    def _xml(self, name: str) -> Any:
        from lxml import etree

        info = self._archive.getinfo(name)
        if info.flag_bits & 1:
            raise SourceError(f"{self._where}: the DOCX is encrypted; save it without a password")
        is_bomb = info.file_size > 10_000_000 and info.file_size > _MOST_UNPACKED * max(info.compress_size, 1)
        if info.file_size > _LARGEST_PART or is_bomb:
            raise SourceError(
                f"{self._where}: {name} unpacks from {info.compress_size:,} to {info.file_size:,} bytes, far more than a "
                "document; omit it"
            )
        with self._archive.open(name) as part:
            data = part.read(_LARGEST_PART + 1)
        if len(data) > _LARGEST_PART:
            raise SourceError(f"{self._where}: {name} unpacks to more than {_LARGEST_PART >> 20} MiB; omit it")
        # before parsing as well: nothing that a DTD says should be worked on
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise SourceError(f"{self._where}: {name} declares a document type, which no DOCX does; save it again, or omit it")
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
        )
        try:
            root = etree.fromstring(data.replace(_STRICT[1:-1].encode(), _W[1:-1].encode()), parser)
        except etree.XMLSyntaxError as error:
            raise SourceError(f"{self._where}: {name} is damaged ({str(error)[:100]}); save the DOCX again") from None
        if root.getroottree().docinfo.doctype:
            raise SourceError(f"{self._where}: {name} declares a document type, which no DOCX does; save it again, or omit it")
        return root

    def _read_links(self, name: str) -> dict[str, str]:
        path = f"word/_rels/{name}"
        if path not in self._names:
            return {}
        return {
            link.get("Id", ""): link.get("Target", "")
            for link in self._xml(path)
            if link.get("TargetMode") == "External" and link.get("Type", "").endswith("/hyperlink")
        }

    def _read_styles(self) -> dict[str, _Style]:
        if "word/styles.xml" not in self._names:
            return {}
        elements = {style.get(f"{_W}styleId", ""): style for style in self._xml("word/styles.xml").iter(f"{_W}style")}
        return {key: self._read_style(key, elements) for key in elements}

    def _read_style(self, key: str, elements: Mapping[str, Any]) -> _Style:
        raised = number = depth = ""
        based_on = key
        for _ in range(_MOST_STYLES):  # a style has what the style has that it is based on
            style = elements.get(based_on)
            if style is None:
                break
            raised = raised or _value(style, "rPr/vertAlign")
            number = number or _value(style, "pPr/numPr/numId")
            depth = depth or _value(style, "pPr/numPr/ilvl")
            based_on = _value(style, "basedOn")
        return _Style(_value(elements[key], "name").lower(), raised == "superscript", number, _as_number(depth))

    def _read_numbering(self) -> dict[tuple[str, int], _Level]:
        """Return the levels of lists that count 1, 2, 3."""
        if "word/numbering.xml" not in self._names:
            return {}
        root = self._xml("word/numbering.xml")
        starts = {
            (kind.get(f"{_W}abstractNumId", ""), _as_number(level.get(f"{_W}ilvl", ""))): _as_number(_value(level, "start"), 1)
            for kind in root.iter(f"{_W}abstractNum")
            for level in kind.iter(f"{_W}lvl")
            if _value(level, "numFmt") == "decimal"
        }
        levels: dict[tuple[str, int], _Level] = {}
        for number in root.iter(f"{_W}num"):
            anew = {
                _as_number(override.get(f"{_W}ilvl", "")): _as_number(_value(override, "startOverride"), 1)
                for override in number.iter(f"{_W}lvlOverride")
                if override.find(f"{_W}startOverride") is not None
            }
            kind = _value(number, "abstractNumId")
            for depth in (depth for key, depth in starts if key == kind):
                levels[number.get(f"{_W}numId", ""), depth] = _Level(kind, anew.get(depth, starts[kind, depth]), depth in anew)
        return levels

    def _read_sources(self) -> dict[str, Reference]:
        """Return the works that Word's own citations name, by their tags."""
        sources: dict[str, Reference] = {}
        for name in sorted(filter(_STORE.fullmatch, self._names))[:_MOST_STORES]:
            try:
                root = self._xml(name)
            except SourceError:  # of another program, or damaged; the text can be read without it
                continue
            for work in root.iter(f"{_B}Source"):
                fields = {
                    child.tag.removeprefix(_B): (child.text or "").strip() for child in work if isinstance(child.tag, str)
                }
                authors = work.find(f"{_B}Author/{_B}Author")
                people = authors if authors is not None else ()
                surnames = [
                    (person.text or "").strip()
                    for group in people
                    for person in (group.iter(f"{_B}Last") if group.tag == f"{_B}NameList" else [group])
                ]
                tag, title = fields.get("Tag", ""), fields.get("Title", "")
                addresses = [as_doi(fields.get("DOI", "")), fields.get("URL", "")]
                sources[tag] = entry_of(tag, list(filter(None, surnames)), fields.get("Year", ""), title, addresses, 1)
        return sources

    def _part(self, name: str, links: str) -> list[TextBlock]:
        root = self._xml(name)
        self._links = self._read_links(links)
        self._left["comments"] += sum(1 for _ in root.iter(f"{_W}commentReference"))
        return list(self._blocks(root))

    def _notes(self, part: str, kind: str) -> list[TextBlock]:
        root = self._xml(f"word/{part}.xml")
        self._in_notes = True
        self._links = self._read_links(f"{part}.xml.rels")
        blocks = []
        for note in root.iter(f"{_W}{kind}"):
            if note.get(f"{_W}type") in ("separator", "continuationSeparator", "continuationNotice"):
                continue
            name = _note_name(kind, note.get(f"{_W}id", ""))
            self._paragraph += 1
            line = self._paragraph
            pieces = [piece for block in self._blocks(note) for cell in block.pieces for piece in cell]
            blocks += [TextBlock("note", line, [[]], name=name), TextBlock("note", line, [pieces], name=name)]
        return blocks

    # Blocks and what is in them.

    def _blocks(self, parent: Any) -> Iterator[TextBlock]:
        for element in parent:
            if element.tag == f"{_W}p":
                yield from self._read_paragraph(element)
            elif element.tag == f"{_W}tbl":
                yield from row_blocks(list(self._rows(element)))
            elif element.tag in (f"{_W}del", f"{_W}moveFrom"):
                self._left["deleted"] += 1
            elif element.tag not in _SKIPPED and isinstance(element.tag, str):
                yield from self._blocks(element)
        if self._merged is not None and parent.tag not in (f"{_W}sdtContent", f"{_W}sdt"):
            merged, self._merged = self._merged, None
            if merged:
                yield TextBlock("paragraph", self._paragraph, [merged.take()])

    def _rows(self, table: Any) -> Iterator[tuple[int, list[list[Piece]]]]:
        below: dict[int, list[Piece]] = {}
        for row in table.iter(f"{_W}tr"):
            if row.find(f"{_W}trPr/{_W}del") is not None:
                self._left["deleted"] += 1
                continue
            line = self._paragraph + 1
            cells: list[list[Piece]] = []
            for cell in row.iter(f"{_W}tc"):
                if next(cell.iterancestors(f"{_W}tr")) is not row:
                    continue
                pieces = [
                    piece
                    for block in self._blocks(cell)
                    for part in block.pieces
                    for piece in (*part, Piece("break", " ", line))
                ]
                merged = cell.find(f"{_W}tcPr/{_W}vMerge")
                if merged is not None and merged.get(f"{_W}val") != "restart":
                    pieces = pieces if any(piece.text.strip() for piece in pieces) else below.get(len(cells), pieces)
                else:
                    below[len(cells)] = [piece for piece in pieces if piece.kind in ("text", "break")]
                width = min(_as_number(_value(cell, "tcPr/gridSpan"), 1), _MOST_SPANNED)
                cells += [pieces, *([] for _ in range(width - 1))]
            yield line, cells

    def _read_paragraph(self, element: Any) -> Iterator[TextBlock]:
        self._paragraph += 1
        line = self._paragraph
        draft, self._merged = self._merged or Draft(), None
        self._runs(element, draft, line)
        for opened in self._fields:  # one that does not end with its paragraph is text, or has lost its end
            draft.text("".join(opened.shown), line)
            opened.shown.clear()
            opened.shows = opened.is_text = True
        if element.find(f"{_W}pPr/{_W}rPr/{_W}del") is not None:  # what follows belongs to this paragraph
            self._left["deleted"] += 1
            self._merged = draft
            return
        pieces = draft.take()
        applied = _value(element, "pPr/pStyle")
        settings = self._styles.get(applied, _Style(applied.lower()))
        style = settings.name
        level = _value(element, "pPr/outlineLvl")
        heading = re.fullmatch(r"heading ?([1-9])|(title)", style)
        if heading or (level.isdecimal() and int(level) < 9):
            depth = int(heading[1] or 1) if heading else int(level) + 1
            yield TextBlock("heading", line, [pieces], level=min(depth, 6))
            return
        listed = element.find(f"{_W}pPr/{_W}numPr")
        number = (_value(listed, "numId") if listed is not None else "") or settings.number
        depth = _as_number(_value(listed, "ilvl") if listed is not None else "", settings.depth)
        if listed is not None or style.startswith("list ") or number not in ("", "0"):
            yield TextBlock("item", line, [pieces], level=1 + depth, name=self._number(number, depth))
        elif pieces:
            yield TextBlock("paragraph", line, [pieces], quoted=style in _QUOTES)

    def _number(self, number: str, depth: int) -> str:
        level = self._levels.get((number, depth))
        if level is None:
            return "-"
        key = (level.kind, depth)
        if level.starts_anew and (number, depth) not in self._begun:
            self._counts.pop(key, None)
        self._begun.add((number, depth))
        self._counts[key] = self._counts.get(key, level.start - 1) + 1
        return str(self._counts[key])

    def _runs(self, parent: Any, draft: Draft, line: int) -> None:
        for element in parent:
            tag = element.tag
            if tag in (f"{_W}del", f"{_W}moveFrom"):
                self._left["deleted"] += 1
            elif tag == f"{_W}r":
                self._run(element, draft, line)
            elif tag == f"{_W}hyperlink":
                inner = "".join(text.text or "" for text in element.iter(f"{_W}t"))
                url = self._links.get(element.get(f"{_R}id", ""), "")
                if url and self._collecting() is None:
                    draft.link(url, inner, line)
                else:
                    self._runs(element, draft, line)
            elif tag == f"{_W}fldSimple":
                shown = "".join(text.text or "" for text in element.iter(f"{_W}t"))
                done = _Field(element.get(f"{_W}instr", ""), True, False, [shown])
                if _is_text(done.instruction):
                    self._runs(element, draft, line)
                else:
                    self._end_field(done, draft, line)
            elif tag in (f"{_W}ins", f"{_W}moveTo"):
                self._left["inserted"] += 1
                self._runs(element, draft, line)
            elif isinstance(tag, str) and tag not in _SKIPPED and not tag.endswith(("}oMath", "}oMathPara", "}Fallback")):
                self._runs(element, draft, line)

    def _run(self, run: Any, draft: Draft, line: int) -> None:
        settings = run.find(f"{_W}rPr")
        if settings is not None and settings.find(f"{_W}vanish") is not None:
            self._left["hidden"] += 1
            return
        is_raised = settings is not None and (
            (_value(settings, "vertAlign") or "superscript") == "superscript"
            if self._styles.get(_value(settings, "rStyle"), _Style()).raised
            else _value(settings, "vertAlign") == "superscript"
        )
        collecting = self._collecting()
        for element in run:
            name = element.tag.removeprefix(_W) if isinstance(element.tag, str) else ""
            if name == "fldChar":
                self._field(element.get(f"{_W}fldCharType", ""), draft, line)
                collecting = self._collecting()
            elif name == "instrText" and self._fields:
                self._fields[-1].instruction += element.text or ""
            elif name in ("footnoteReference", "endnoteReference"):
                draft.note(_note_name(name.removesuffix("Reference"), element.get(f"{_W}id", "")), line)
            elif collecting is not None:
                if collecting.shows:
                    collecting.shown.append((element.text or "") if name == "t" else " " if name in ("tab", "br") else "")
            elif name == "t":
                (draft.raised if is_raised else draft.text)(element.text or "", line)
            elif name in ("tab", "noBreakHyphen"):
                draft.text(" " if name == "tab" else "-", line)
            elif name in ("br", "cr"):
                draft.line_break(line)
            elif name in ("AlternateContent", "drawing", "pict") or element.tag.endswith("}AlternateContent"):
                self._drawing(element, draft, line)

    def _drawing(self, element: Any, draft: Draft, line: int) -> None:
        """Read the text of a text box, once: the fallback beside it holds the same."""
        for box in element.iter(f"{_W}txbxContent"):
            if not any(str(above.tag).endswith("}Fallback") for above in box.iterancestors()):
                for paragraph in box.iter(f"{_W}p"):
                    draft.line_break(line)
                    self._runs(paragraph, draft, line)

    # Fields: links, and the citations of reference managers.

    def _field(self, kind: str, draft: Draft, line: int) -> None:
        if kind == "begin":
            self._fields.append(_Field())
        elif kind == "separate" and self._fields:
            self._fields[-1].shows = True
            self._fields[-1].is_text = _is_text(self._fields[-1].instruction)
        elif kind == "end" and self._fields:
            self._end_field(self._fields.pop(), draft, line)

    def _collecting(self) -> _Field | None:
        """Return the field that keeps the text that is shown until it ends; None if the text is like any other."""
        return next((opened for opened in reversed(self._fields) if not opened.is_text), None)

    def _end_field(self, done: _Field, draft: Draft, line: int) -> None:
        shown = "".join(done.shown)
        if (outer := self._collecting()) is not None:
            outer.shown.append(shown)
        elif link := _HYPERLINK.search(done.instruction):
            draft.link(link[1], shown, line)
        elif keys := self._stored_works(done.instruction, shown):
            if self._in_notes:
                draft.text(shown, line)
            for key in keys:
                if self._in_notes:  # the note cites these works
                    draft.link(self._works[key].url, "", line)
                else:
                    draft.note(key, line)
        else:
            draft.text(shown, line)

    def _stored_works(self, instruction: str, shown: str) -> list[str]:
        """Return the keys of the works that Zotero, Mendeley or Word stored for a field; none if there are none."""
        if match := _CSL.search(instruction):
            try:
                items = json.loads(match[1]).get("citationItems", [])
                works = [{**item["itemData"], "id": str(item.get("id", number))} for number, item in enumerate(items)]
                entries = entries_of_csl(works, self._where)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
                return []
        else:
            tags = _CITATION.findall(instruction) if _is_citation(instruction) else []
            entries = [self._sources[tag] for tag in tags if tag in self._sources]
            entries = entries if len(entries) == len(tags) else []
        keys = []
        for entry in entries:
            name = entry.title.partition("). ")[0].replace(" (", ", ")[:80] or entry.mark
            key = name if len(entries) > 1 or not shown.strip("()[] ") else shown.strip("()[] ")[:80]
            while self._works.get(key, entry).title != entry.title:
                key += "*"
            self._works[key] = Reference(key, entry.title, entry.url, self._paragraph, entry.other_urls)
            keys.append(key)
        return keys


def _value(element: Any, path: str) -> str:
    found = element.find("/".join(f"{_W}{name}" for name in path.split("/")))
    return str(found.get(f"{_W}val", "")) if found is not None else ""


def _as_number(text: str, otherwise: int = 0) -> int:
    return int(text) if text.isdecimal() and len(text) <= 9 else otherwise


def _is_text(instruction: str) -> bool:
    """Return whether what a field shows is text, as a list of references or a cross-reference, and no link or citation."""
    return bool(instruction.strip()) and not (
        _HYPERLINK.search(instruction) or _CSL.search(instruction) or _is_citation(instruction)
    )


def _is_citation(instruction: str) -> bool:
    return instruction.lstrip().startswith("CITATION ")


def _note_name(kind: str, number: str) -> str:
    return number if kind == "footnote" else f"endnote {number}"
