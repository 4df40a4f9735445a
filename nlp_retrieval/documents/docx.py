"""Reading a DOCX through mammoth: its text with notes and links.

The accepted text is read: insertions count, deletions do not. Comments, headers and hidden text are left out, macros are never
run, and nothing outside the file is opened. mammoth gets only parts that were checked and written anew. It is for a child
process with limits, since a DOCX may come from anyone.
"""

from __future__ import annotations

from collections import Counter
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

_MAIN = "word/document.xml"
_PARTS = ("word/styles.xml", _MAIN, "word/footnotes.xml", "word/endnotes.xml", "word/numbering.xml")
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
            packed = _rewritten(archive, where, left)
        html = mammoth.convert_to_html(
            packed, style_map="\n".join(_STYLES), include_embedded_style_map=False, convert_image=lambda _: []
        ).value
    except (SourceError, MemoryError):
        raise
    except RecursionError:
        raise SourceError(f"{where}: its elements are nested too deeply; save it as plain text") from None
    except Exception as error:  # a damaged file can make mammoth raise any kind of error
        shown = f"{type(error).__name__}: {str(error)[:80]}"
        raise SourceError(f"{where}: it is no DOCX, or a damaged one ({shown}); save it again in a word processor") from None
    page = parse_page(f"<html><body>{html}</body></html>", where)
    for link in page.xpath("//a[@href]"):
        link.set("href", link.get("href").partition('"')[0])  # mammoth takes the tip of a field that is a link for its address
    inner = [each for each in page.iter(*_PARAGRAPHS) if next(each.iterdescendants("p"), None) is None]
    for number, paragraph in enumerate(inner, start=1):
        paragraph.set(AT, str(number))
    for row in page.iter("tr"):
        row.set(AT, next((each.get(AT) for each in row.iter("p")), "1"))
    document = document_of(with_lines(page), where)
    return replace(document, unit="paragraph", notes=[f"{where}: {what}: {n:,}" for what, n in left.items()])


def _rewritten(archive: ZipFile, where: str, left: Counter[str]) -> BytesIO:
    """Return a DOCX of the checked parts that hold text; count what is left out."""
    from lxml import etree

    names = set(archive.namelist())
    if _MAIN not in names:
        raise SourceError(f"{where}: a zip file without {_MAIN}, so no DOCX; save it as DOCX")
    hidden = set[str]()
    packed = BytesIO()
    with ZipFile(packed, "w") as rewritten:
        for name in (name for name in _PARTS if name in names):
            root = _xml(archive, name, where)
            styles = (style for style in root.iter(f"{_W}style") if _is_on(style.find(f"{_W}rPr/{_W}vanish")))
            hidden |= {style.get(f"{_W}styleId", "") for style in styles}
            _simplify(root, hidden, left)
            rewritten.writestr(name, etree.tostring(root))
            links = f"word/_rels/{name.removeprefix('word/')}.rels"
            if links in names:
                rewritten.writestr(links, etree.tostring(_xml(archive, links, where)))
    return packed


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


def _simplify(root: Any, hidden: set[str], left: Counter[str]) -> None:
    """Write what mammoth does not read as what it reads, in place; hidden text goes."""
    from lxml import etree

    for run in list(root.iter(f"{_W}r")):
        own, style = run.find(f"{_W}rPr/{_W}vanish"), run.find(f"{_W}rPr/{_W}rStyle")
        if _is_on(own) if own is not None else style is not None and style.get(f"{_W}val") in hidden:
            left["stretches of hidden text that were left out"] += 1
            run.getparent().remove(run)
    etree.strip_elements(root, f"{_W}rt", with_tail=False)
    etree.strip_tags(root, f"{_W}ruby", f"{_W}rubyBase", f"{_W}fldSimple", f"{_M}oMathPara")
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


def _is_on(setting: Any) -> bool:
    return setting is not None and setting.get(f"{_W}val", "1") not in ("0", "false", "off")
