"""Queries and their gold from files: TREC topics, CSV, TSV or JSON, with judgements in a file of their own.

**TREC topics** have many forms: tags that are never closed, XML, with attributes, in wrappers, with labels. One reader finds
where each field ends, with and without a closing tag. The names of tags and attributes are lower-cased, entities and CDATA are
decoded, markup in a text (``<i>``) is removed but its content kept, and elements of one name are joined by line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape, unescape
from itertools import islice, pairwise
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.records import ID_NAMES, JsonObject, as_id, make_query, metadata_of, plain_name, quoted
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import OutputError, SourceError
from nlp_retrieval.loaders.files import read_json_file_of_records, read_lines
from nlp_retrieval.loaders.judgements import FileFormat, format_of, judged_queries, read_judgements
from nlp_retrieval.loaders.records import joined_text, missing_field
from nlp_retrieval.loaders.tables import read_cells, read_rows

_MOST_LINES = 1_000_000
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>[A-Za-z][\w.-]{0,40})(?P<rest>(?:[\s/][^<>]*)?)>")
_DECLARATION = re.compile(r"<![A-Za-z][^>\[]{0,2000}+(?:\[[^\]]{0,2000}+\]\s{0,99}+)?>")
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
_TOPIC_TEXT_NAMES = ("title", "query", "question", "text", "raw_query", "raw", "content")

_Fields = dict[str, list[list[str]]]
"""The texts of a topic, each in pieces, by the name of the tag or attribute."""


class TopicsLoader(BaseQueryLoader):
    """Queries from a file, and their gold from another: TREC topics with qrels, CSV, TSV or JSON.

    The suffix determines the form: ``.csv``, ``.tsv``, ``.jsonl``, ``.json``, anything else TREC's (the classic form with
    ``<top>``, or XML with ``<topic number="1">``), plain or gzip; a file without tags and with a tab in its first line is TSV,
    and one that begins with a brace JSON lines. A table of two columns needs no line of names where ids have digits. Queries
    that are not judged are left out. A number with other leading zeros than in the judgements ("051" and "51") is matched with
    a warning. A field ``family`` is the query's family.

    Args:
        path: the file of queries.
        qrels: the file of judgements: TREC's four columns, or query, item and grade as CSV, TSV or JSON lines. None: there are
            none, and all queries are kept, for what needs no gold.
        id_field: the field that holds the id. None: the topic's number, in other forms ``id``, or another usual name that the
            first entry has (``query_id``, ``qid``, ``_id``).
        text_field: the field that holds the text, or several, joined by line ends. None: the topic's ``title``, in other forms
            ``text``, or another usual name that the first entry has (``query``, ``question``).

    Examples:
        >>> loader = TopicsLoader("queries.tsv", "qrels.txt")
        >>> loader.queries()[0].text, loader.gold()[0].relevance
        ('who eats krill', {'whale': 1})
    """

    name = "topics"
    manifest_may_set = may_set("id_field", "text_field", path=READS_FILE, qrels=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        qrels: str | Path | None = None,
        id_field: str | None = None,
        text_field: str | Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.qrels = qrels
        self.id_field = id_field
        self.text_field = text_field

    def queries(self) -> list[Query]:
        """Return the queries that are judged, or all if there are no judgements, in the order of the file."""
        return self._judged()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order."""
        return self._judged()[1]

    def _judged(self) -> tuple[list[Query], list[Gold]]:
        if self.qrels is None:
            return [query for _, query in self.read()], []
        return judged_queries(self.path, self.read(), read_judgements(self.qrels), self.qrels)

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
        """The form of the file of queries: by its suffix, or by how a file with another suffix begins."""
        form = format_of(self.path)
        if form == "trec":
            first = next((line for _, line in read_lines(self.path) if line.strip()), "")
            if first.startswith("{"):
                return "json"
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
        if form == "json":
            return read_json_file_of_records(self.path)
        delimiter, columns = "\t" if form == "tsv" else None, None
        if self.id_field is None and self.text_field is None:
            rows = ((line, [cell.strip() for cell in cells]) for line, cells in read_cells(self.path, delimiter))
            line, names = next((row for row in rows if any(row[1])), (1, []))
            while names and not names[-1]:
                names.pop()
            if names and {*map(plain_name, names)}.isdisjoint((*_QUERY_ID_NAMES, *_TEXT_NAMES)):
                if len(names) != 2 or not any(map(str.isdigit, names[0])):
                    raise SourceError(
                        f"{self.path}, line {line}: no column has a usual name for the id or the text of a query (found: "
                        f"{quoted(names)}); pass id_field= and text_field=, or write a first line with the names id and text"
                    )
                columns = ("id", "text")
        return read_rows(self.path, delimiter, columns)


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
    """Yield the topics of a file: each from its tag to its end, or to the next such tag."""
    lines = [line for _, line in islice(read_lines(path), _MOST_LINES + 1)]
    if len(lines) > _MOST_LINES:
        raise SourceError(f"{path}: more than {_MOST_LINES:,} lines; is this a file of TREC topics?")
    text = _simplified(path, "\n".join(lines))
    tags = list(_TAG.finditer(text))
    wanted = next((name for tag in tags if (name := tag["name"].lower()) in _TOPICS and not tag["closes"]), None)
    if wanted is None:
        raise SourceError(
            f"{path}: it holds no TREC topics (<top> or <topic>); call it .csv, .tsv, .json or .jsonl where it is one, and "
            "write a tab between id and text where it is plain text"
        )
    marks = [at for at, tag in enumerate(tags) if tag["name"].lower() == wanted]
    last = tags[marks[-1]]
    if not last["closes"] and not last["rest"].endswith("/") and any(tags[at]["closes"] for at in marks):
        at_line = text.count("\n", 0, last.start()) + 1
        raise SourceError(
            f"{path}, line {at_line}: <{wanted}> has no end: the file is cut off; fetch it again, or add </{wanted}>"
        )
    number, counted = 1, 0
    for first, after in pairwise([*marks, len(tags)]):
        opening = tags[first]
        if not opening["closes"]:
            number += text.count("\n", counted, opening.start())
            counted = opening.start()
            stop = tags[after].start() if after < len(tags) else len(text)
            yield f"{path}, line {number}", dict(_labelled(_fields_of(text, tags[first + 1 : after], opening, stop)))


