"""Reading a DOCX through mammoth: its text with notes, links, and the citations that Zotero, Mendeley or Word stored.

The accepted text is read: insertions count, deletions do not. Comments, headers and hidden text are left out, macros are never
run, and nothing outside the file is opened. mammoth gets only parts that were checked and written anew. It is for a child
process with limits, since a DOCX may come from anyone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

from nlp_retrieval.documents.bibliography import as_doi, entries_of_csl, entry_of
from nlp_retrieval.documents.blocks import Document, Reference, has_text
from nlp_retrieval.documents.html import MARK, TEXT, document_of, parse_page
from nlp_retrieval.errors import InputError, SourceError
from nlp_retrieval.loaders import READ_ERRORS

_DAMAGED = (*READ_ERRORS, BadZipFile, NotImplementedError, SyntaxError, ValueError, LookupError, AttributeError, TypeError)
_LARGEST_PART = 100 * 2**20
_MOST_STORES = 100
_MOST_STYLES = 20
_MOST_UNPACKED = 200
"""Times its packed size that a part of more than ten million bytes may have; text has about ten."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_B = "{http://schemas.openxmlformats.org/officeDocument/2006/bibliography}"
_OFFICE = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STRICT = {
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": _W[1:-1].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": _OFFICE,
}
"""Namespaces of the strict form of the format, and those of the usual one."""

_CSL = re.compile(r"CSL_CITATION\s{0,9}(\{.*)", re.DOTALL)
_CITATION = re.compile(r"(?:\A\s*CITATION|\\m)\s{1,9}([^\s\\]{1,100})")
_STORE = re.compile(r"customXml/item[0-9]{1,4}\.xml")
_WORKS = "work:"
"""Begins the address of a link that stands for works, by their keys."""

_STYLE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,100}")
_MAIN, _STYLES_PART = "word/document.xml", "word/styles.xml"
_PARTS = (_MAIN, "word/footnotes.xml", "word/endnotes.xml", "word/numbering.xml")
_STYLES = ["p[style-name='Title'] => h1:fresh"]
_STYLES += [f"p[style-name='{name}'] => blockquote > p:fresh" for name in ("Quote", "Intense Quote", "Block Text")]


