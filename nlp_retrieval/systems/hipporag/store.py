"""Database of the knowledge of passages: several extractions, each resumable.

Transactions are retried if that may help, and no message holds a secret. A connection lives as long as its transaction, so the
next one reconnects to a restarted database.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError
from nlp_retrieval.loaders import hide_secrets, make_engine, resolve, scrub
from nlp_retrieval.systems.hipporag.knowledge import (
    Extraction,
    ExtractionRun,
    PassageKnowledge,
    PassageRecord,
    StoreCounts,
    key_of,
    passage_hash,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from nlp_retrieval.systems.hipporag.store_tables import Tables

T = TypeVar("T")

_TRIES = 4
_LONGEST_VALUE = 2**24
_BUSY_SECONDS = 60


class Database:
    """A database by its URL.

    Args:
        url: a SQLAlchemy URL, ``env:NAME`` for the environment variable that holds it, or the path of an SQLite file.
        create: whether to create a missing file.
        wait: seconds before a failed transaction is retried, doubled with each further try.

    Raises:
        DependencyError: SQLAlchemy or the driver is not installed.
        SourceError: the URL is malformed, or there is no such file.
        ConfigurationError: the database would be in memory, or the path cannot be one.
    """

    def __init__(self, url: str, *, create: bool, wait: float) -> None:
        is_url = "://" in url or url.startswith("env:")
        if not is_url and ("?" in url or not url.strip()):
            raise ConfigurationError(
                f"{hide_secrets(url)!r:.200}: not the path of a store; name a file without a question mark, or a database URL"
            )
        self._url = resolve(url) if is_url else f"sqlite:///{Path(url).expanduser()}"
        self.shown = hide_secrets(url)
        self._wait = wait
        self.engine: Engine = make_engine(self._url, self.shown, who="KnowledgeStore", may_create=create)
        if self.engine.dialect.name == "sqlite":
            if self.engine.url.database in (None, "", ":memory:"):
                raise ConfigurationError(f"{self.shown}: a store in memory is not kept; name a file")
            _listen(self.engine)

    def read(self, work: Callable[[Connection], T], *, tries: int = _TRIES) -> T:
        """Run work in a transaction that is rolled back.

        Args:
            work: may be repeated.
            tries: number of tries while the database is unavailable or locked.

        Raises:
            SourceError: the database cannot be read, or is not a knowledge store.
        """

        def reading() -> T:
            with self.engine.connect() as connection:
                return work(connection)

        try:
            return self._with_retries(reading, tries)
        except _errors() as error:
            raise SourceError(
                f"{self.shown}: the knowledge store cannot be read: {self._reason(error)}; check that the database is running, "
                "and that this is the store that `nlp-retrieval hipporag extract` wrote"
            ) from None

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in one transaction: all of it is committed, or nothing.

        Args:
            work: may be repeated from the beginning after a conflict with another process.

        Raises:
            OutputError: the database cannot be written.
        """

        def writing() -> T:
            with self.engine.connect().execution_options(writing=True) as connection, connection.begin():
                return work(connection)

        try:
            return self._with_retries(writing, _TRIES)
        except _errors() as error:
            raise OutputError(
                f"{self.shown}: the knowledge store cannot be written: {self._reason(error)}; committed results "
                "are kept: when the database is back, run the same again"
            ) from None

    def close(self) -> None:
        """Close what is open."""
        self.engine.dispose()

    def _with_retries(self, work: Callable[[], T], tries: int) -> T:
        from sqlalchemy.exc import IntegrityError, OperationalError

        for attempt in range(tries):
            try:
                return work()
            except (IntegrityError, OperationalError) as error:
                # a row that another process wrote first, a lock, a server that restarts; a missing table stays missing
                if attempt == tries - 1 or _is_permanent(error):
                    raise
                time.sleep(self._wait * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _reason(self, error: Exception) -> str:
        reason = scrub(getattr(error, "orig", None) or error, self._url)
        return " ".join(reason.split())[:300]


def _errors() -> tuple[type[Exception], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, OSError, UnicodeError)


def _is_permanent(error: Exception) -> bool:
    reason = str(getattr(error, "orig", None) or error)
    return isinstance(getattr(error, "orig", None), sqlite3.Error) and not any(
        word in reason for word in ("locked", "busy", "UNIQUE", "FOREIGN")
    )


def _listen(engine: Engine) -> None:
    """Make SQLite begin transactions explicitly, and not trust the file."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def opened(connection: sqlite3.Connection, record: object) -> None:
        del record
        connection.isolation_level = None
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        for pragma in (f"busy_timeout = {_BUSY_SECONDS * 1000}", "trusted_schema = OFF", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # a transaction that reads first and then writes would fail if another process wrote in between
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class KnowledgeStore:
    """Entities and relationships of passages, in SQLite or any database that SQLAlchemy reaches.

    Everything is written in transactions, so a killed process leaves a consistent store. Several processes may write at
    once. A password in the URL is in no ``repr``, message or log.

    Args:
        url: path of an SQLite file, a SQLAlchemy URL (``postgresql+psycopg://user@host/name``), or ``env:NAME``, the name of
            an environment variable that holds it.
        schema: of the tables, if the database has schemas; it must exist. None: its default.
        create: whether to create a missing file and missing tables.
        wait: seconds before a failed transaction is retried, doubled with each of three tries.

    Raises:
        DependencyError: SQLAlchemy or the database's driver is not installed.
        SourceError: there is no such store, the database cannot be opened, or tables of these names belong to another program.

    Examples:
        >>> extractor = KnowledgeExtractor(LanguageModel("openai/gpt-4o-mini"))
        >>> with KnowledgeStore("knowledge.db", create=True) as store:
        ...     store.missing(extractor.extraction, items)
        [True, True, True]
    """

    def __init__(self, url: str, *, schema: str | None = None, create: bool = False, wait: float = 1.0) -> None:
        self._database = Database(str(url), create=create, wait=wait)
        from nlp_retrieval.systems.hipporag.store_tables import Tables

        self._tables: Tables = Tables.of_schema(schema)
        if not self._checked() and create:
            self._database.write(self._tables.metadata.create_all)
        elif not self._checked():
            raise SourceError(
                f"{self._database.shown}: there is no knowledge store; `nlp-retrieval hipporag extract` writes one"
            )

    def __repr__(self) -> str:
        return f"KnowledgeStore({self._database.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def extractions(self) -> list[Extraction]:
        """Return the extractions, by model.

        Raises:
            SourceError: the database cannot be read, or holds data that no extraction wrote.
        """
        from nlp_retrieval.systems.hipporag.store_tables import extractions_in

        return self._read(lambda connection: extractions_in(connection, self._tables))

    def unfinished(self, extraction: Extraction) -> list[ExtractionRun]:
        """Return the runs of an extraction that did not end, killed ones among them, the latest first; at most 20."""
        from nlp_retrieval.systems.hipporag.store_tables import unfinished_runs

        return self._read(lambda connection: unfinished_runs(connection, self._tables, extraction.extraction_id))

    def begin(self, extraction: Extraction) -> None:
        """Register an extraction, before its passages are saved; earlier runs of it that did not end count as failed.

        Raises:
            OutputError: the database cannot be written.
        """

        def begin(connection: Connection) -> None:
            from nlp_retrieval.systems.hipporag.store_tables import end_runs

            table = self._tables.extractions
            key = extraction.extraction_id
            end_runs(connection, self._tables, key)
            if connection.execute(table.select().where(table.c.extraction_id == key)).first() is None:
                row = {"extraction_id": key, "model": extraction.model, "settings": extraction.settings}
                connection.execute(table.insert(), [row])

        self._database.write(begin)

    def missing(self, extraction: Extraction, items: Sequence[SearchableItem]) -> list[bool]:
        """Return whether each item, in order, must be extracted: it never was, it failed, or its text has changed since."""
        from nlp_retrieval.systems.hipporag.store_tables import hashes_of_done

        keys = [key_of(extraction.extraction_id, item.item_id) for item in items]
        done = self._read(lambda connection: hashes_of_done(connection, self._tables, set(keys)))
        return [done.get(key) != passage_hash(item.title, item.content) for key, item in zip(keys, items, strict=True)]

    def save(self, extraction: Extraction, records: Sequence[PassageRecord], run: ExtractionRun | None = None) -> None:
        """Write passages, replacing existing ones, and the progress of the run, in one transaction.

        Raises:
            OutputError: the database cannot be written; nothing is changed then.
        """
        from nlp_retrieval.systems.hipporag.store_tables import write_passages, write_run

        def save(connection: Connection) -> None:
            write_passages(connection, self._tables, extraction.extraction_id, records)
            if run is not None:
                write_run(connection, self._tables, extraction.extraction_id, run)

        self._database.write(save)

    def delete(self, extraction: Extraction, document_ids: Sequence[str]) -> int:
        """Remove documents, and the entities that only they had, from one extraction; return their number.

        Raises:
            OutputError: the database cannot be written.
        """
        from nlp_retrieval.systems.hipporag.store_tables import remove_passages

        keys = [key_of(extraction.extraction_id, document_id) for document_id in set(document_ids)]
        return self._database.write(lambda connection: remove_passages(connection, self._tables, keys))

    def counts(self, extraction: Extraction) -> StoreCounts:
        """Return the counts of an extraction."""
        from nlp_retrieval.systems.hipporag.store_tables import passage_counts

        return self._read(lambda connection: passage_counts(connection, self._tables, extraction.extraction_id))

    def knowledge(self, extraction: Extraction, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for one whose text, under any id, was not extracted."""
        from nlp_retrieval.systems.hipporag.store_tables import knowledge_by_hash

        hashes = [passage_hash(item.title, item.content) for item in items]
        key = extraction.extraction_id
        stored = self._read(lambda connection: knowledge_by_hash(connection, self._tables, key, set(hashes)))
        return [stored.get(content_hash) for content_hash in hashes]

    def digest(self, extraction: Extraction) -> str:
        """Return the SHA-256, in hexadecimal digits, of an extraction and of all its content, in any order."""
        from nlp_retrieval.systems.hipporag.store_tables import digest_of_done

        return self._read(lambda connection: digest_of_done(connection, self._tables, extraction.extraction_id))

    def source(self, extraction_id: str | None = None) -> StoredKnowledge:
        """Return one extraction as a source of knowledge.

        Args:
            extraction_id: its fingerprint, or the beginning of it; None for the only one.

        Raises:
            ConfigurationError: there is none, more than one, or none of this fingerprint.
        """
        extractions = self.extractions()
        chosen = [extraction for extraction in extractions if extraction.extraction_id.startswith(extraction_id or "")]
        if len(chosen) == 1:
            return StoredKnowledge(self, chosen[0])
        known = ", ".join(f"{extraction.extraction_id[:8]} by {extraction.model}" for extraction in extractions[:20]) or "none"
        wanted = "is needed" if extraction_id is None else f"{extraction_id[:40]!r} was asked for"
        raise ConfigurationError(f"{self._database.shown}: one extraction {wanted}, and the store holds: {known}")

    def _read(self, work: Callable[[Connection], T], **tries: int) -> T:
        from nlp_retrieval.systems.hipporag.store_tables import DamagedStoreError

        try:
            return self._database.read(work, **tries)
        except DamagedStoreError as error:
            raise SourceError(
                f"{self._database.shown}: the knowledge store holds {error}, which no extraction writes; "
                "extract into a new store"
            ) from None

    def _checked(self) -> bool:
        """Return whether all tables exist; False if none does.

        Raises:
            SourceError: some are missing, or have other columns.
        """
        from sqlalchemy import inspect

        def columns(connection: Connection) -> dict[str, set[str] | None]:
            inspector = inspect(connection)
            existing = {table.name: table for table in self._tables.metadata.sorted_tables}
            return {
                name: {column["name"].lower() for column in inspector.get_columns(name, schema=table.schema)}
                if inspector.has_table(name, schema=table.schema)
                else None
                for name, table in existing.items()
            }

        columns_found = self._read(columns, tries=1)
        for table in self._tables.metadata.sorted_tables:
            has = columns_found[table.name]
            if has is not None and has != set(table.c.keys()):
                raise SourceError(
                    f"{self._database.shown}: the table {table.name!r} does not belong to a knowledge store of this version: "
                    f"it has the columns {', '.join(sorted(has))[:300]}; name another database, or another schema"
                )
        missing = [name for name, has in columns_found.items() if has is None]
        if missing and len(missing) < len(columns_found):
            raise SourceError(f"{self._database.shown}: the table {missing[0]!r} is missing; extract into a new store")
        return not missing


class StoredKnowledge:
    """One extraction of a store as a source of knowledge.

    Args:
        store: that holds it; must stay open while this is used.
        extraction: of the store.
    """

    def __init__(self, store: KnowledgeStore, extraction: Extraction) -> None:
        self.store = store
        self.extraction = extraction

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for one whose text was not extracted.

        Raises:
            SourceError: the database cannot be read, or holds data that no extraction wrote.
        """
        return self.store.knowledge(self.extraction, items)

    def digest(self) -> str:
        """Return the SHA-256, in hexadecimal digits, of the extraction and of all its content.

        Raises:
            SourceError: the database cannot be read.
        """
        return self.store.digest(self.extraction)