def _simplified(path: str | Path, text: str) -> str:
    """A text with its lines, but without comments, instructions and declarations, and with CDATA as escaped text."""
    for begin, end in (("<![CDATA[", "]]>"), ("<!--", "-->"), ("<?", "?>")):
        pieces, at = list[str](), 0
        while (first := text.find(begin, at)) >= 0 and (last := text.find(end, first + len(begin))) >= 0:
            inside = text[first + len(begin) : last]
            pieces += (text[at:first], escape(inside) if begin == "<![CDATA[" else "\n" * inside.count("\n"))
            at = last + len(end)
        text = "".join(pieces) + text[at:]  # a mark without an end is text that only looks like markup
    if (at := text.find("<!ENTITY")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise SourceError(f"{path}, line {line}: it declares XML entities, which are not read; remove them")
    return _DECLARATION.sub(lambda match: "\n" * match[0].count("\n"), text)


def _fields_of(text: str, tags: Sequence[re.Match[str]], opening: re.Match[str], stop: int) -> _Fields:
    """The fields of one topic: a field ends at its end tag, or, without one, where the next field begins."""
    ends = _ends_of(tags)
    own: list[str] = []
    elements: _Fields = {}
    pieces, field, until, at = own, "", -1, opening.end()
    for number, tag in enumerate(tags):
        pieces.append(_decoded(text[at : tag.start()]))
        at = tag.end()
        name, is_empty = tag["name"].lower(), tag["rest"].endswith("/")
        gap = "" if name in _MARKUP else " "
        if tag["closes"]:
            if name == field and until in (number, -1):
                pieces, field, until = own, "", -1
            pieces.append(gap)
        elif until < 0 and _begins_field(text, tag, field):
            own.append(" ")
            begun: list[str] = []
            elements.setdefault(name, []).append(begun)
            pieces, field, until = (own, "", -1) if is_empty else (begun, name, ends[number])
        else:
            is_markup = ends[number] >= 0 or name in _IN_TEXT or is_empty
            pieces.append(gap if is_markup else tag[0])  # or text that only looks like a tag
    pieces.append(_decoded(text[at:stop]))
    attributes = {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(opening["rest"])}
    fields = {name: [[_decoded(value)]] for name, value in attributes.items()} | elements  # an element takes precedence
    if "".join(own).strip():  # outside of all elements
        fields.setdefault("text", []).append(own)
    return fields


def _ends_of(tags: Sequence[re.Match[str]]) -> list[int]:
    """For each tag the position of its end tag, before which no other tag of its name begins; -1 if it has none."""
    ends = [-1] * len(tags)
    following: dict[str, int] = {}
    for number in reversed(range(len(tags))):
        name = tags[number]["name"].lower()
        if tags[number]["closes"]:
            following[name] = number
        else:
            ends[number] = following.pop(name, -1)
    return ends


def _begins_field(text: str, tag: re.Match[str], field: str) -> bool:
    """Return whether a tag begins a field of the topic; ``field`` is the one that is open and has no end, or empty."""
    name = tag["name"].lower()
    if name in _IN_TEXT:
        return False
    if not field or name in _FIELDS or name.endswith(("-title", "-desc", "-narr")):
        return True
    _, line_end, same_line = text[max(0, tag.start() - 100) : tag.start()].rpartition("\n")
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
