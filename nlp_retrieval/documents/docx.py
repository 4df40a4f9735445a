"""Reading a DOCX through mammoth: its text with notes and links.

The accepted text is read: insertions count, deletions do not. Comments, headers and hidden text are left out, macros are never
run, and nothing outside the file is opened. mammoth gets only parts that were checked and written anew. It is for a child
process with limits, since a DOCX may come from anyone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from nlp_retrieval.documents.blocks import Document
from nlp_retrieval.documents.html import AT, document_of, parse_page, with_lines
from nlp_retrieval.errors import SourceError

_LARGEST_PART = 100 * 2**20
_MOST_UNPACKED = 200  # times its packed size, of a part of more than ten million bytes; text has about ten
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SIGNS = {f"{_M}den": "/", f"{_M}sup": "^"}  # in a formula that becomes a line of text: x = 1/2
_STRICT = {
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": _W[1:-1].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/math": _M[1:-1].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": (
        b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    ),
}
"""Namespaces of the strict form of the format, and those of the usual one."""

_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,4000})"(?:[^"]{0,20}\\l\s+"([^"]{1,400})")?')
_STYLE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,100}")
_MAIN = "word/document.xml"
_STYLES_PART = "word/styles.xml"
_PARTS = (_MAIN, "word/footnotes.xml", "word/endnotes.xml", "word/numbering.xml")
_STYLES = ["p[style-name='Title'] => h1:fresh"]
_STYLES += [f"p[style-name='{name}'] => blockquote > p:fresh" for name in ("Quote", "Intense Quote", "Block Text")]
_PARAGRAPHS = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "tr")
_COUNTED = {
    "comments that were left out": ("commentReference",),
    "tracked insertions that were read as if accepted": ("ins", "moveTo"),
    "tracked deletions that were left out": ("del", "moveFrom"),
}


def read_docx(data: bytes, where: str) -> Document:
    """Return the text of a DOCX; its lines are paragraphs."""
    import mammoth

    left: Counter[str] = Counter()
    try:
        with ZipFile(BytesIO(data)) as archive:
            packed, styles = _rewritten(archive, where, left)
        html = mammoth.convert_to_html(
            packed, style_map="\n".join(styles), include_embedded_style_map=False, convert_image=lambda _: []
        ).value
    except (SourceError, MemoryError):
        raise
    except RecursionError:
        raise SourceError(f"{where}: its elements are nested too deeply; save it as plain text") from None
    except Exception as error:  # a damaged file can make mammoth raise any kind of error
        shown = f"{type(error).__name__}: {str(error)[:80]}"
        raise SourceError(f"{where}: it is no DOCX, or a damaged one ({shown}); save it again in a word processor") from None
    page = parse_page(f"<html><body>{html}</body></html>", where)
    inner = [each for each in page.iter(*_PARAGRAPHS) if next(each.iterdescendants("p"), None) is None]
    for number, paragraph in enumerate(inner, start=1):
        paragraph.set(AT, str(number))
    for row in page.iter("tr"):
        row.set(AT, next((each.get(AT) for each in row.iter("p")), "1"))
    document = document_of(with_lines(page), where)
    return replace(document, unit="paragraph", notes=[f"{where}: {what}: {n:,}" for what, n in left.items()])


def _rewritten(archive: ZipFile, where: str, left: Counter[str]) -> tuple[BytesIO, list[str]]:
    """Return a DOCX of the checked parts that hold text, and mammoth's rules for it; count what is left out."""
    from lxml import etree

    names = set(archive.namelist())
    if _MAIN not in names:
        raise SourceError(f"{where}: a zip file without {_MAIN}, so no DOCX; save it as DOCX")
    styles = _xml(archive, _STYLES_PART, where) if _STYLES_PART in names else etree.Element(f"{_W}styles")
    for style in styles.iter(f"{_W}style"):
        style.set(f"{_W}type", style.get(f"{_W}type", "paragraph"))
        style.set(f"{_W}styleId", style.get(f"{_W}styleId", ""))  # mammoth needs both
    looks = {
        (key, "s") for name in ("strike", "dstrike") for key, on in _inherited(styles, f"rPr/{_W}{name}").items() if _is_on(on)
    }
    raised = _inherited(styles, f"rPr/{_W}vertAlign").items()
    looks |= {(key, "sup") for key, align in raised if align.get(f"{_W}val") == "superscript"}
    hidden = {key for key, on in _inherited(styles, f"rPr/{_W}vanish").items() if _is_on(on)}
    numbered = _inherited(styles, f"pPr/{_W}numPr")
    packed = BytesIO()
    with ZipFile(packed, "w") as rewritten:
        rewritten.writestr(_STYLES_PART, etree.tostring(styles))
        for name in (name for name in _PARTS if name in names):
            root = _xml(archive, name, where)
            _simplify(root, numbered, hidden, left)
            rewritten.writestr(name, etree.tostring(root))
            links = f"word/_rels/{name.removeprefix('word/')}.rels"
            if links in names:
                rewritten.writestr(links, etree.tostring(_xml(archive, links, where)))
    return packed, [*_STYLES, *(f"r.{key} => {tag}" for key, tag in sorted(looks) if _STYLE_ID.fullmatch(key))]


