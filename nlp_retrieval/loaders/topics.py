"""Queries and their gold from files: TREC topics, CSV, TSV or JSON, with judgements in a file of their own.

**TREC topics** have many forms: tags that are never closed, XML, with attributes, in wrappers, with labels. One reader finds
where each field ends, with and without a closing tag. The names of tags and attributes are lower-cased, entities and CDATA are
decoded, markup in a text (``<i>``) is removed but its content kept, and elements of one name are joined by line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import JsonValue

from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.records import ID_NAMES, JsonObject, as_id, make_query, metadata_of, plain_name, quoted
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import OutputError, SourceError
from nlp_retrieval.loaders.files import read_json_lines, read_json_objects, read_lines
from nlp_retrieval.loaders.judgements import FileFormat, format_of, judged_queries, read_judgements
from nlp_retrieval.loaders.records import joined_text, missing_field
from nlp_retrieval.loaders.tables import Quote, read_cells, read_rows

_MOST_LINES = 1_000_000
_TAG = re.compile(
    r"(?P<comment><!--)|(?P<cdata><!\[CDATA\[)|(?P<instruction><\?)|(?P<declaration><![A-Za-z])"
    r"|<(?P<closes>/?)(?P<name>[A-Za-z][\w.-]{0,40})(?P<rest>(?:[\s/][^<>]*)?)>"
)
_ENDS = {
    "comment": re.compile("-->"),
    "cdata": re.compile("]]>"),
    "instruction": re.compile(r"\?>"),
    "declaration": re.compile(r"[^>\[]*+(?:\[[^\]]*+\]\s*+)?>"),
}
_ATTRIBUTE = re.compile(r"""([A-Za-z][\w.:-]{0,40})=(?:"([^"]*)"|'([^']*)'|([^\s"'=/]+))""")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LABELS = {
    "num": re.compile(r"(?:Number|Topic|Query)\s{0,9}:", re.IGNORECASE),
    "title": re.compile(r"(?:Topic|Title):", re.IGNORECASE),
    "desc": re.compile(r"Description:", re.IGNORECASE),
    "narr": re.compile(r"Narrative(?::|(?=\s{0,9}\n))", re.IGNORECASE),
    "dom": re.compile(r"Domain:", re.IGNORECASE),
    "smry": re.compile(r"Summary:", re.IGNORECASE),
    "con": re.compile(r"Concepts?(?:\(s\))?:", re.IGNORECASE),
    "fac": re.compile(r"Factors?(?:\(s\))?:", re.IGNORECASE),
    "def": re.compile(r"Definitions?(?:\(s\))?:", re.IGNORECASE),
}
"""Labels at the beginning of a text in TREC's classic form, by tag."""

_TOPICS = ("top", "topic", "inex_topic", "doc", "query", "question")
"""Tags around one topic; all topics of a file have the first one that occurs in it."""
_FIELDS = frozenset(
    "num number title desc description narr narrative query question text docno docid url head dom smry con fac def time nat "
    "querytime querytweettime subtopic identifier id background summary note".split()
)
_MARKUP = frozenset(
    "a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark q s samp small span strike strong sub sup tt u "
    "var".split()
)
"""Tags within a text that do not separate words."""
_IN_TEXT = _MARKUP | frozenset("br p div li ul ol hr table tr td th blockquote pre h1 h2 h3 h4".split())
"""Tags within a text that begin no field."""
_QUERY_ID_NAMES = (
    "query_id", "qid", "question_id", "topic_id", "topicid", "number", "num", "identifier", "topic", "docno",
    *ID_NAMES,
)  # fmt: skip
_TEXT_NAMES = ("text", "query", "question", "title", "claim", "query_text", "query_txt", "topic_title")
_TOPIC_TEXT_NAMES = ("title", "query", "question", "text", "raw_query", "raw")

_Fields = dict[str, list[list[str]]]
"""The texts of a topic, each in pieces, by the name of the tag or attribute."""


