"""Sources of the knowledge of an index: a published file, a knowledge store, or an index that holds it, identified by a digest.

Files of open information extraction have two formats, plain or gzip, distinguished by their content:

- HippoRAG's (Gutierrez et al., 2025): one JSON object, ``{"docs": [{"passage", "extracted_entities", "extracted_triples"}]}``,
  with passages as title, line end, text. A passage is found by its text; ``idx`` is not used.
- JSON lines of ``doc_id``, ``extracted_entities`` and ``extracted_triples``, and, if present, ``title``, ``text`` (without the
  title) and ``passage`` (with it). A passage is found by its id, and known if all fields that are present agree with it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import MAX_BYTES, expanded, parse_json, sha256_of
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.loaders import MAX_ENTRY, JsonObject, as_id, as_text, kind, open_bytes, read_json_lines
from nlp_retrieval.systems.hipporag.knowledge import KnowledgeSource, PassageKnowledge, knowledge_from_json, passage_hash
from nlp_retrieval.systems.hipporag.store import KnowledgeStore, StoredKnowledge
from nlp_retrieval.text import normalize_title

_SAYS: dict[str, Callable[[SearchableItem], str]] = {
    "title": lambda item: normalize_title(item.title),
    "text": lambda item: passage_hash("", item.content),
    "passage": lambda item: passage_hash(item.title, item.content),
}
"""What a line of a file may say of its passage, as a function of an item."""


class OpenIeFile:
    """Knowledge of the passages of a corpus, from one published file, which is read at once and held in memory.

    Invalid statements (triples without three parts, more than 1,000 per passage) are dropped, and a warning counts
    them. For JSON lines without texts only id and title are compared, so a changed text goes unnoticed.

    Args:
        path: HippoRAG's JSON object (at most 1 GiB), or JSON lines.

    Raises:
        SourceError: the file is missing, is neither, holds no passage, or holds one id twice.

    Examples:
        >>> whale, *others = OpenIeFile("knowledge.jsonl").of(items)
        >>> whale.triples
        (Triple(subject='Blue whale', predicate='eats', object='krill'),)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._by_id: dict[str, tuple[PassageKnowledge, dict[str, str]]] = {}
        self._by_text: dict[str, PassageKnowledge] = {}
        self._dropped, self._first = 0, ""
        if _is_json_lines(path):
            self._read_lines()
        else:
            self._read_docs()
        if not self:
            raise SourceError(f"{path}: it holds no passages; is it a file of extracted entities and triples?")
        if self._dropped:
            warnings.warn(
                f"{path}: {self._dropped} unusable entities and triples were dropped (first: {self._first})",
                RetrievalWarning,
                stacklevel=2,
            )

    def __len__(self) -> int:
        return len(self._by_id) + len(self._by_text)

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for an item that the file lacks, or has with another text."""
        return [self._of(item) for item in items]

    def _of(self, item: SearchableItem) -> PassageKnowledge | None:
        if self._by_text:
            return self._by_text.get(passage_hash(item.title, item.content))
        knowledge, said = self._by_id.get(item.item_id, (None, {}))
        return knowledge if all(_SAYS[name](item) == value for name, value in said.items()) else None

    def _read_lines(self) -> None:
        for where, row in read_json_lines(self.path):
            doc_id = as_id(where, "doc_id", _field(where, row, "doc_id"))
            if doc_id in self._by_id:
                raise SourceError(f'{where}: the id "{doc_id}" occurs twice; keep one line for each passage')
            given = {name: as_text(where, name, row[name]) for name in _SAYS if row.get(name) is not None}
            said = {name: normalize_title(text) if name == "title" else passage_hash("", text) for name, text in given.items()}
            self._by_id[doc_id] = self._knowledge(where, row), said

    def _read_docs(self) -> None:
        for where, row in _docs(self.path):
            key = passage_hash("", as_text(where, "passage", _field(where, row, "passage")))
            self._by_text.setdefault(key, self._knowledge(where, row))

    def _knowledge(self, where: str, row: JsonObject) -> PassageKnowledge:
        entities, triples = (_field(where, row, name) for name in ("extracted_entities", "extracted_triples"))
        try:
            read = knowledge_from_json(entities, triples)
        except ValueError as error:
            raise SourceError(f"{where}: {error}; write lists of texts, and of lists of three texts") from None
        if read.dropped:
            self._dropped += read.dropped
            self._first = self._first or where
        return read.knowledge


def _is_json_lines(path: str | Path) -> bool:
    """Return whether the first line is an object by itself, and not the one that holds all passages."""
    with open_bytes(path) as stream:
        while (line := stream.readline(MAX_ENTRY)).isspace():
            pass
    try:
        row = parse_json(line)
    except ValueError:
        # the line of an object that continues, or is broken: reading the whole file decides
        return b'"doc_id"' in line[:4096] and b'"docs"' not in line[:4096]
    return isinstance(row, dict) and "docs" not in row


def _docs(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    with open_bytes(path) as stream:
        raw = stream.read(MAX_BYTES + 1)
    try:
        whole: JsonValue = parse_json(raw)
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from None
    docs = whole.get("docs") if isinstance(whole, dict) else whole
    if not isinstance(whole, dict) or not isinstance(docs, list):
        shape = kind(whole) if not isinstance(whole, dict) else f'"docs" as {kind(docs)}'
        raise SourceError(f'{path}: expected an object with a list of "docs", or JSON lines with "doc_id"; found {shape}')
    for number, row in enumerate(docs, 1):
        if not isinstance(row, dict):
            raise SourceError(f'{path}, entry {number} of "docs": expected an object, found {kind(row)}')
        yield f'{path}, entry {number} of "docs"', row


def _field(where: str, row: JsonObject, name: str) -> JsonValue:
    if name in row:
        return row[name]
    keys = ", ".join(f'"{key[:40]}"' for key in list(row)[:12])
    raise SourceError(f'{where}: no "{name}" (found: {keys or "nothing"}); is this a file of entities and triples?')


_SQLITE = b"SQLite format 3\0"
_EXTRACTION = re.compile(r"(.+)#([0-9a-f]{1,32})", re.DOTALL)
_HELD = re.compile(r"sha256:[0-9a-f]{64}")


def is_held(knowledge: str) -> bool:
    """Return whether it names the content of an index, not a source to open."""
    return _HELD.fullmatch(knowledge) is not None


def digest_of(knowledge: str | None) -> str | None:
    """Return ``sha256:<digest>`` of a file of knowledge, or of an extraction in a store."""
    if knowledge is None or is_held(knowledge):
        return knowledge
    stored = _stored(knowledge)
    if stored is not None:
        return f"sha256:{stored.digest()}"
    try:
        return f"sha256:{sha256_of(expanded(knowledge))}"
    except (OSError, ValueError, RuntimeError) as error:  # also a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise SourceError(
            f"knowledge {knowledge!r} cannot be read ({why}); give a file of entities and triples, or, where an index holds it "
            "already, the sha256:... that its manifest names"
        ) from error


def source_of(knowledge: str | None) -> KnowledgeSource | None:
    """Open a file of entities and triples, or a knowledge store; ``#`` and a fingerprint choose one of several extractions."""
    if knowledge is None:
        return None
    if is_held(knowledge):
        raise ConfigurationError(f"knowledge={knowledge!r} is a digest in an index, and cannot be read; name the file")
    return _stored(knowledge) or OpenIeFile(expanded(knowledge))


def joining_source_of(knowledge: str | None, added: str | None = None) -> KnowledgeSource | None:
    """Open the source of added items, by default that of the index; None if only the content of the index is named."""
    named = knowledge if added is None else added
    return None if named is None or is_held(named) else source_of(named)


def _stored(knowledge: str) -> StoredKnowledge | None:
    """Open an extraction in a store; None if it is not a store."""
    match = None if _is_sqlite(knowledge) else _EXTRACTION.fullmatch(knowledge)
    url, extraction = (knowledge, None) if match is None else match.groups()
    is_store = "://" in url or url.startswith("env:") or _is_sqlite(url)
    return KnowledgeStore(url).source(extraction) if is_store else None


def _is_sqlite(path: str) -> bool:
    try:
        with expanded(path).open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError, RuntimeError):
        return False


def reads_knowledge(source: Any) -> str | None:
    """Allow the digest of what an index holds to a manifest; anything else would be opened."""
    return None if source is None or (isinstance(source, str) and is_held(source)) else f"read {source!r}"