def read_docx(data: bytes, where: str) -> Document:
    """Return the text of a DOCX; its lines are paragraphs.

    Raises:
        SourceError: it is no DOCX, encrypted, damaged, unpacks to far more than a document, declares a DTD, or has no text.
    """
    import mammoth

    try:
        with ZipFile(BytesIO(data)) as archive:
            parts = _Parts(archive, where)
            packed, styles = parts.rewritten()
        html = mammoth.convert_to_html(
            packed, style_map="\n".join(styles), include_embedded_style_map=False, convert_image=lambda _: []
        ).value
    except SourceError:
        raise
    except RecursionError:
        raise SourceError(f"{where}: its elements are nested too deeply; save it as plain text") from None
    except _DAMAGED as error:
        shown = f"{type(error).__name__}: {str(error)[:80]}"
        raise SourceError(f"{where}: it is no DOCX, or a damaged one ({shown}); save it again in a word processor") from None
    page = parse_page(f"<html><body>{html}</body></html>", where)
    paragraphs = page.iter("p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "tr")
    inner = [each for each in paragraphs if next(each.iterdescendants("p"), None) is None]
    for number, paragraph in enumerate(inner, start=1):
        for element in paragraph.iter():
            element.sourceline = number
    for row in page.iter("tr"):
        row.sourceline = next((each.sourceline for each in row.iter("p")), 1)
    parts.mark(page)
    document = document_of(page, where)
    if not has_text(document.blocks):
        raise SourceError(f"{where}: the DOCX has no text; if it holds scans, recognise their text first")
    return replace(document, unit="paragraph", works=list(dict.fromkeys(parts.works.values())), notes=parts.notes())


class _Parts:
    """The parts of a DOCX that hold text."""

    def __init__(self, archive: ZipFile, where: str) -> None:
        self._archive, self._where = archive, where
        self._names = set(archive.namelist())
        self._left: Counter[str] = Counter()
        self._stored: dict[str, Reference] = {}
        self.works: dict[str, Reference] = {}
        """Works that are cited, by the keys in the addresses of links."""

    def rewritten(self) -> tuple[BytesIO, list[str]]:
        """Return a DOCX of the checked parts, in which a link stands for each stored citation, and mammoth's rules for it."""
        if _MAIN not in self._names:
            cure = "it is an OpenDocument text; save it as DOCX" if "content.xml" in self._names else "save it as DOCX"
            raise SourceError(f"{self._where}: a zip file without {_MAIN}, so no DOCX; {cure}")
        from lxml import etree

        self._stored = self._read_sources()
        packed = BytesIO()
        styles = self._xml(_STYLES_PART) if _STYLES_PART in self._names else etree.Element(f"{_W}styles")
        for style in styles.iter(f"{_W}style"):
            style.set(f"{_W}type", style.get(f"{_W}type", "paragraph"))
        numbered = _inherited(styles, f"{_W}pPr/{_W}numPr")
        aligned = _inherited(styles, f"{_W}rPr/{_W}vertAlign")
        raised = [key for key, align in aligned.items() if align.get(f"{_W}val") == "superscript" and _STYLE_ID.fullmatch(key)]
        with ZipFile(packed, "w") as rewritten:
            rewritten.writestr(_STYLES_PART, etree.tostring(styles))
            for name in (name for name in _PARTS if name in self._names):
                root = self._xml(name)
                self._simplify(root, numbered)
                rewritten.writestr(name, etree.tostring(root))
                links = f"word/_rels/{name.removeprefix('word/')}.rels"
                if links in self._names:
                    rewritten.writestr(links, etree.tostring(self._xml(links)))
        return packed, [*_STYLES, *(f"r.{key} => sup" for key in raised)]

    def _xml(self, name: str) -> Any:
        """Return a part of the file, unless it is a bomb, or its XML declares anything."""
        from lxml import etree

        info = self._archive.getinfo(name)
        if info.flag_bits & 1:
            raise SourceError(f"{self._where}: the DOCX is encrypted; save it without a password")
        is_bomb = info.file_size > 10_000_000 and info.file_size > _MOST_UNPACKED * max(info.compress_size, 1)
        with self._archive.open(name) as part:
            data = b"" if is_bomb else part.read(_LARGEST_PART + 1)
        if is_bomb or len(data) > _LARGEST_PART:
            raise SourceError(
                f"{self._where}: {name} unpacks from {info.compress_size:,} to {info.file_size:,} bytes, far more than a "
                "document; omit it"
            )
        for strict, usual in _STRICT.items():
            data = data.replace(strict, usual)
        # before parsing: nothing that a DTD says should be worked on
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise SourceError(f"{self._where}: {name} declares a document type, which no DOCX does; save it again, or omit it")
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
        )
        root = etree.fromstring(data, parser)
        if root.getroottree().docinfo.doctype:
            raise SourceError(f"{self._where}: {name} declares a document type, which no DOCX does; save it again, or omit it")
        return root

    def _read_sources(self) -> dict[str, Reference]:
        """Return the works that Word's own citations name, by their tags."""
        from lxml import etree

        sources: dict[str, Reference] = {}
        for name in sorted(filter(_STORE.fullmatch, self._names))[:_MOST_STORES]:
            try:
                root = self._xml(name)
            except (SourceError, etree.XMLSyntaxError):  # of another program, or damaged; the text can be read without it
                continue
            for work in root.iter(f"{_B}Source"):
                fields = {child.tag.removeprefix(_B): (child.text or "").strip() for child in work}
                people = work.findall(f"{_B}Author/{_B}Author//{_B}Last") or work.findall(
                    f"{_B}Author/{_B}Author/{_B}Corporate"
                )
                surnames = list(filter(None, ((person.text or "").strip() for person in people)))
                tag, title = fields.get("Tag", ""), fields.get("Title", "")
                addresses = [as_doi(fields.get("DOI", "")), fields.get("URL", "")]
                sources[tag] = entry_of(tag, surnames, fields.get("Year", ""), title, addresses, 1)
        return sources

    def _simplify(self, root: Any, numbered: Mapping[str, Any]) -> None:
        """Remove hidden text, number paragraphs as their styles say, and make stored citations links, in place."""
        for properties in root.iter(f"{_W}pPr"):
            style = properties.find(f"{_W}pStyle")
            number = numbered.get(style.get(f"{_W}val", "")) if style is not None else None
            if number is not None and properties.find(f"{_W}numPr") is None:
                properties.append(deepcopy(number))
        for run in list(root.iter(f"{_W}r")):
            if run.find(f"{_W}rPr/{_W}vanish") is not None:
                self._left["hidden"] += 1
                run.getparent().remove(run)
            elif (twice := run.find(f"{_W}rPr/{_W}dstrike")) is not None:
                twice.tag = f"{_W}strike"
        self._left["comments"] += sum(1 for _ in root.iter(f"{_W}commentReference"))
        self._left["inserted"] += sum(1 for each in root.iter(f"{_W}ins", f"{_W}moveTo") if len(each))
        self._left["deleted"] += sum(1 for _ in root.iter(f"{_W}del", f"{_W}moveFrom"))
        for simple in root.iter(f"{_W}fldSimple"):
            shown = "".join(text.text or "" for text in simple.iter(f"{_W}t"))
            if link := self._link(simple.get(f"{_W}instr", ""), shown):
                simple.set(f"{_W}instr", link)
        for instructions, shown in _fields(root):
            if link := self._link("".join(part.text or "" for part in instructions), shown):
                for part in instructions:
                    part.text = ""
                instructions[0].text = link

    def _link(self, instruction: str, shown: str) -> str:
        """Return the instruction of a link to the works that Zotero, Mendeley or Word stored for a field; empty for none."""
        entries: list[Reference] = []
        if match := _CSL.search(instruction):
            try:
                items = json.loads(match[1]).get("citationItems", [])
                works = [{**item["itemData"], "id": str(item.get("id", number))} for number, item in enumerate(items)]
                entries = entries_of_csl(works, self._where)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError, InputError):
                return ""
        elif instruction.lstrip().startswith("CITATION "):
            tags = _CITATION.findall(instruction)
            entries = [self._stored[tag] for tag in tags] if self._stored.keys() >= set(tags) else []
        keys = [self._key(entry, shown, alone=len(entries) == 1) for entry in entries]
        return f'HYPERLINK "{_WORKS}{" ".join(keys)}"' if keys else ""

    def _key(self, entry: Reference, shown: str, *, alone: bool) -> str:
        """Keep a work under a name that a person recognises; return its key in links."""
        name = entry.title.partition("). ")[0].replace(" (", ", ")[:80] or entry.mark
        mark = (shown.strip("()[] ")[:80] if alone else "") or name
        while any(work.mark == mark and work.title != entry.title for work in self.works.values()):
            mark += "*"
        key = str(len(self.works))
        self.works[key] = replace(entry, mark=mark)
        return key

    def mark(self, page: Any) -> None:
        """Put marks of works in the place of the links that stand for them; a note has their addresses behind its text."""
        for link in list(page.iter("a")):
            keys = (link.get("href") or "").partition(_WORKS)[2].split()
            in_note = any((item.get("id") or "").startswith(("footnote-", "endnote-")) for item in link.iterancestors("li"))
            if keys:
                link.tag = TEXT
            if keys and not in_note:
                link[:], link.text = [], None
            for work in (self.works[key] for key in keys):
                added = link.makeelement("a", href=work.url) if in_note else link.makeelement(MARK, name=work.mark)
                added.text, added.sourceline = work.url if in_note else None, link.sourceline
                link.append(added)

    def notes(self) -> list[str]:
        """Return what to say of how the text was read."""
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
        return notes


