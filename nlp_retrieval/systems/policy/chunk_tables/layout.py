"""The tables of a schema: their origin, version, columns and vectors, and how they are created and upgraded.

The layout comes from PostgreSQL's own catalogue alone. An upgrade is one transaction, so that a killed process leaves the old
tables; simultaneous upgrades run one by one. Versions are Alembic's, in the folder ``versions``; a table of the schema stores
its version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    IndexMismatchError,
    QueryError,
    SourceError,
    install,
    nearest,
)

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import ColumnClause, Connection, TableClause

DOCUMENTS, CHUNKS, RELATIONS, VIEW = "documents", "doc_chunks", "logical_relationships", "doc_chunks_with_country"
VERSION_TABLE = "chunk_tables_version"
ONE_PLACE = "country_stands_in_one_place"

DIMENSIONS = {"transformer_embedding": 768, "word2vec_embedding": 300, "hoprag_embedding": 384}
"""Columns of vectors, and their default dimensions."""

VECTOR_COLUMNS = tuple(DIMENSIONS)

_NEEDED = {
    DOCUMENTS: ("id",),
    CHUNKS: ("id", "content", "doc_id"),
    RELATIONS: ("source_chunk_id", "target_chunk_id", "relationship_type", "confidence_score"),
}
_VECTOR_TYPES = {"vector": "vector", "halfvec": "halfvec", "_float4": "vector", "_float8": "vector", "_int4": "vector"}
"""Types of columns that hold vectors, and the types of pgvector for their comparison."""


MAKE_THEM = "create them in Python: ChunkTables(url, create=True)"


@dataclass(frozen=True)
class FoundColumn:
    """A column.

    Args:
        type: as in the catalogue: ``uuid``, ``vector``, ``jsonb``, ``_float4`` for a list of floats.
        dimension: of vectors, if the column has one.
    """

    type: str
    dimension: int | None

    @property
    def compared_as(self) -> str | None:
        """Return the type of pgvector for its comparison; None if it holds no vectors."""
        return _VECTOR_TYPES.get(self.type)


@dataclass(frozen=True)
class Layout:
    """The tables of a schema.

    Args:
        schema: its name.
        tables: the columns of each existing table, by name.
        version: of this package; None if the tables were made by another program.
        extension: the schema and the version of pgvector; None if it is not installed in this database.
        one_place: whether the database enforces that a country is stored with the document only.
    """

    schema: str
    tables: Mapping[str, Mapping[str, FoundColumn]]
    version: str | None
    extension: tuple[str, tuple[int, ...]] | None
    one_place: bool

    def checked(self, shown: str, *, may_create: bool = True) -> Layout:
        """Return this layout after checking that chunks can be read with it.

        Raises:
            SourceError: a table or a column is missing.
        """
        where = f'{shown}, schema "{self.schema}"'
        missing = [table for table in (DOCUMENTS, CHUNKS) if table not in self.tables]
        if missing:
            cure = "pass create=True to create the tables" if may_create else MAKE_THEM
            raise SourceError(f"{where}: there is no table {' and no table '.join(missing)}; {cure}")
        for table, needed in _NEEDED.items():
            columns = self.tables.get(table, dict.fromkeys(needed))
            lacking = [name for name in needed if name not in columns]
            if lacking:
                raise SourceError(
                    f"{where}: table {table} has no column {', '.join(lacking)} (found: {', '.join(columns)}); rename "
                    "the columns, or create a view with these names in another schema"
                )
        return self

    def vectors(self, column: str) -> FoundColumn:
        """Return a column of the chunks that holds vectors.

        Raises:
            QueryError: there is no such column.
        """
        vector_columns = {
            name: found_column for name, found_column in self.tables[CHUNKS].items() if found_column.compared_as is not None
        }
        if column in vector_columns:
            return vector_columns[column]
        if column in self.tables[CHUNKS]:
            raise QueryError(
                f"{CHUNKS}.{column} holds {self.tables[CHUNKS][column].type}, which is not a vector type; "
                f"{nearest(column, vector_columns)}"
            )
        has = nearest(column, vector_columns) if vector_columns else f"{CHUNKS} has no vector columns"
        raise QueryError(f"{CHUNKS} has no column {column!r}; {has}")

    def table(self, name: str) -> TableClause:
        """Return a table with its columns, for statements."""
        from sqlalchemy import column, table

        columns: list[ColumnClause[Any]] = [column(column_name) for column_name in self.tables[name]]
        return table(name, *columns, schema=quoted(self.schema))


def quoted(name: str) -> str:
    """Return a name that SQLAlchemy always quotes."""
    from sqlalchemy.sql import quoted_name

    return quoted_name(name, True)


def layout_of(connection: Connection, schema: str | None) -> Layout:
    """Return the layout of the tables of a schema.

    Args:
        connection: to the database.
        schema: its name; None: the first of the search path.

    Raises:
        SourceError: there is no such schema.
    """
    from sqlalchemy import text

    current = connection.execute(text("SELECT coalesce(:schema, current_schema())"), {"schema": schema}).scalar()
    listing = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
    known = list(connection.execute(text(listing)).scalars())
    if current is None or current not in known:
        missing = "no schema of the search path exists" if schema is None else f"there is no schema {schema!r} in the database"
        raise SourceError(f"{missing}; {nearest(schema or '', known)}; or {MAKE_THEM}")
    rows = connection.execute(
        text(
            "SELECT c.relname, a.attname, t.typname, a.atttypmod FROM pg_catalog.pg_class c "
            "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid "
            "JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE n.nspname = :schema AND c.relname = ANY(:names) "
            "AND c.relkind = ANY('{r,p,v,m,f}') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum"
        ),
        {"schema": current, "names": [DOCUMENTS, CHUNKS, RELATIONS, VERSION_TABLE]},
    )
    tables: dict[str, dict[str, FoundColumn]] = {}
    for table, name, kind, modifier in rows:
        dimension = modifier if kind in ("vector", "halfvec") and modifier > 0 else None
        tables.setdefault(table, {})[name] = FoundColumn(kind, dimension)
    version = None
    if tables.pop(VERSION_TABLE, None) is not None:
        from sqlalchemy import column, select
        from sqlalchemy import table as table_of

        of_versions = table_of(VERSION_TABLE, column("version_num"), schema=quoted(current))
        version = connection.execute(select(of_versions.c.version_num)).scalar()
    rules = connection.execute(
        text(
            "SELECT count(*) FROM pg_catalog.pg_constraint r JOIN pg_catalog.pg_class c ON c.oid = r.conrelid JOIN "
            "pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND c.relname = ANY(:names) "
            "AND r.conname = :rule AND r.convalidated"
        ),
        {"schema": current, "names": [DOCUMENTS, CHUNKS], "rule": ONE_PLACE},
    ).scalar()
    return Layout(current, tables, version, extension_of(connection), rules == 2)


def extension_of(connection: Connection) -> tuple[str, tuple[int, ...]] | None:
    """Return the schema and the version of pgvector in a database; None if it is not installed."""
    from sqlalchemy import text

    row = connection.execute(
        text(
            "SELECT n.nspname, e.extversion FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n "
            "ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
        )
    ).first()
    return None if row is None else (row[0], tuple(int(part) for part in row[1].split(".") if part.isdigit()))


_VERSIONS = Path(__file__).parent / "versions"
_MOST_DIMENSIONS = 16_000


def dimensions_of(given: Mapping[str, int] | None) -> dict[str, int]:
    """Return the dimension of each column's vectors.

    Raises:
        ConfigurationError: there is no such column, or the dimension is not possible.
    """
    for name, size in (given or {}).items():
        if name not in DIMENSIONS:
            raise ConfigurationError(f"dimensions: there is no column {name!r} (valid: {', '.join(DIMENSIONS)})")
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MOST_DIMENSIONS:
            raise ConfigurationError(f"dimensions: {name}: {size!r} is not an integer from 1 to {_MOST_DIMENSIONS:,}")
    return DIMENSIONS | dict(given or {})


def check_version(layout: Layout, shown: str) -> None:
    """Refuse tables of another version of this package.

    Raises:
        IndexMismatchError: they are older, and must be upgraded, or newer.
    """
    if layout.version is None:
        return
    scripts = _scripts()
    newest = scripts.get_current_head()
    if layout.version == newest:
        return
    known = [script.revision for script in scripts.walk_revisions()]
    where = f'{shown}, schema "{layout.schema}": the tables are of version {layout.version!r}'
    if layout.version in known:
        raise IndexMismatchError(f"{where}, and this program writes {newest!r}; call migrate() to upgrade them")
    raise IndexMismatchError(f"{where}, which this program does not know (it knows up to {newest!r}); upgrade nlp_retrieval")


def upgrade(
    connection: Connection, schema: str | None, dimensions: Mapping[str, int], shown: str, *, adopt: bool, to: str = "head"
) -> None:
    """Create the tables, or upgrade them to the newest version, within the caller's transaction.

    Args:
        connection: in a transaction.
        schema: of the tables; created if missing. None: the first of the search path.
        dimensions: of the vectors, by column.
        shown: the database, for messages.
        adopt: whether tables made by another program are taken over.
        to: the version.

    Raises:
        IndexMismatchError: the tables are newer than this program.
        SourceError: they were made by another program, pgvector is missing, or there is no schema for them.
    """
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from sqlalchemy import text
    from sqlalchemy.schema import CreateSchema

    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('nlp_retrieval.chunk_tables'))"))
    if schema is not None:
        existing = connection.execute(
            text("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :name"), {"name": schema}
        ).first()
        if existing is None:
            connection.execute(CreateSchema(quoted(schema)))
    layout = layout_of(connection, schema)
    if layout.version is None and layout.tables and not adopt:
        raise SourceError(
            f'{shown}, schema "{layout.schema}" holds tables of another program ({", ".join(layout.tables)}); they can be '
            "read as they are. To add what they lack, call migrate(adopt=True); to write elsewhere, name another schema"
        )
    if layout.tables:
        layout.checked(shown)
        if layout.tables[CHUNKS]["id"].type != "uuid":
            kind = layout.tables[CHUNKS]["id"].type
            raise SourceError(
                f"{shown}: {CHUNKS}.id is {kind}, not uuid; copy the rows into tables of this package, in another schema"
            )
    extension = _with_extension(connection, shown)
    scripts = _scripts()
    if layout.version is not None and layout.version not in {script.revision for script in scripts.walk_revisions()}:
        check_version(layout, shown)

    def steps(revision: Any, _: object) -> Any:
        return scripts._upgrade_revs(to, revision)

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(
            connection=connection,
            version_table=VERSION_TABLE,
            version_table_schema=quoted(layout.schema),
            chunk_schema=layout.schema,
            dimensions=dict(dimensions),
            extension=extension,
            found=layout.tables,
        )
        environment.run_migrations()


def _with_extension(connection: Connection, shown: str) -> str:
    """Return the schema of pgvector, after installing it in this database if needed."""
    from sqlalchemy import text

    extension = extension_of(connection)
    if extension is None:
        offered = connection.execute(text("SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'vector'")).first()
        if offered is None:
            version = connection.execute(text("SHOW server_version")).scalar()
            raise SourceError(
                f"{shown}: this PostgreSQL ({version}) has no pgvector; install it on the server (Debian and Ubuntu: "
                "postgresql-NN-pgvector, NN being the server's version), then CREATE EXTENSION vector"
            )
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        extension = extension_of(connection)
    if extension is None:
        raise SourceError(
            f"{shown}: pgvector could not be installed; ask a superuser to run CREATE EXTENSION vector in this database"
        )
    return extension[0]


def _scripts() -> ScriptDirectory:
    try:
        from alembic.script import ScriptDirectory
    except ImportError as error:
        raise DependencyError(f"ChunkTables need Alembic: {install('policy')} ({error})") from error
    return ScriptDirectory(str(_VERSIONS.parent), version_locations=[str(_VERSIONS)])
