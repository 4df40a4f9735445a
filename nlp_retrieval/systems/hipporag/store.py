"""Database of the knowledge of passages: several extractions, each resumable. No message holds a secret."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import expanded
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError
from nlp_retrieval.loaders import hide_secrets, make_engine, resolve, scrub
from nlp_retrieval.systems.hipporag.knowledge import (
    MAX_CHARACTERS,
    Extraction,
    ExtractionRun,
    PassageKnowledge,
    PassageRecord,
    Triple,
    key_of,
    passage_hash,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from nlp_retrieval.systems.hipporag.store_tables import Tables

T = TypeVar("T")

_TRIES, _WAIT = 3, 1.0
_IN_ONE_QUERY = 500
_ROWS_AT_ONCE = 1_000


class KnowledgeStore:
    """Entities and relationships of passages, in SQLite or any database that SQLAlchemy reaches.

    Everything is written in transactions, so a killed process leaves a consistent store. Several processes may write at
    once. A password in the URL is in no ``repr``, message or log.

    Args:
        url: path of an SQLite file, a SQLAlchemy URL (``postgresql+psycopg://user@host/name``), or ``env:NAME``, the name of
            an environment variable that holds it.
        schema: of the tables, if the database has schemas; it must exist. None: its default.
        create: whether to create a missing file and missing tables.

    Raises:
        DependencyError: SQLAlchemy or the database's driver is not installed.
        SourceError: there is no such store, the database cannot be opened, or tables of these names belong to another program.

    Examples:
        >>> extractor = KnowledgeExtractor(LanguageModel("openai/gpt-4o-mini"))
        >>> with KnowledgeStore("knowledge.db", create=True) as store:
        ...     store.missing(extractor.extraction, items)
        [True, True, True]
    """

    def __init__(self, url: str, *, schema: str | None = None, create: bool = False) -> None:
        self._shown = hide_secrets(str(url))
        self._url = _full_url(str(url), self._shown)
        try:
            self._engine: Engine = make_engine(self._url, self._shown, may_create=create)
        except AttributeError as error:  # a driver that cannot be imported without its server's own package
            raise SourceError(f"{self._shown}: its driver cannot be used: {scrub(error, self._url)}") from None
        if self._engine.dialect.name == "sqlite":
            if self._engine.url.database in (None, "", ":memory:"):
                raise ConfigurationError(f"{self._shown}: a store in memory is not kept; name a file")
            _listen(self._engine)
        from nlp_retrieval.systems.hipporag.store_tables import Tables

        self._tables: Tables = Tables.of_schema(schema)
        if not self._is_there():
            if not create:
                raise SourceError(
                    f"{self._shown}: there is no knowledge store; write one with create=True, or by `hipporag index`"
                )
            self._write(self._tables.metadata.create_all)

    def __repr__(self) -> str:
        return f"KnowledgeStore({self._shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def extractions(self) -> list[Extraction]:
        """Return the extractions, by model."""
        columns = self._tables.extractions.c
        query = self._tables.extractions.select().with_only_columns(columns.model, columns.settings)
        rows = self._read(lambda connection: connection.execute(query).all())
        return [Extraction(*row) for row in sorted((str(model), str(settings)) for model, settings in rows)]

    def begin(self, extraction: Extraction) -> None:
        """Register an extraction, before its passages are saved."""
        table, key = self._tables.extractions, extraction.extraction_id

        def begin(connection: Connection) -> None:
            if connection.execute(table.select().where(table.c.extraction_id == key)).first() is None:
                row = {"extraction_id": key, "model": extraction.model, "settings": extraction.settings}
                connection.execute(table.insert(), [row])

        self._write(begin)

    def missing(self, extraction: Extraction, items: Sequence[SearchableItem]) -> list[bool]:
        """Return whether each item, in order, must be extracted: it never was, it failed, or its text has changed since."""
        from nlp_retrieval.systems.hipporag.store_tables import DONE

        passages = self._tables.passages.c
        keys = [key_of(extraction.extraction_id, item.item_id) for item in items]
        query = self._tables.passages.select().with_only_columns(passages.passage_id, passages.content_hash)
        queries = [query.where(passages.passage_id.in_(part), passages.status == DONE) for part in _parts(keys)]
        done = self._read(lambda connection: {row[0]: row[1] for query in queries for row in connection.execute(query)})
        return [done.get(key) != passage_hash(item.title, item.content) for key, item in zip(keys, items, strict=True)]

    def save(self, extraction: Extraction, records: Sequence[PassageRecord], run: ExtractionRun | None = None) -> None:
        """Write passages, replacing existing ones, and the progress of the run, in one transaction.

        Raises:
            OutputError: the database cannot be written; nothing is changed then.
        """
        latest = list({record.document_id: record for record in records}.values())
        self._write(lambda connection: self._save(connection, extraction.extraction_id, latest, run))

    def document_ids(self, extraction: Extraction, entity: str) -> list[str]:
        """Return the ids of the documents that name an entity, or say something of it, ascending.

        Args:
            extraction: of the store.
            entity: as it is written in the documents.

        Examples:
            >>> with KnowledgeStore("knowledge.db") as store:  # doctest: +SKIP
            ...     store.document_ids(store.extractions()[0], "krill")
            ['krill', 'whale']
        """
        tables, of = self._tables, self._tables.relationships.c
        entities, passages = tables.entities.c, tables.passages.c
        named = (entities.entity_text == entity, entities.extraction_id == extraction.extraction_id)
        joins = (
            tables.passages.join(tables.mentions).join(tables.entities),
            *(
                tables.passages.join(tables.relationships).join(tables.entities, entities.entity_id == end)
                for end in (of.subject_entity_id, of.object_entity_id)
            ),
        )
        query = tables.passages.select().with_only_columns(passages.document_id)
        queries = [query.select_from(join).where(*named) for join in joins]
        return sorted(set(self._read(lambda connection: [row[0] for query in queries for row in connection.execute(query)])))

    def source(self, extraction_id: str | None = None) -> StoredKnowledge:
        """Return one extraction, by its fingerprint or the beginning of it, as a source of knowledge; None: the only one."""
        extractions = self.extractions()
        chosen = [extraction for extraction in extractions if extraction.extraction_id.startswith(extraction_id or "")]
        if len(chosen) == 1:
            return StoredKnowledge(self, chosen[0])
        known = ", ".join(f"{extraction.extraction_id[:8]} by {extraction.model}" for extraction in extractions[:20]) or "none"
        wanted = "is needed" if extraction_id is None else f"{extraction_id[:40]!r} was asked for"
        raise ConfigurationError(f"{self._shown}: one extraction {wanted}, and the store holds: {known}")

    def _save(
        self, connection: Connection, extraction_id: str, records: list[PassageRecord], run: ExtractionRun | None
    ) -> None:
        from nlp_retrieval.systems.hipporag.store_tables import rows_of

        tables, rows = self._tables, rows_of(extraction_id, records)
        entity_id, replaced = tables.entities.c.entity_id, 0
        for part in _parts([row["passage_id"] for row in rows["passages"]]):
            for table, passage_id in (
                (tables.mentions, tables.mentions.c.passage_id),
                (tables.relationships, tables.relationships.c.source_passage_id),
                (tables.passages, tables.passages.c.passage_id),
            ):
                n_deleted = connection.execute(table.delete().where(passage_id.in_(part))).rowcount
                replaced += n_deleted if table is not tables.passages else 0
        existing: set[str] = set()
        for part in _parts([row["entity_id"] for row in rows["entities"]]):
            query = tables.entities.select().with_only_columns(entity_id).where(entity_id.in_(part))
            existing.update(connection.execute(query).scalars())
        rows["entities"] = [row for row in rows["entities"] if row["entity_id"] not in existing]
        for name in ("passages", "entities", "mentions", "relationships"):
            if rows[name]:
                connection.execute(getattr(tables, name).insert(), rows[name])
        if replaced:
            self._remove_unused(connection, extraction_id)
        if run is not None:
            progress = tables.indexing_progress
            connection.execute(progress.delete().where(progress.c.session_id == run.session_id))
            connection.execute(progress.insert(), [_row_of(run, extraction_id)])

    def _remove_unused(self, connection: Connection, extraction_id: str) -> None:
        """Remove entities that only texts had which have changed since."""
        entities, relationships = self._tables.entities, self._tables.relationships.c
        ends = (self._tables.mentions.c.entity_id, relationships.subject_entity_id, relationships.object_entity_id)
        unused = [~end.table.select().where(end == entities.c.entity_id).exists() for end in ends]
        connection.execute(entities.delete().where(entities.c.extraction_id == extraction_id, *unused))

    def _knowledge(self, connection: Connection, extraction_id: str, hashes: Collection[str]) -> dict[str, PassageKnowledge]:
        """Return the knowledge of passages by the hashes of their texts; several documents may have one text."""
        from nlp_retrieval.systems.hipporag.store_tables import DONE

        tables, passages = self._tables, self._tables.passages.c
        knowledge: dict[str, PassageKnowledge] = {}
        for part in _parts(hashes):
            query = tables.passages.select().with_only_columns(passages.content_hash, passages.passage_id)
            query = query.where(passages.extraction_id == extraction_id, passages.status == DONE)
            rows = connection.execute(query.where(passages.content_hash.in_(part)).order_by(passages.passage_id.desc())).all()
            hash_of = {passage_id: content_hash for content_hash, passage_id in dict(map(tuple, rows)).items()}
            names: dict[str, list[str]] = {key: [] for key in hash_of}
            triples: dict[str, list[Triple]] = {key: [] for key in hash_of}
            for key, name, _ in connection.execute(tables.named().where(tables.mentions.c.passage_id.in_(list(hash_of)))):
                names[key].append(self._text(name))
            of_these = tables.relationships.c.source_passage_id.in_(list(hash_of))
            for key, *parts in connection.execute(tables.stated().where(of_these)):
                triples[key].append(Triple(*map(self._text, parts)))
            for key, content_hash in hash_of.items():
                knowledge[content_hash] = PassageKnowledge(tuple(names[key]), tuple(triples[key]))
        return knowledge

    def _digest(self, connection: Connection, extraction_id: str) -> str:
        from nlp_retrieval.systems.hipporag.store_tables import DONE

        tables, passages = self._tables, self._tables.passages.c
        done = (passages.extraction_id == extraction_id, passages.status == DONE)
        keys = tables.passages.select().with_only_columns(passages.passage_id).where(*done)
        hashed = tables.passages.select().with_only_columns(passages.passage_id, passages.content_hash).where(*done)
        queries = (
            hashed.order_by(passages.passage_id),
            tables.named().where(tables.mentions.c.passage_id.in_(keys)),
            tables.stated().where(tables.relationships.c.source_passage_id.in_(keys)),
        )
        digest = sha256(extraction_id.encode())
        for query in queries:
            digest.update(b"\n")
            for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
                digest.update(json.dumps(list(map(self._text, row))).encode())
        return digest.hexdigest()

    def _text(self, value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= MAX_CHARACTERS:
            raise SourceError(
                f"{self._shown}: the knowledge store holds a text that no extraction writes; extract into a new store"
            )
        return value

    def _is_there(self) -> bool:
        """Return whether all tables exist; False if none does."""
        from sqlalchemy import inspect

        tables = self._tables.metadata.sorted_tables

        def columns(connection: Connection) -> list[set[str]]:
            inspector = inspect(connection)
            schema = tables[0].schema
            held = [inspector.get_columns(one.name, schema) if inspector.has_table(one.name, schema) else [] for one in tables]
            return [{column["name"].lower() for column in of_table} for of_table in held]

        held = self._read(columns, tries=1)
        wrong = [table.name for table, names in zip(tables, held, strict=True) if names != set(table.c.keys())]
        if any(held) and wrong:
            raise SourceError(
                f"{self._shown}: these tables are missing, of another version, or of another program: {', '.join(wrong)}; name "
                "another database or schema, and extract again"
            )
        return any(held)

    def _read(self, work: Callable[[Connection], T], *, tries: int = _TRIES) -> T:
        try:
            return self._run(work, tries)
        except _errors() as error:
            raise SourceError(
                f"{self._shown}: the knowledge store cannot be read: {self._reason(error)}; check that the database is "
                "running, and that this is a knowledge store"
            ) from None

    def _write(self, work: Callable[[Connection], T]) -> T:
        try:
            return self._run(work, _TRIES, writing=True)
        except _errors() as error:
            raise OutputError(
                f"{self._shown}: the knowledge store cannot be written: {self._reason(error)}; committed results "
                "are kept: when the database is back, run the same again"
            ) from None

    def _run(self, work: Callable[[Connection], T], tries: int, *, writing: bool = False) -> T:
        """Run work in one transaction, again after a conflict with another process or a restart of the server."""
        from sqlalchemy.exc import IntegrityError, OperationalError

        for attempt in range(tries):
            try:
                with self._engine.connect().execution_options(writing=writing) as connection, connection.begin():
                    return work(connection)
            except (IntegrityError, OperationalError):
                if attempt == tries - 1:
                    raise
                time.sleep(_WAIT * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _reason(self, error: Exception) -> str:
        return " ".join(scrub(getattr(error, "orig", None) or error, self._url).split())[:300]


def _row_of(run: ExtractionRun, extraction_id: str) -> dict[str, Any]:
    return {
        "session_id": run.session_id,
        "extraction_id": extraction_id,
        "total_documents": run.total,
        "processed_documents": run.processed,
        "last_checkpoint_timestamp": datetime.now(UTC).replace(tzinfo=None, microsecond=0),
        "status": run.status,
        "checkpoint_data": json.dumps(run.data),
    }


def _parts(keys: Collection[str]) -> Iterator[list[str]]:
    """Yield sorted keys in lists that a query may hold; some databases take no more than 1,000 values."""
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _IN_ONE_QUERY):
        yield ordered[start : start + _IN_ONE_QUERY]


def _full_url(url: str, shown: str) -> str:
    if "://" in url or url.startswith("env:"):
        return resolve(url)
    if "?" in url or not url.strip():
        raise ConfigurationError(
            f"{shown!r:.200}: not the path of a store; name a file without a question mark, or a database URL"
        )
    return f"sqlite:///{expanded(url)}"


def _errors() -> tuple[type[Exception], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    # the last two: the driver of InterSystems IRIS, where no server answers
    return (SQLAlchemyError, OSError, UnicodeError, AttributeError, RuntimeError)


def _listen(engine: Engine) -> None:
    """Make SQLite begin transactions explicitly, and not trust the file."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def opened(connection: sqlite3.Connection, record: object) -> None:
        del record
        connection.isolation_level = None
        for pragma in ("busy_timeout = 60000", "trusted_schema = OFF", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # a transaction that reads first and then writes would fail if another process wrote in between
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class StoredKnowledge:
    """One extraction of a store, which must stay open, as a source of knowledge."""

    def __init__(self, store: KnowledgeStore, extraction: Extraction) -> None:
        self.store = store
        self.extraction = extraction

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for one whose text, under any id, was not extracted."""
        hashes = [passage_hash(item.title, item.content) for item in items]
        key = self.extraction.extraction_id
        stored = self.store._read(lambda connection: self.store._knowledge(connection, key, set(hashes)))
        return [stored.get(content_hash) for content_hash in hashes]

    def digest(self) -> str:
        """Return the SHA-256, in hexadecimal digits, of the extraction and of all its content."""
        return self.store._read(lambda connection: self.store._digest(connection, self.extraction.extraction_id))
