"""The entries that marks name: definitions of links, footnotes, and the list of references at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nlp_retrieval.evidence.citations.blocks import MarkdownText, Piece, TextBlock
from nlp_retrieval.evidence.citations.citation import Reference
from nlp_retrieval.evidence.citations.marks import key_of, numbers_of

__all__ = ["References", "references_of"]

_LIST_NAMES = frozenset(
    "references reference sources bibliography citations footnotes endnotes literature links webliography "
    "literatur literaturverzeichnis quellen quellenverzeichnis quellenangaben einzelnachweise fußnoten referenzen "
    "références bibliographie referencias bibliografía bibliografia fuentes fonti riferimenti bronnen referenties källor "
    "источники литература 参考文献 参考资料 參考文獻 引用 出典".split()
)
_LIST_PHRASES = frozenset(("further reading", "works cited", "literature cited", "notes", "weiterführende literatur"))
_BESIDE = frozenset("and und et y e of list cited consulted further reading key all used main full notes the works".split())
_WORDS = re.compile(r"[^\W\d_]+")
_ENTRY = re.compile(
    r"\s*(?:[\[【]\^?([0-9]{1,9}|\^?[^\[\]【】\s]{1,40}?)\^?[\]】]:?|\(([0-9]{1,4})\)|([0-9]{1,4})[.)](?=\s))\s*"
)
_BRACKETED = re.compile(r"\s*[\[【]\^?[0-9]{1,9}\^?[\]】](:?)")
_LEAD = re.compile(
    r"[\s(\[<]*(?:\b(?:url|doi|link|available (?:at|from)|retrieved from|online|verfügbar unter)\b)?[\s:(<\[]*\Z", re.IGNORECASE
)
_AROUND = " \t.,:;|\"'\u2010\u2011\u2012\u2013\u2014-\u201c\u201d*"
_EMPTY = re.compile(r"[(\[<]\s*[)\]>]")


@dataclass
class References:
    """The entries of a report.

    Args:
        defined: definitions of links, by key.
        listed: entries of lists of references that have a mark, by key.
        notes: footnotes, by key.
        unmarked: entries of lists of references without a mark.
        duplicates: entries whose mark an earlier one of the same kind has.
        prose: blocks that are none of these.
    """

    defined: dict[str, Reference] = field(default_factory=dict)
    listed: dict[str, Reference] = field(default_factory=dict)
    notes: dict[str, Reference] = field(default_factory=dict)
    unmarked: list[Reference] = field(default_factory=list)
    duplicates: list[Reference] = field(default_factory=list)
    prose: list[TextBlock] = field(default_factory=list)

    def find(self, name: str, note: bool = False) -> Reference | None:
        """Return the entry that a mark names: of its own kind where there is one.

        Args:
            name: as written.
            note: whether the mark is a footnote's.
        """
        kinds = (self.notes, self.listed, self.defined) if note else (self.listed, self.defined, self.notes)
        found = [kind[key] for kind in kinds if (key := key_of(name)) in kind]
        return next((one for one in found if one.url), found[0] if found else None)

    def entries(self) -> Iterator[Reference]:
        """Yield every entry that counts, in the order of the report."""
        entries = [*self.defined.values(), *self.listed.values(), *self.notes.values(), *self.unmarked]
        yield from sorted(entries, key=lambda one: one.line)

    def add(self, kind: dict[str, Reference], entry: Reference) -> None:
        """Keep an entry; the first of a mark counts."""
        if kind.setdefault(key_of(entry.mark), entry) is not entry:
            self.duplicates.append(entry)


def references_of(report: MarkdownText) -> References:
    """Return the entries of a report, and what of it is left.

    Args:
        report: as it was parsed.
    """
    found = References()
    for one in report.definitions:
        found.add(found.defined, Reference(one.label, _title([one.title]), one.url, one.line))
    blocks = _without_notes(report.blocks, found)
    end = _before_closing_list(blocks)
    within = 0
    draft = _OpenEntry(found)
    for number, block in enumerate(blocks):
        if block.kind == "heading":
            named = _is_list_name(_plain(block.pieces[0]))
            within = block.level if named else within if 0 < within < block.level else 0
            if within:
                continue
        elif block.kind == "paragraph" and _is_list_name(_plain(_lines(block)[0][1]), alone=True):
            within = 7
            if len(_lines(block)) > 1:
                draft.read(block, _lines(block)[1:])
                continue
        elif (within or number >= end) and draft.read(block, _lines(block)):
            continue
        draft.close()
        found.prose.append(block)
    draft.close()
    return found


def _without_notes(blocks: Sequence[TextBlock], found: References) -> list[TextBlock]:
    kept: list[TextBlock] = []
    note: TextBlock | None = None
    pieces: list[Piece] = []
    for block in (*blocks, None):
        if block is not None and block.kind == "note" and block.pieces != [[]]:
            pieces += block.pieces[0]
            continue
        if note is not None:
            found.add(found.notes, _reference(note.name, pieces, note.line))
        note, pieces = (block, []) if block is not None and block.kind == "note" else (None, [])
        if block is not None and note is None:
            kept.append(block)
    return kept


def _before_closing_list(blocks: Sequence[TextBlock]) -> int:
    """Where a list of references without a heading begins: with the last blocks that are ``[n] ... URL`` or ``[n]: ...``."""
    end = len(blocks)
    while end and blocks[end - 1].kind in ("paragraph", "item") and _closes(blocks[end - 1]):
        end -= 1
    return end


def _closes(block: TextBlock) -> bool:
    found = _BRACKETED.match(_plain(block.pieces[0][:3]))
    return found is not None and (bool(found[1]) or any(_url(line) for _, line in _lines(block)))


class _OpenEntry:
    """An entry that may go on in the next line or block."""

    def __init__(self, found: References) -> None:
        self._found = found
        self._mark = ""
        self._line = 0
        self._depth = 0
        self._pieces: list[Piece] = []

    def read(self, block: TextBlock, lines: list[tuple[int, list[Piece]]]) -> bool:
        """Read the entries of a block; whether it holds any."""
        if block.kind == "row":
            return self._row(block)
        first = _ENTRY.match(_plain(lines[0][1][:3]))
        has_url = any(_url(pieces) for _, pieces in lines)
        goes_on = bool(self._pieces) and block.kind == "item" and (not block.name or block.level > self._depth)
        if goes_on and not self._depth and has_url and _url(self._pieces):
            goes_on = False
        if block.kind == "paragraph" and not first and not has_url:
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
        found = _ENTRY.match(_plain(pieces[:3]))
        if found and not (self._pieces and not _starts(found, pieces)):
            if self._pieces or self._mark:
                self._begin("", number, self._depth)
            self._mark, self._line = found[1] or found[2] or found[3], self._line or number
            pieces = _without_start(pieces, found.end())
        elif self._pieces and not self._mark and _url(self._pieces) and not self._depth:
            self._begin("", number, 0)
        self._line = self._line or number
        self._pieces += [*pieces, Piece("break", " ", number)]

    def _row(self, block: TextBlock) -> bool:
        cells = [_plain(cell).strip() for cell in block.pieces]
        pieces = [piece for cell in block.pieces for piece in (*cell, Piece("break", " ", block.line))]
        mark = numbers_of(cells[0].rstrip(".")) if cells else ""
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
        """Keep the entry that was begun."""
        if self._mark or _plain(self._pieces).strip() or _url(self._pieces):
            entry = _reference(self._mark, self._pieces, self._line)
            if entry.mark:
                self._found.add(self._found.listed, entry)
            else:
                self._found.unmarked.append(entry)
        self._mark, self._line, self._depth, self._pieces = "", 0, 0, []


def _starts(found: re.Match[str], pieces: Sequence[Piece]) -> bool:
    """Whether a later line begins an entry: a number with a full stop may as well be the year at the end of a title."""
    return bool(found[1] or found[2]) or (bool(pieces) and int(found[3]) < 1000)


def _is_list_name(text: str, alone: bool = False) -> bool:
    if len(text) > 80 or (alone and text.rstrip("* ").endswith((".", "?", "!"))):
        return False
    words = [word.casefold() for word in _WORDS.findall(text)]
    if " ".join(words) in _LIST_PHRASES:
        return not alone or len(words) > 1 or text.rstrip("* ").endswith(":")
    return 0 < len(words) <= 5 and any(word in _LIST_NAMES for word in words) and set(words) <= _LIST_NAMES | _BESIDE


def _lines(block: TextBlock) -> list[tuple[int, list[Piece]]]:
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
    texts = [piece.text.replace(url, " ") if url else piece.text for piece in pieces]
    linked = next((piece.title for piece in pieces if piece.url == url and piece.title), "")
    return Reference(mark.rstrip("^"), _title(texts) or _title([linked]), url, line)


def _title(texts: Sequence[str]) -> str:
    title = _EMPTY.sub("", " ".join("".join(texts).split())).rstrip()
    shorter = _LEAD.sub("", title[-200:])
    return (title[:-200] + shorter).strip(_AROUND)