def _fields(root: Any) -> Iterator[tuple[list[Any], str]]:
    """Yield the elements with the instruction of each field that ends, and the text that it shows; a field may hold others."""
    opened: list[tuple[list[Any], list[str]]] = []
    for element in root.iter(f"{_W}fldChar", f"{_W}instrText", f"{_W}t"):
        kind = element.get(f"{_W}fldCharType")
        if kind == "begin":
            opened.append(([], []))
        elif opened and kind == "end":
            instructions, shown = opened.pop()
            if instructions:
                yield instructions, "".join(shown)
        elif opened and element.tag == f"{_W}instrText":
            opened[-1][0].append(element)
        elif element.tag == f"{_W}t":
            for _, texts in opened:
                texts.append(element.text or "")


def _inherited(styles: Any, path: str) -> dict[str, Any]:
    """Return a setting of each style that has it, itself or by the styles that it is based on."""
    by_key = {style.get(f"{_W}styleId", ""): style for style in styles.iter(f"{_W}style")}
    found: dict[str, Any] = {}
    for key, own in by_key.items():
        style, steps = own, 0
        while style is not None and style.find(path) is None and steps < _MOST_STYLES:
            above = style.find(f"{_W}basedOn")
            style, steps = by_key.get(above.get(f"{_W}val", "")) if above is not None else None, steps + 1
        if style is not None and (setting := style.find(path)) is not None:
            found[key] = setting
    return found
