"""Reading a DOCX through mammoth: its text with notes and links.

The accepted text is read: insertions count, deletions do not. Comments, headers and hidden text are left out, macros are never
run, and nothing outside the file is opened. mammoth gets only parts that were checked and written anew, in a child process.
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
from nlp_retrieval.documents.html import AT, document_of, parse_page
from nlp_retrieval.errors import SourceError

_LARGEST_PART = 100 * 2**20
_MOST_UNPACKED = 200  # times its packed size, of a part of more than ten million bytes; text has about ten
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# elements around text that mammoth reads, or leaves out; of any other one, what is in it is read
_READ = "document body footnotes footnote endnotes endnote p r t tbl tr tc hyperlink pict txbxContent del moveFrom".split()
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w{1,40})/")  # namespaces of the strict form of the format
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_SIGNS = {f"{_M}den": ("/", ""), f"{_M}sup": ("^", ""), f"{_M}rad": ("√", ""), f"{_M}nary": ("∫", ""), f"{_M}d": ("(", ")")}
_FIELD = re.compile(r'([^"]*)"(?:.*\\l\s+"([^"]+))?')  # the address of a field as mammoth gives it, with its switches
_LOOKS = ("strike", "dstrike", "vertAlign", "vanish")
_MAIN = "word/document.xml"
_STYLES_PART = "word/styles.xml"
_PARTS = (_MAIN, "word/footnotes.xml", "word/endnotes.xml", "word/numbering.xml")
_STYLE_MAP = "p[style-name='Title'] => h1:fresh\n" + "\n".join(
    f"p[style-name='{name}'] => blockquote > p:fresh" for name in ("Quote", "Intense Quote", "Block Text")
)
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
            packed, style_map=_STYLE_MAP, include_embedded_style_map=False, convert_image=lambda _: []
        ).value
    except (SourceError, MemoryError):
        raise
    except RecursionError:
        raise SourceError(f"{where}: its elements are nested too deeply; save it as plain text") from None
    except Exception as error:  # a damaged file can make mammoth raise any kind of error
        shown = f"{type(error).__name__}: {str(error)[:80]}"
        raise SourceError(f"{where}: it is no DOCX, or a damaged one ({shown}); save it again in a word processor") from None
    page = parse_page(f"<html><body>{html}</body></html>", where)
    for link in page.iter("a"):
        if field := _FIELD.match(link.get("href", "")):
            link.set("href", "#".join(filter(None, field.groups())))
    inner = (each for each in page.iter(*_PARAGRAPHS) if next(each.iterdescendants("p"), None) is None)
    for number, paragraph in enumerate(inner, start=1):
        paragraph.set(AT, str(number))
    for row in page.iter("tr"):
        row.set(AT, next((each.get(AT) for each in row.iter("p")), "1"))
    document = document_of(page, where)
    return replace(document, unit="paragraph", notes=[f"{where}: {what}: {n:,}" for what, n in (+left).items()])


def _rewritten(archive: ZipFile, where: str, left: Counter[str]) -> BytesIO:
    """Return a DOCX of the checked parts that hold text; count what is left out."""
    from lxml import etree

    names = set(archive.namelist())
    if _MAIN not in names:
        raise SourceError(f"{where}: a zip file without {_MAIN}, so no DOCX; save it as DOCX")
    styles = _xml(archive, _STYLES_PART, where) if _STYLES_PART in names else etree.Element(f"{_W}styles")
    for style in styles.iter(f"{_W}style"):
        style.set(f"{_W}type", style.get(f"{_W}type", "paragraph"))
        style.set(f"{_W}styleId", style.get(f"{_W}styleId", ""))  # mammoth needs both
    looks = {name: _inherited(styles, f"rPr/{_W}{name}") for name in _LOOKS}
    numbered = _inherited(styles, f"pPr/{_W}numPr")
    packed = BytesIO()
    with ZipFile(packed, "w") as rewritten:
        rewritten.writestr(_STYLES_PART, etree.tostring(styles))
        for name in (name for name in _PARTS if name in names):
            root = _xml(archive, name, where)
            left.update({what: sum(1 for _ in root.iter(*(_W + kind for kind in kinds))) for what, kinds in _COUNTED.items()})
            _simplify(root, looks, numbered, left)
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
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(_STRICT.sub(_USUAL, data), parser)
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


def _simplify(  # noqa: PLR0912 -- a loop for each kind of element
    root: Any, looks: Mapping[str, Mapping[str, Any]], numbered: Mapping[str, Any], left: Counter[str]
) -> None:
    """Write what mammoth does not read as what it reads, in place, such as what styles say; hidden text goes."""
    from lxml import etree
    from lxml.builder import ElementMaker

    for style in list(root.iter(f"{_W}pStyle")):
        number = numbered.get(style.get(f"{_W}val", ""))
        if number is not None and style.getparent().find(f"{_W}numPr") is None:
            style.getparent().append(deepcopy(number))
    for run in list(root.iter(f"{_W}r")):
        paragraph = next(run.iterancestors(f"{_W}p"), run)
        styles = (run.find(f"{_W}rPr/{_W}rStyle"), paragraph.find(f"{_W}pPr/{_W}pStyle"))
        keys = [style.get(f"{_W}val") for style in styles if style is not None]
        own = run.find(f"{_W}rPr")
        own = etree.SubElement(run, f"{_W}rPr") if own is None else own
        for name, given in looks.items():
            own.extend(deepcopy(given[key]) for key in keys if key in given and own.find(_W + name) is None)
        hidden = own.find(f"{_W}vanish")
        if hidden is not None and hidden.get(f"{_W}val", "1") not in ("0", "false", "off"):
            left["stretches of hidden text that were left out"] += 1
            run.getparent().remove(run)
    make, kind = ElementMaker(namespace=_W[1:-1]), f"{_W}fldCharType"
    for simple in root.iter(f"{_W}fldSimple"):
        instruction = make.instrText(simple.get(f"{_W}instr", ""))
        simple.insert(0, make.r(make.fldChar({kind: "begin"}), instruction, make.fldChar({kind: "separate"})))
        simple.append(make.r(make.fldChar({kind: "end"})))
    for spoken in root.iter(f"{_W}rt"):  # behind the word
        text = "".join(spoken.itertext())
        spoken.getparent().append(spoken)
        spoken[:] = [make.t(f" ({text})" if text else "")]
    for name, other in {"dstrike": "strike", "cr": "br", "drawing": "pict"}.items():
        for each in root.iter(_W + name):
            each.tag = _W + other
    for br in root.iter(f"{_W}br"):
        br.attrib.clear()
    shown = ElementMaker(namespace=_M[1:-1]).t
    for part in list(root.iter(*_SIGNS)):  # of a formula, which becomes a line of text: x = (1+y)/2
        own = {each.tag: each.get(f"{_M}val", "") for each in part.iterfind("*/*")}
        begin, end = _SIGNS[part.tag]
        part.insert(0, shown(own.get(f"{_M}begChr", own.get(f"{_M}chr", begin))))
        part.append(shown(own.get(f"{_M}endChr", end)))
        for other in part.findall(f"{_M}e")[1:]:
            other.insert(0, shown("|"))
    for formula in list(root.iter(f"{_M}oMath")):
        formula.getparent().replace(formula, make.r(make.t("".join(formula.itertext(f"{_M}t", with_tail=False)))))
    for sign in root.iter(f"{_W}sym"):
        if not 0xE000 <= (code := int(sign.get(f"{_W}char", "F000"), 16)) < 0xF900:  # not of a font of symbols
            sign.tag, sign.text = f"{_W}t", chr(code)
    for fallback in list(root.iter(f"{_MC}Fallback")):
        if next(fallback.iter(f"{_W}t"), None) is not None:
            fallback.getparent()[:] = [fallback]
    around = {each.tag for text in root.iter(f"{_W}r", f"{_W}t") for each in text.iterancestors()}
    etree.strip_tags(root, *around - {_W + name for name in _READ})
