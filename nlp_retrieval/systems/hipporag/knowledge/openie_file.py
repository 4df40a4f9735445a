"""Published files of open information extraction as a source of knowledge.

Two formats, plain or gzip, distinguished by their content:

- HippoRAG's (Gutierrez et al., 2025): one JSON object, ``{"docs": [{"passage", "extracted_entities", "extracted_triples"}]}``,
  with passages as title, line end, text. A passage is found by its text; ``idx`` is not used.
- JSON lines of ``doc_id``, ``extracted_entities`` and ``extracted_triples``, and, as far as they are there, ``title``, ``text``
  (without the title) and ``passage`` (with it). A passage is found by its id, and known if all that is there agrees with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import MAX_BYTES, parse_json
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders import (
    MAX_ENTRY,
    READ_ERRORS,
    JsonObject,
    as_id,
    as_text,
    kind,
    open_bytes,
    read_error,
    read_json_lines,
)
from nlp_retrieval.systems.hipporag.knowledge.from_json import knowledge_from_json
from nlp_retrieval.systems.hipporag.knowledge.passage_text import passage_hash
from nlp_retrieval.systems.hipporag.knowledge.statements import PassageKnowledge
from nlp_retrieval.text import normalize_title

__all__ = ["OpenIeFile"]


@dataclass(frozen=True)
class _Known:
    """Entry of the file for one passage; None for missing parts of the passage itself."""

    knowledge: PassageKnowledge
    title: str | None = None
    content: str | None = None
    whole: str | None = None

    def is_about(self, item: SearchableItem) -> bool:
        return (
            (self.title is None or self.title == normalize_title(item.title))
            and (self.content is None or self.content == passage_hash("", item.content))
            and (self.whole is None or self.whole == passage_hash(item.title, item.content))
        )


class OpenIeFile:
    """Knowledge of the passages of a corpus, from one published file, which is read at once and held in memory.

    Invalid statements (numbers, triples without three parts, more than 1,000 per passage) are dropped, and a warning counts
    them. For JSON lines without texts only id and title are compared, so a changed text goes unnoticed.

    Args:
        path: HippoRAG's JSON object (at most 1 GiB), or JSON lines.

    Raises:
        SourceError: the file is missing, is neither, holds no passage, or holds one id twice.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._by_id: dict[str, _Known] = {}
        self._by_text: dict[str, PassageKnowledge] = {}
        self._dropped, self._repeated, self._first = 0, 0, ""
        if _is_json_lines(path):
            self._read_lines()
        else:
            self._read_docs()
        if not self:
            raise SourceError(f"{path}: it holds no passages; is this a file of extracted entities and triples?")
        self._warn()

    def __len__(self) -> int:
        return len(self._by_id) + len(self._by_text)

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for an item that the file lacks, or has with another text."""
        return [self._of(item) for item in items]

    def _of(self, item: SearchableItem) -> PassageKnowledge | None:
        if self._by_text:
            return self._by_text.get(passage_hash(item.title, item.content))
        known = self._by_id.get(item.item_id)
        return known.knowledge if known is not None and known.is_about(item) else None

    def _read_lines(self) -> None:
        for place, row in read_json_lines(self.path):
            doc_id = as_id(place, "doc_id", _field(place, row, "doc_id"))
            if doc_id in self._by_id:
                raise SourceError(f'{place}: the id "{doc_id}" occurs twice; keep one line for each passage')
            title, content, whole = (_optional(place, row, name) for name in ("title", "text", "passage"))
            self._by_id[doc_id] = _Known(
                self._knowledge(place, row),
                None if title is None else normalize_title(title),
                None if content is None else passage_hash("", content),
                None if whole is None else passage_hash("", whole),
            )

    def _read_docs(self) -> None:
        for place, row in _docs(self.path):
            key = passage_hash("", as_text(place, "passage", _field(place, row, "passage")))
            knowledge = self._knowledge(place, row)
            if self._by_text.setdefault(key, knowledge) != knowledge:
                self._repeated += 1

    def _knowledge(self, place: str, row: JsonObject) -> PassageKnowledge:
        entities, triples = (_field(place, row, name) for name in ("extracted_entities", "extracted_triples"))
        try:
            read = knowledge_from_json(entities, triples)
        except ValueError as error:
            raise SourceError(f"{place}: {error}; write lists of texts, and of lists of three texts") from None
        if read.dropped:
            self._dropped += read.dropped
            self._first = self._first or place
        return read.knowledge

    def _warn(self) -> None:
        said = []
        if self._dropped:
            said.append(f"{self._dropped} entities and triples were left out as none (first: {self._first})")
        if self._repeated:
            said.append(f"{self._repeated} passages occur again with other knowledge, the first of each was kept")
        if said:
            warnings.warn(f"{self.path}: {'; '.join(said)}", RetrievalWarning, stacklevel=3)


def _is_json_lines(path: str | Path) -> bool:
    """Return whether the first line is an object by itself, and not the one that holds all passages."""
    with open_bytes(path) as stream:
        try:
            while (line := stream.readline(MAX_ENTRY)).isspace():
                pass
        except READ_ERRORS as error:
            raise read_error(str(path), error) from error
    try:
        row = parse_json(line)
    except ValueError:
        # the line of an object that continues, or is broken: reading the whole file decides
        return b'"doc_id"' in line[:4096] and b'"docs"' not in line[:4096]
    return isinstance(row, dict) and "docs" not in row


def _docs(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    with open_bytes(path) as stream:
        try:
            raw = stream.read(MAX_BYTES + 1)
        except READ_ERRORS as error:
            raise read_error(str(path), error) from error
    try:
        whole: JsonValue = parse_json(raw)
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from None
    docs = whole.get("docs") if isinstance(whole, dict) else whole
    if not isinstance(whole, dict) or not isinstance(docs, list):
        found = kind(whole) if not isinstance(whole, dict) else f'"docs" as {kind(docs)}'
        raise SourceError(f'{path}: expected an object with a list of "docs", or JSON lines with "doc_id"; found {found}')
    for number, row in enumerate(docs, 1):
        if not isinstance(row, dict):
            raise SourceError(f'{path}, entry {number} of "docs": expected an object, found {kind(row)}')
        yield f'{path}, entry {number} of "docs"', row


def _field(place: str, row: JsonObject, name: str) -> JsonValue:
    if name in row:
        return row[name]
    found = ", ".join(f'"{key[:40]}"' for key in list(row)[:12])
    raise SourceError(f'{place}: no "{name}" (found: {found or "nothing"}); is this a file of entities and triples?')


def _optional(place: str, row: JsonObject, name: str) -> str | None:
    value = row.get(name)
    return None if value is None else as_text(place, name, value)
