"""Queries and their gold from files: TREC topics, CSV, TSV or JSON lines, with judgements in a file of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from nlp_retrieval.core.components.interfaces import BaseQueryLoader
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.fields import field_of, has_field, joined_text, missing_field, without_fields
from nlp_retrieval.loaders.files import JsonObject, read_json_lines, read_lines
from nlp_retrieval.loaders.queries.judgements import FileFormat, format_of, judged_queries, read_judgements
from nlp_retrieval.loaders.records import ID_NAMES, as_id, make_query, metadata_of
from nlp_retrieval.loaders.tables.delimited import read_rows

__all__ = ["TopicsLoader"]

_MOST = 64 * 2**20
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,30})>")
_LABEL = re.compile(r"(?:Number|Topic|Description|Narrative):", re.IGNORECASE)
_QUERY_ID_NAMES = ("query_id", "qid", "number", "num", "topic", *ID_NAMES)
_TEXT_NAMES = ("text", "query", "question", "title", "claim")


class TopicsLoader(BaseQueryLoader):
    """Queries from a file, and their gold from another: TREC topics with qrels, CSV, TSV or JSON lines.

    The suffix says the form: ``.csv``, ``.tsv``, ``.jsonl``, anything else TREC's (the classic form with ``<top>``, or XML with
    ``<topic number="1">``), plain or gzip. Queries that are not judged are left out. A field ``family`` is the
    query's family.

    Args:
        path: the file of queries.
        qrels: the file of judgements: TREC's four columns, or query, item and grade as CSV, TSV or JSON lines.
        format: the form of ``path``. None: what its suffix says.
        qrels_format: the form of ``qrels``. None: what its suffix says.
        id_field: the field that holds the id. None: the topic's number, in other forms ``id``.
        text_field: the field that holds the text, or several, joined by line ends. None: the topic's ``title``, in other forms
            ``text``.
        columns: the names of the columns of a CSV or TSV file without a line of names.
    """

    name = "topics"

    def __init__(
        self,
        path: str | Path,
        qrels: str | Path,
        format: FileFormat | None = None,  # noqa: A002 -- what users call it
        qrels_format: FileFormat | None = None,
        id_field: str | None = None,
        text_field: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.qrels = qrels
        self.format = format
        self.qrels_format = qrels_format
        self.id_field = id_field
        self.text_field = text_field
        self.columns = columns

    def queries(self) -> list[Query]:
        """Return the queries that are judged, in the order of the file.

        Raises:
            SourceError: a file is missing or malformed, two queries have one id, or none is judged.
        """
        return self._judged()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order.

        Raises:
            SourceError: as :meth:`queries`.
        """
        return self._judged()[1]

    def _judged(self) -> tuple[list[Query], list[Gold]]:
        form = format_of(self.path, self.format)
        judgements = read_judgements(self.qrels, self.qrels_format)
        return judged_queries(self.path, self._read(form), judgements, self.qrels)

    def _read(self, form: FileFormat) -> Iterator[tuple[str, Query]]:
        id_field = self.id_field or ("number" if form == "trec" else "id")
        text_field = self.text_field or ("title" if form == "trec" else "text")
        used = [text_field] if isinstance(text_field, str) else text_field
        for place, row in self._rows(form):
            if not has_field(row, id_field):
                raise missing_field(place, "id_field", id_field, row, _QUERY_ID_NAMES)
            query_id = as_id(place, id_field, field_of(row, id_field))
            text = joined_text(place, row, text_field, "text_field", _TEXT_NAMES)
            metadata = metadata_of(place, without_fields(row, [id_field, *used]), ())
            family = metadata.get("family")
            known = None if family in (None, "") else as_id(place, "family", family)
            yield place, make_query(place, query_id, text, known, metadata)

    def _rows(self, form: FileFormat) -> Iterator[tuple[str, JsonObject]]:
        if form == "trec":
            return _topics(self.path)
        if form == "jsonl":
            return read_json_lines(self.path)
        return read_rows(self.path, "\t" if form == "tsv" else None, columns=self.columns)


def _topics(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    lines: list[str] = []
    size = 0
    for _, line in read_lines(path):
        lines.append(line)
        size += len(line) + 1
        if size > _MOST:
            raise SourceError(f"{path}: longer than {_MOST >> 20} MiB; is this a file of TREC topics?")
    text = "\n".join(lines)
    first = _TAG.search(text)
    topics = _classic(path, text) if first is not None and first.group(2).lower() == "top" else _xml(path, text)
    found = False
    for place, row in topics:
        found = True
        yield place, row
    if not found:
        raise SourceError(
            f"{path}: it holds no TREC topics (<top> or <topic>); "
            "pass format= where it is csv, tsv or jsonl under another suffix"
        )


def _classic(path: str | Path, text: str) -> Iterator[tuple[str, JsonObject]]:
    """Topics as TREC's first years have them: tags that are seldom closed, each field up to the next tag."""
    row: JsonObject | None = None
    line, counted, place = 1, 0, ""
    tags = list(_TAG.finditer(text))
    for tag, after in zip(tags, [*tags[1:], None], strict=True):
        closes, name = tag.group(1), tag.group(2).lower()
        if name == "top":
            if row:
                yield place, row
            line += text.count("\n", counted, tag.start())
            counted = tag.start()
            row, place = (None if closes else {}), f"{path}, line {line}"
        elif not closes and row is not None:
            content = " ".join(text[tag.end() : after.start() if after else len(text)].split())
            label = _LABEL.match(content)
            row["number" if name == "num" else name] = content[label.end() :].strip() if label else content
    if row:
        yield place, row


def _xml(path: str | Path, text: str) -> Iterator[tuple[str, JsonObject]]:
    """Topics as XML: attributes and elements of each ``topic`` are its fields, its own text is ``text``."""
    parser = expat.ParserCreate()
    rows: list[tuple[str, JsonObject]] = []
    inside: list[str] = []
    pieces: dict[str, list[str]] = {}

    def begin(name: str, attributes: dict[str, str]) -> None:
        if name.lower() == "topic" and not inside:
            pieces.clear()
            inside.append("text")
            rows.append((f"{path}, line {parser.CurrentLineNumber}", dict(attributes)))
        elif inside:
            inside.append(name)

    def end(_: str) -> None:
        if inside:
            inside.pop()
            if not inside:
                read = {name: " ".join("".join(parts).split()) for name, parts in pieces.items()}
                rows[-1][1].update({name: value for name, value in read.items() if value})

    def characters(data: str) -> None:
        if inside:
            pieces.setdefault(inside[min(1, len(inside) - 1)], []).append(data)

    def refuse(*_: Any) -> None:
        raise SourceError(f"{path}, line {parser.CurrentLineNumber}: it declares XML entities, which are not read; remove them")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, characters
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise SourceError(
            f"{path}, line {error.lineno}: neither TREC topics nor well-formed XML ({expat.ErrorString(error.code)}); "
            "correct it, or pass format= where it is csv, tsv or jsonl under another suffix"
        ) from None
    yield from rows
