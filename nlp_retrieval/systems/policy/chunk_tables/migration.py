"""Creating and upgrading the tables: all in one transaction, so that a killed process leaves the old ones.

Versions are Alembic's, in this package; a table of the schema stores its version. Simultaneous upgrades run one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexMismatchError, SourceError, install
from nlp_retrieval.systems.policy.chunk_tables.layout import (
    CHUNKS,
    DIMENSIONS,
    VERSION_TABLE,
    Layout,
    extension_of,
    layout_of,
    quoted,
)

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection

__all__ = ["check_version", "dimensions_of", "upgrade"]

_VERSIONS = Path(__file__).parent / "versions"
_MOST_DIMENSIONS = 16_000


def dimensions_of(given: Mapping[str, int] | None) -> dict[str, int]:
    """Return the dimension of each column's vectors.

    Args:
        given: for some of the columns.

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
    place = f'{shown}, schema "{layout.schema}": the tables have version {layout.version!r}'
    if layout.version in known:
        raise IndexMismatchError(f"{place}, this program writes {newest!r}; call migrate() to upgrade them")
    raise IndexMismatchError(f"{place}, which this program does not know (it knows up to {newest!r}); upgrade nlp_retrieval")


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
        there = connection.execute(
            text("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :name"), {"name": schema}
        ).first()
        if there is None:
            connection.execute(CreateSchema(quoted(schema)))
    layout = layout_of(connection, schema)
    if layout.version is None and layout.tables and not adopt:
        raise SourceError(
            f'{shown}, schema "{layout.schema}" holds tables that somebody else made ({", ".join(layout.tables)}); they can be '
            "read as they are. To add what they lack, call migrate(adopt=True); to write elsewhere, name another schema"
        )
    if layout.tables:
        layout.checked(shown)
        if layout.tables[CHUNKS]["id"].type != "uuid":
            kind = layout.tables[CHUNKS]["id"].type
            raise SourceError(
                f"{shown}: {CHUNKS}.id is {kind}, no uuid; copy the rows into tables of our own, in another schema"
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

    found = extension_of(connection)
    if found is None:
        offered = connection.execute(text("SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'vector'")).first()
        if offered is None:
            version = connection.execute(text("SHOW server_version")).scalar()
            raise SourceError(
                f"{shown}: this PostgreSQL ({version}) has no pgvector; install it on the server (Debian and Ubuntu: "
                "postgresql-NN-pgvector, NN being the server's version), then CREATE EXTENSION vector"
            )
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        found = extension_of(connection)
    if found is None:
        raise SourceError(f"{shown}: pgvector could not be installed; let a superuser CREATE EXTENSION vector in this database")
    return found[0]


def _scripts() -> ScriptDirectory:
    try:
        from alembic.script import ScriptDirectory
    except ImportError as error:
        raise DependencyError(f"ChunkTables need Alembic: {install('policy')} ({error})") from error
    return ScriptDirectory(str(_VERSIONS.parent), version_locations=[str(_VERSIONS)])