def _xml(archive: ZipFile, name: str, where: str) -> Any:
    """Return a part of the file, unless it is a bomb, or its XML declares anything."""
    from lxml import etree

    info = archive.getinfo(name)
    if info.flag_bits & 1:
        raise SourceError(f"{where}: the DOCX is encrypted; save it without a password")
    is_bomb = info.file_size > 10_000_000 and info.file_size > _MOST_UNPACKED * max(info.compress_size, 1)
    with archive.open(name) as part:
        data = b"" if is_bomb else part.read(_LARGEST_PART + 1)
    if is_bomb or len(data) > _LARGEST_PART:
        sizes = f"{info.compress_size:,} to {info.file_size:,} bytes"
        raise SourceError(f"{where}: {name} unpacks from {sizes}, far more than a document; omit it")
    for strict, usual in _STRICT.items():
        data = data.replace(strict, usual)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(data, parser)
    if root.getroottree().docinfo.doctype:
        raise SourceError(f"{where}: {name} declares a document type, which no DOCX does; save it again, or omit it")
    return root


def _inherited(styles: Any, path: str) -> dict[str, Any]:
    """Return a setting of each style that has it, itself or by the styles that it is based on."""
    by_key = {style.get(f"{_W}styleId"): style for style in styles.iter(f"{_W}style")}
    based = {key: on.get(f"{_W}val") for key, style in by_key.items() if (on := style.find(f"{_W}basedOn")) is not None}
    values = {key: own for key, style in by_key.items() if (own := style.find(_W + path)) is not None}
    while more := {key: values[on] for key, on in based.items() if on in values and key not in values}:
        values |= more
    return values


def _simplify(root: Any, numbered: Mapping[str, Any], hidden: set[str], left: Counter[str]) -> None:
    """Write what mammoth does not read as what it reads, in place; hidden text goes."""
    from lxml import etree

    for style in list(root.iter(f"{_W}pStyle")):
        number = numbered.get(style.get(f"{_W}val", ""))
        if number is not None and style.getparent().find(f"{_W}numPr") is None:
            style.getparent().append(deepcopy(number))
    for run in list(root.iter(f"{_W}r")):
        paragraph, own = next(run.iterancestors(f"{_W}p"), None), run.find(f"{_W}rPr/{_W}vanish")
        styles = [run.find(f"{_W}rPr/{_W}rStyle"), paragraph.find(f"{_W}pPr/{_W}pStyle") if paragraph is not None else None]
        if _is_on(own) if own is not None else hidden & {style.get(f"{_W}val") for style in styles if style is not None}:
            left["stretches of hidden text that were left out"] += 1
            run.getparent().remove(run)
    for simple in list(root.iter(f"{_W}fldSimple")):
        begin, instruction, separate, end = (etree.Element(f"{_W}r") for _ in range(4))
        for run, kind in ((begin, "begin"), (separate, "separate"), (end, "end")):
            etree.SubElement(run, f"{_W}fldChar").set(f"{_W}fldCharType", kind)
        etree.SubElement(instruction, f"{_W}instrText").text = simple.get(f"{_W}instr")
        around, at = simple.getparent(), simple.getparent().index(simple)
        around[at : at + 1] = [begin, instruction, separate, *simple, end]
    _clean_links(root)
    for spoken in root.iter(f"{_W}rt"):  # behind the word
        text = "".join(spoken.itertext())
        spoken.getparent().append(spoken)
        spoken[:] = []
        etree.SubElement(spoken, f"{_W}t").text = f" ({text})" if text else ""
    etree.strip_tags(root, f"{_W}ruby", f"{_W}rubyBase", f"{_W}rt", f"{_M}oMathPara")
    for twice in root.iter(f"{_W}dstrike"):
        twice.tag = f"{_W}strike"
    for br in root.iter(f"{_W}br", f"{_W}cr"):
        br.tag = f"{_W}br"
        br.attrib.clear()
    for formula in list(root.iter(f"{_M}oMath")):
        run = etree.Element(f"{_W}r")
        parts = ((part.text or "") if part.tag == f"{_M}t" else _SIGNS.get(part.tag, "") for part in formula.iter())
        etree.SubElement(run, f"{_W}t").text = "".join(parts)
        formula.getparent().replace(formula, run)
    for what, names in _COUNTED.items():
        if n := sum(1 for _ in root.iter(*(_W + name for name in names))):
            left[what] += n


def _clean_links(root: Any) -> None:
    """Leave of the instruction of a field that is a link its address alone, without a tip or a frame."""
    parts: list[Any] = []
    for element in root.iter(f"{_W}fldChar", f"{_W}instrText"):
        if element.tag == f"{_W}instrText":
            parts.append(element)
        else:
            if link := _LINK.match("".join(part.text or "" for part in parts)):
                for part in parts:
                    part.text = ""
                parts[0].text = f'HYPERLINK "{link[1]}{"#" + link[2] if link[2] else ""}"'
            parts = []


def _is_on(setting: Any) -> bool:
    return setting is not None and setting.get(f"{_W}val", "1") not in ("0", "false", "off")
