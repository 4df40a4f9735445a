"""Items from any database that SQLAlchemy reaches: PostgreSQL, MySQL, SQLite, Oracle, SQL Server, DuckDB, ...

Rows are always streamed, values reach SQL only as bound parameters, and a table's name is looked up in the database's own list
and quoted by SQLAlchemy, never pasted into a statement.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, given, may_set
from nlp_retrieval.errors import ConfigurationError, RetrievalError, SourceError, nearest
from nlp_retrieval.loaders.connection import connect, hide_secrets, resolve, scrub
from nlp_retrieval.loaders.fields import RecordLoader, missing_field
from nlp_retrieval.loaders.files import JsonObject
from nlp_retrieval.loaders.records import ID_NAMES, as_id
from nlp_retrieval.loaders.values import plain_value

if TYPE_CHECKING:
    from sqlalchemy import ColumnClause, Connection, Executable

__all__ = ["DatabaseLoader"]

Scalar = str | int | float | bool | None
_BATCH = 500
_CURE = "convert it in a query (CAST), or leave it out with metadata_fields"


class DatabaseLoader(RecordLoader):
    r"""Items from a database: the rows of a table or of a query.

    Rows of a table come ordered by id, so that the same rows give the same index; order a query yourself
    (``ORDER BY``). In metadata, dates and times become ISO 8601 text, decimals floats, UUIDs text, NULL null; binary
    values and intervals are refused. The connection is rolled back at the end; with a server, use an account that
    may only read.

    Args:
        url: a SQLAlchemy URL (``postgresql+psycopg://user@host/name``, ``sqlite:///file.db``), or ``env:NAME``, the
            name of an environment variable that holds it, so that a config file needs no password. A password in the
            URL itself is shown as ``***`` by ``repr`` and ``config``, which then cannot open the database again.
        query: an SQL query with ``:name`` for a parameter (a plain colon is written ``\:``). Not with ``table``.
        table: the name of a table or view, with its schema if it needs one (``schema.table``). Not with ``query``.
        parameters: the values of the query's parameters; a list for ``IN :name``.
        id_field: the column that holds the id, unique: text, integer or UUID; of a query also a path into a JSON column
            (``doc.id``), or None: the number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.
    """

    name = "database"
    manifest_may_set = may_set(
        *(*FIELD_NAMES, "table", "parameters"),
        url=given("ask the database"),
        query=given("run the statement"),
    )

    def __init__(
        self,
        url: str,
        query: str | None = None,
        table: str | None = None,
        parameters: Mapping[str, Scalar | Sequence[Scalar]] | None = None,
        id_field: str | None = "id",
        content_field: str | Sequence[str] = "content",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
    ) -> None:
        super().__init__(id_field, content_field, title_field, metadata_fields)
        # config, repr and fingerprints use these arguments, and are written to disk and to W&B
        self._arguments["url"] = self.path = hide_secrets(url)
        if (query is None) == (table is None):
            raise ConfigurationError("DatabaseLoader: pass either query=<SQL> or table=<name>")
        if parameters and query is None:
            raise ConfigurationError("DatabaseLoader: parameters belong to a query; a table has none")
        if table is not None and id_field is None:
            raise ConfigurationError("DatabaseLoader: the rows of a table have no order to be numbered in; name the id_field")
        self._url = url
        self.query = query
        self.table = table
        self.parameters = parameters

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)  # keeps the URL with its password, which the arguments lack

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the rows as objects, in batches from the server.

        Raises:
            DependencyError: SQLAlchemy or the database's driver is not installed.
            SourceError: the database, the table or a column is missing, the SQL fails, or a value cannot be converted to JSON.
            ConfigurationError: the parameters do not match the query.
        """
        url = resolve(self._url)
        shown = str(self.path)
        source = f"{shown}, {f'table {self.table}' if self.table is not None else 'query'}"
        with connect(url, shown) as connection:
            for number, row in enumerate(self._rows(connection, source, url), start=1):
                yield self._record(f"{source}, row {number}", row)

    def _rows(self, connection: Connection, source: str, url: str) -> Iterator[dict[str, object]]:
        try:
            statement = self._query() if self.table is None else self._select(connection, source, self.table)
            values = {key: _as_list(value) for key, value in (self.parameters or {}).items()}
            result = connection.execution_options(yield_per=_BATCH).execute(statement, values)
            columns = self._columns(source, list(result.keys()) if result.returns_rows else [])
            for row in result:
                yield {column: row[position] for position, column in columns.items()}
        except RetrievalError:
            raise
        except Exception as error:  # drivers raise any exceptions, and their messages may show the password
            reason = scrub(getattr(error, "orig", None) or error, url)
            raise SourceError(f"{source}: the database refused: {reason}; check the SQL") from None

    def _query(self) -> Executable:
        from sqlalchemy import bindparam, text

        statement = text(self.query or "")
        given = self.parameters or {}
        wanted = list(statement.compile().params)
        for name in (*(name for name in wanted if name not in given), *(name for name in given if name not in wanted)):
            state = "no value for" if name in wanted else "the query has no"
            raise ConfigurationError(
                f"DatabaseLoader: {state} parameter {name!r}; {nearest(name, wanted)}. "
                "A colon that starts no parameter is written \\:"
            )
        lists = [name for name, value in given.items() if isinstance(_as_list(value), list)]
        return statement.bindparams(*(bindparam(name, expanding=True) for name in lists))

    def _select(self, connection: Connection, source: str, name: str) -> Executable:
        from sqlalchemy import column, inspect, select, table

        inspector = inspect(connection)
        schema, _, plain = name.rpartition(".")
        readings: list[tuple[str | None, str]] = [(None, name)]
        if schema and schema in inspector.get_schema_names():
            readings.append((schema, plain))
        known: list[str] = []
        for schema_read, wanted in readings:
            tables = [*inspector.get_table_names(schema=schema_read), *inspector.get_view_names(schema=schema_read)]
            if wanted in tables:
                columns = [described["name"] for described in inspector.get_columns(wanted, schema=schema_read)]
                if self.id_field not in columns:
                    raise missing_field(source, "id_field", str(self.id_field), columns, ID_NAMES)
                used: list[ColumnClause[object]] = [column(columns[position]) for position in self._columns(source, columns)]
                # the database's own spelling of the name says whether it must be quoted
                rows = table(tables[tables.index(wanted)], *used, schema=schema_read)
                return select(*used).select_from(rows).order_by(rows.c[str(self.id_field)])
            known.extend(f"{schema_read}.{known_table}" if schema_read else known_table for known_table in tables)
        raise SourceError(f"{source}: no such table or view; {nearest(name, known)}")

    def _columns(self, source: str, found: list[str]) -> dict[int, str]:
        """The positions and names of the columns in use.

        Raises:
            SourceError: one is missing, or the name of one occurs twice.
        """
        if not found:
            raise SourceError(f"{source}: the statement gives no rows; pass a SELECT")
        self.check_columns(source, found)
        used = self.used_columns(found)
        for column in used:
            if found.count(column) > 1:
                raise SourceError(f'{source}: there are {found.count(column)} columns "{column}"; rename one with AS')
        return {position: column for position, column in enumerate(found) if column in used}

    def _record(self, place: str, row: dict[str, object]) -> tuple[str, JsonObject]:
        field = self.id_field
        if field is not None and field in row:
            known = plain_value(place, field, row[field], whole=True, cure=_CURE)
            row[field] = known
            place = f"{place} (id {as_id(place, field, known)!r:.80})"
        return place, {name: plain_value(place, name, value, cure=_CURE) for name, value in row.items()}


def _as_list(value: Scalar | Sequence[Scalar]) -> Scalar | list[Scalar]:
    return value if value is None or isinstance(value, (str, int, float)) else list(value)