class TopicsLoader(BaseQueryLoader):
    """Queries from a file, and their gold from another: TREC topics with qrels, CSV, TSV or JSON.

    The suffix determines the form: ``.csv``, ``.tsv``, ``.jsonl``, ``.json`` (a list), anything else TREC's (the classic form
    with ``<top>``, or XML with ``<topic number="1">``), plain or gzip; a file without tags and with a tab in its first line is
    TSV, and one that begins with a brace JSON lines. Queries that are not judged are left out. A number with other leading
    zeros than in the judgements ("051" and "51") is matched with a warning. A field ``family`` is the query's family.

    Args:
        path: the file of queries.
        qrels: the file of judgements: TREC's four columns, or query, item and grade as CSV, TSV or JSON lines. None: there are
            none, and all queries are kept, for what needs no gold.
        format: the form of ``path``. None: by its suffix.
        qrels_format: the form of ``qrels``. None: by its suffix.
        id_field: the field that holds the id. None: the topic's number, in other forms ``id``, or another usual name that the
            first entry has (``query_id``, ``qid``, ``_id``).
        text_field: the field that holds the text, or several, joined by line ends. None: the topic's ``title``, in other forms
            ``text``, or another usual name that the first entry has (``query``, ``question``).
        columns: the names of the columns of a CSV or TSV file without a line of names. None: ``id`` and ``text``, if the file
            has two columns, and its first line none of the usual names and an id with a digit.
        quote: the quotation mark of cells in a CSV or TSV file. None: there is none, and a quotation mark is text. ``auto``:
            none in TSV, ``"`` in CSV.

    Examples:
        >>> loader = TopicsLoader("queries.tsv", "qrels.txt")
        >>> loader.queries()[0].text, loader.gold()[0].relevance
        ('who eats krill', {'whale': 1})
    """

    name = "topics"
    manifest_may_set = may_set(
        *("format", "qrels_format", "id_field", "text_field", "columns", "quote"), path=READS_FILE, qrels=READS_FILE
    )

    def __init__(
        self,
        path: str | Path,
        qrels: str | Path | None = None,
        format: FileFormat | None = None,  # noqa: A002 -- what users call it
        qrels_format: FileFormat | None = None,
        id_field: str | None = None,
        text_field: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        quote: Quote = "auto",
    ) -> None:
        self.path = path
        self.qrels = qrels
        self.format = format
        self.qrels_format = qrels_format
        self.id_field = id_field
        self.text_field = text_field
        self.columns = columns
        self.quote = quote

    def queries(self) -> list[Query]:
        """Return the queries that are judged, or all if there are no judgements, in the order of the file."""
        return self._judged()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order."""
        return self._judged()[1]

    def _judged(self) -> tuple[list[Query], list[Gold]]:
        if self.qrels is None:
            return [query for _, query in self.read()], []
        judgements = read_judgements(self.qrels, self.qrels_format)
        return judged_queries(self.path, self.read(), judgements, self.qrels)

    def read(self) -> Iterator[tuple[str, Query]]:
        """Yield all queries of the file, judged or not, each with its location.

        Raises:
            SourceError: the file is missing or malformed, or two queries have one id.
        """
        form = self._form()
        fields: tuple[str, str | Sequence[str]] | None = None
        locations: dict[str, str] = {}
        for location, row in self._rows(form):
            id_field, text_field = fields = fields or self._fields(form, row)
            if id_field not in row:
                raise missing_field(location, "id_field", id_field, row, _QUERY_ID_NAMES)
            query_id = as_id(location, id_field, row[id_field])
            if (other := locations.setdefault(query_id, location)) is not location:
                raise SourceError(
                    f'{location}: the id "{query_id}" in "{id_field}" is taken by {other}; ids must be unique: where another '
                    f"field holds them, pass id_field= (found: {quoted(row)})"
                )
            text = joined_text(location, row, text_field, "text_field", _TEXT_NAMES)
            used = [text_field] if isinstance(text_field, str) else text_field
            metadata = metadata_of(location, row, [id_field, *used])
            family = metadata.get("family")
            known = None if family in (None, "") else as_id(location, "family", family)
            yield location, make_query(location, query_id, text, known, metadata)

    def _form(self) -> FileFormat:
        """The form of the file of queries: given, by its suffix, or TSV if a file with another suffix begins like that."""
        form = format_of(self.path, self.format)
        if form == "trec" and self.format is None:
            first = next((line for _, line in read_lines(self.path) if line.strip()), "")
            if first.startswith("{"):
                return "jsonl"
            if "\t" in first.strip() and not first.lstrip().startswith("<"):
                return "tsv"
        return form

    def _fields(self, form: FileFormat, row: JsonObject) -> tuple[str, str | Sequence[str]]:
        """The fields of id and text: those that are given, or the usual names that the first entry has."""
        ids: Sequence[str] = ("id", *_QUERY_ID_NAMES)
        texts: Sequence[str] = _TEXT_NAMES
        id_field, text_field = self.id_field, self.text_field
        if form == "trec":  # names of tags are in lower case
            ids, texts = ("number", *_QUERY_ID_NAMES), _TOPIC_TEXT_NAMES
            if not any(name in row for name in texts):
                texts = (*(name for name in map(plain_name, row) if name.endswith("_title")), *texts)  # CLEF's <EN-title>
            id_field = id_field and id_field.lower()
            if text_field is not None:
                text_field = text_field.lower() if isinstance(text_field, str) else [name.lower() for name in text_field]
        plain = {plain_name(name): name for name in reversed(row)}
        return (
            id_field or next((plain[name] for name in ids if name in plain), ids[0]),
            text_field or next((plain[name] for name in texts if name in plain), texts[0]),
        )

    def _rows(self, form: FileFormat) -> Iterator[tuple[str, JsonObject]]:
        if form == "trec":
            return _topics(self.path)
        if form == "jsonl":
            return read_json_lines(self.path)
        if form == "json":
            return read_json_objects(self.path)
        quote = (None if form == "tsv" else '"') if self.quote == "auto" else self.quote
        delimiter = "\t" if form == "tsv" else None
        columns = self.columns
        if columns is None and self.id_field is None and self.text_field is None:
            _, first = next(read_cells(self.path, delimiter, quote, "utf-8"), (0, []))
            names = [cell.strip() for cell in first]
            while names and not names[-1]:
                names.pop()
            if names and {*map(plain_name, names)}.isdisjoint((*_QUERY_ID_NAMES, *_TEXT_NAMES)):
                if len(names) != 2 or not any(map(str.isdigit, names[0])):
                    raise SourceError(
                        f"{self.path}, line 1: no column has a usual name for the id or the text of a query (found: "
                        f"{quoted(names)}); pass id_field= and text_field=, or columns= where the file has no line of names"
                    )
                columns = ("id", "text")
        return read_rows(self.path, delimiter, quote, columns)


def write_queries(path: str | Path, queries: Iterable[Query]) -> None:
    """Write queries as JSON lines, which :class:`TopicsLoader` reads again: id, text, family if any, and metadata."""
    target = expanded(path)
    if target.suffix.lower() not in (".jsonl", ".ndjson"):
        raise OutputError(f"{path}: queries are written as JSON lines, so that they can be read again; call the file .jsonl")
    rows = [
        {"id": query.query_id, "text": query.text, **({"family": query.family} if query.family else {}), **query.metadata}
        for query in queries
    ]
    write_output(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace"))


def _topics(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    lines: list[str] = []
    for _, line in read_lines(path):
        lines.append(line)
        if len(lines) > _MOST_LINES:
            raise SourceError(f"{path}: more than {_MOST_LINES:,} lines; is this a file of TREC topics?")
    text = "\n".join(lines)
    tokens = list(_tokens(path, text))
    wanted = next((token.name for token in tokens if token.kind == "tag" and token.name in _TOPICS), None)
    if wanted is None:
        raise SourceError(
            f"{path}: it holds no TREC topics (<top> or <topic>); pass format= where it is csv, tsv, json or jsonl under "
            "another suffix, and write a tab between id and text where it is plain text"
        )
    for number, fields in _read_topics(path, text, tokens, wanted):
        yield f"{path}, line {number}", dict(_labelled(fields))


class _Token(NamedTuple):
    """The beginning of an element or its end, literal text (CDATA), or what is skipped (comments, declarations)."""

    kind: Literal["tag", "end", "text", "nothing"]
    name: str
    content: str
    """The attributes of a tag, or the text."""
    begin: int
    end: int


def _tokens(path: str | Path, text: str) -> Iterator[_Token]:
    """Yield the markup of a text; refuse one that declares entities."""
    at = 0
    never_ends: set[str] = set()
    while match := _TAG.search(text, at):
        begin, at, what = match.start(), match.end(), match.lastgroup or ""
        if what in _ENDS:
            find = _ENDS[what].match if what == "declaration" else _ENDS[what].search
            end = find(text, at) if what not in never_ends else None
            if end is None:  # text that only looks like markup
                never_ends.add(what)
                continue
            if what == "declaration" and "<!ENTITY" in text[begin : end.end()]:
                line = text.count("\n", 0, begin) + 1
                raise SourceError(f"{path}, line {line}: it declares XML entities, which are not read; remove them")
            yield _Token("text" if what == "cdata" else "nothing", "", text[at : end.start()], begin, end.end())
            at = end.end()
        else:
            yield _Token("end" if match["closes"] else "tag", match["name"].lower(), match["rest"], begin, at)


def _read_topics(path: str | Path, text: str, tokens: Sequence[_Token], wanted: str) -> Iterator[tuple[int, _Fields]]:
    """The topics of a text, with their lines: each from its tag to its end, or to the next such tag."""
    marks = [(number, token) for number, token in enumerate(tokens) if token.name == wanted and token.kind in ("tag", "end")]
    _, last = marks[-1]
    if last.kind == "tag" and not last.content.endswith("/") and any(mark.kind == "end" for _, mark in marks):
        line = text.count("\n", 0, last.begin) + 1
        raise SourceError(
            f"{path}, line {line}: <{wanted}> has no end: the file is cut off; fetch it again, or add </{wanted}>"
        )
    line, counted = 1, 0
    for (first, opening), (after, closing) in pairwise([*marks, (len(tokens), None)]):
        if opening is not None and opening.kind == "tag":
            line += text.count("\n", counted, opening.begin)
            counted = opening.begin
            yield line, _fields_of(text, tokens[first + 1 : after], opening, closing.begin if closing else len(text))


def _fields_of(text: str, tokens: Sequence[_Token], opening: _Token, stop: int) -> _Fields:
    """The fields of one topic: a field ends at its end tag, or, without one, where the next field begins."""
    ends = _ends_of(tokens)
    own: list[str] = []
    elements: _Fields = {}
    pieces, field, until, at = own, "", -1, opening.end
    for number, token in enumerate(tokens):
        pieces.append(_decoded(text[at : token.begin]))
        at = token.end
        gap = "" if token.name in _MARKUP else " "
        if token.kind == "text":
            pieces.append(token.content)
        elif token.kind == "end":
            if token.name == field and until in (number, -1):
                pieces, field, until = own, "", -1
            pieces.append(gap)
        elif token.kind == "tag" and until < 0 and _begins_field(text, token, field):
            own.append(" ")
            pieces, field, until = [], token.name, ends[number]
            elements.setdefault(field, []).append(pieces)
            if token.content.endswith("/"):
                pieces, field, until = own, "", -1
        elif token.kind == "tag":
            is_markup = ends[number] >= 0 or token.name in _IN_TEXT or token.content.endswith("/")
            pieces.append(gap if is_markup else text[token.begin : token.end])  # or text that only looks like a tag
    pieces.append(_decoded(text[at:stop]))
    attributes = {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(opening.content)}
    fields = {name: [[_decoded(value)]] for name, value in attributes.items()} | elements  # an element takes precedence
    if "".join(own).strip():  # outside of all elements
        fields.setdefault("text", []).append(own)
    return fields


def _ends_of(tokens: Sequence[_Token]) -> list[int]:
    """For each tag the position of its end tag, before which no other tag of its name begins; -1 if it has none."""
    ends = [-1] * len(tokens)
    following: dict[str, int] = {}
    for number in reversed(range(len(tokens))):
        token = tokens[number]
        if token.kind == "end":
            following[token.name] = number
        elif token.kind == "tag":
            ends[number] = following.pop(token.name, -1)
    return ends


def _begins_field(text: str, token: _Token, field: str) -> bool:
    """Return whether a tag begins a field of the topic; ``field`` is the one that is open and has no end, or empty."""
    if token.name in _IN_TEXT:
        return False
    if not field or token.name in _FIELDS or token.name.endswith(("-title", "-desc", "-narr")):
        return True
    _, line_end, same_line = text[max(0, token.begin - 100) : token.begin].rpartition("\n")
    return bool(line_end) and not same_line.strip()


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda match: unescape(match[0]), text) if "&" in text else text


def _labelled(fields: _Fields) -> Iterator[tuple[str, JsonValue]]:
    """The fields of a topic without labels and with single spaces; empty ones are left out, except those of the text."""
    for name, texts in fields.items():
        label = _LABELS.get("title" if name.endswith("-title") else name)
        read = []
        for text in ("".join(pieces).lstrip() for pieces in texts):
            match = label.match(text) if label else None
            read.append(" ".join((text[match.end() :] if match else text).split()))
        value = "\n".join(filter(None, read))
        if value or name in _TOPIC_TEXT_NAMES[:3]:
            yield "number" if name == "num" else name, value
