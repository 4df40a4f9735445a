"""Items from any database that SQLAlchemy reaches: PostgreSQL, MySQL, SQLite, Oracle, SQL Server, DuckDB, ...

A URL is either in SQLAlchemy's own form or ``env:NAME``, the name of an environment variable that holds it; no output shows its
secrets. Rows are streamed, values reach SQL only as bound parameters, and a table's name is looked up in the database's own
list and quoted by SQLAlchemy.
"""

from __future__ import annotations

import copy
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, unquote_plus

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, given, may_set
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.records import JsonObject, as_id, plain_value
from nlp_retrieval.core.secrets import HIDDEN, hide_values, read_variable, was_read
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalError, SourceError, install, nearest
from nlp_retrieval.loaders.records import RecordLoader

if TYPE_CHECKING:
    from sqlalchemy import ColumnClause, Connection, Engine, Executable

_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|credential|odbc_connect", re.IGNORECASE)
_SETTING = re.compile(r"([^\s?&;=]*)\s*=\s*('(?:[^'\\]|\\.)*'|[^&;\s]+)")
_PART = re.compile(r"([^\s:/?&;=@,'\"]++)(?!\s*=)")
"""A part of an address, but not the name of a setting."""


def hide_secrets(url: str) -> str:
    """Return a database URL with ``***`` in place of a user with a password, and of settings that may hold one.

    Args:
        url: a URL or libpq settings (``host=... password=...``), even malformed; ``env:NAME`` stays unchanged.

    Examples:
        >>> hide_secrets("postgresql+psycopg://reader:secret@db.example/zoo")
        'postgresql+psycopg://***@db.example/zoo'
    """
    scheme, sign, address = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    if url.startswith(("env:", "sqlite:///")) and "?" not in url:
        return url
    user, at, place = address.rpartition("@")  # a password may hold an "@" itself: hiding too much is better than too little
    where, mark, settings = [*re.split(r"([?;&\s])", place, maxsplit=1), "", ""][:3]
    is_mixed = (not sign or re.search(r"[?;&\s]", user)) and _SECRET_NAME.search(url)
    if is_mixed or not re.fullmatch(r"[\w+.-]*", scheme):
        return f"{scheme if scheme.isidentifier() else ''}{sign}{HIDDEN}"
    settings = HIDDEN if _SECRET_NAME.search(settings) else settings
    return f"{scheme}{sign}{HIDDEN if ':' in user else user}{at}{where}{mark}{settings}"


def scrub(text: object, url: str) -> str:
    """Return a message, such as a driver's, without the secrets of the URL that caused it.

    A URL from an environment variable is a secret as a whole: no part of it is shown.

    Args:
        text: the message, or an exception.
        url: the URL with its secrets.

    Examples:
        >>> scrub("cannot reach reader:secret@db.example", "postgresql://reader:secret@db.example/zoo")
        'cannot reach reader:***@db.example'
    """
    address = url.partition("://")[2] or url
    hidden = {value for name, value in _SETTING.findall(address) if _SECRET_NAME.search(name)}
    hidden.add(address.rpartition("@")[0].partition(":")[2])
    hidden |= set(_PART.findall(address)) if was_read(url) else set()
    hidden |= {form for part in hidden for form in (part.strip("'"), unquote(part), unquote_plus(part))}
    shown = str(text).strip().replace(url, hide_secrets(url))
    return hide_values(shown, sorted(hidden - {""}, key=len, reverse=True))


def resolve(url: str) -> str:
    """Return the URL itself, or the one in the environment variable that ``env:NAME`` names.

    Raises:
        SourceError: the variable is not set, or the URL has lost its password to :func:`hide_secrets`.

    Examples:
        >>> resolve("sqlite:///zoo.db")
        'sqlite:///zoo.db'
    """
    if url.startswith("env:"):
        name = url.removeprefix("env:")
        if not (value := read_variable(name)):
            raise SourceError(f"{url}: the environment variable {name} is not set; export {name}=<its value>")
        return value
    if HIDDEN in url:
        raise SourceError(
            f"{url}: this URL was taken from a config, which never shows a secret; "
            "put the whole URL into an environment variable NAME and pass url=env:NAME"
        )
    return url


def make_engine(url: str, shown: str, *, may_create: bool = False, read_only: bool = False) -> Engine:
    """Return an engine that opens a connection for each use; none is opened yet.

    Args:
        url: a SQLAlchemy URL, as :func:`resolve` returns it.
        shown: what messages show instead.
        may_create: whether a missing SQLite file is created with the first connection.
        read_only: whether an SQLite file is opened for reading alone.

    Raises:
        DependencyError: SQLAlchemy or the database's driver is not installed.
        SourceError: the URL is malformed, or there is no such file.

    Examples:
        >>> engine = make_engine("sqlite:///zoo.db", "sqlite:///zoo.db", may_create=True)
    """
    try:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise DependencyError(f"a database needs SQLAlchemy: {install('database')} ({error})") from error
    try:
        parsed = make_url(url)
        database = parsed.database or ":memory:"
        is_file = parsed.get_backend_name() == "sqlite" and not database.startswith((":memory:", "file:"))
        if is_file:
            database = str(expanded(database))
            parsed = parsed.set(database=database)
        if read_only and (is_file or database.startswith("file:")):
            address = Path(database).absolute().as_uri() if is_file else database
            parsed = parsed.set(database=address).update_query_dict({"mode": "ro", "uri": "true"})
        engine = create_engine(parsed, poolclass=NullPool, hide_parameters=True)
    except NoSuchModuleError:
        cure = "correct it (as in postgresql+psycopg://), or install its dialect"
        raise DependencyError(f"{shown}: SQLAlchemy knows no {parsed.drivername!r}; {cure}") from None
    except ImportError as error:
        raise DependencyError(f"{shown}: the driver is not installed ({error}); install its package") from error
    except (SQLAlchemyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{shown}: not a database URL ({scrub(error, url)}); write driver://user:password@host/name or sqlite:///file.db"
        ) from None
    if is_file and not may_create and not Path(database).is_file():
        # SQLite would create the file, and the error would be about a missing table
        raise SourceError(f"{shown}: no such file; check the path (sqlite:///relative.db, sqlite:////absolute.db)")
    return engine


def _attaches_nothing(action: int, *_: str | None) -> int:
    """Forbid what a database opened for reading still allows: ATTACH and VACUUM INTO create files."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


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
        id_field: the column that holds the id, unique: text, integer or UUID; of a query also None: the
            number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.

    Examples:
        >>> import sqlite3
        >>> database = sqlite3.connect("zoo.db")
        >>> with database:
        ...     _ = database.execute("CREATE TABLE animals (id TEXT, name TEXT, text TEXT)")
        ...     _ = database.execute("INSERT INTO animals VALUES ('1', 'Fox', 'It hunts.')")
        >>> DatabaseLoader("sqlite:///zoo.db", table="animals", content_field="text", title_field="name").load()
        [SearchableItem(item_id='1', title='Fox', content='It hunts.')]
    """

    name = "database"
    manifest_may_set = may_set(
        *FIELD_NAMES, "table", "parameters", url=given("ask the database"), query=given("run the statement")
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
        """Yield the rows as objects, in batches from the server."""
        url, shown = resolve(self._url), str(self.path)
        source = f"{shown}, {f'table {self.table}' if self.table is not None else 'query'}"
        engine = make_engine(url, shown, read_only=True)
        try:
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                if isinstance(driver, sqlite3.Connection):
                    driver.set_authorizer(_attaches_nothing)
                statement = self._query() if self.table is None else self._select(connection, source, self.table)
                values = {key: _as_list(value) for key, value in (self.parameters or {}).items()}
                result = connection.execution_options(stream_results=True, yield_per=_BATCH).execute(statement, values)
                names = list(result.keys()) if result.returns_rows else []
                used = self._columns(source, names)
                for number, row in enumerate(result, start=1):
                    cells = dict(zip(names, row, strict=True))
                    yield self._record(f"{source}, row {number}", {name: cells[name] for name in used})
        except RetrievalError:
            raise
        except Exception as error:  # drivers raise any exceptions, and their messages may show the password
            reason = scrub(getattr(error, "orig", None) or error, url)
            raise SourceError(f"{source}: the database refused: {reason}; check the URL and the SQL") from None
        finally:
            engine.dispose()

    def _query(self) -> Executable:
        from sqlalchemy import bindparam, text

        statement = text(self.query or "")
        bound = self.parameters or {}
        wanted = set(statement.compile().params)
        if wanted != set(bound):
            raise ConfigurationError(
                f"DatabaseLoader: the query has the parameters {sorted(wanted)}, and parameters gives {sorted(bound)}; give "
                "each a value, and write a colon that starts no parameter \\:"
            )
        lists = [name for name, value in bound.items() if isinstance(_as_list(value), list)]
        return statement.bindparams(*(bindparam(name, expanding=True) for name in lists))

    def _select(self, connection: Connection, source: str, name: str) -> Executable:
        from sqlalchemy import column, inspect, select, table

        inspector = inspect(connection)
        schema = name.rpartition(".")[0]
        known: dict[str, tuple[str | None, str]] = {}
        for read in (None, schema) if schema in inspector.get_schema_names() else (None,):
            for name_there in [*inspector.get_table_names(schema=read), *inspector.get_view_names(schema=read)]:
                known.setdefault(f"{read}.{name_there}" if read else name_there, (read, name_there))
        if name not in known:
            raise SourceError(f"{source}: no such table or view; {nearest(name, known)}")
        schema_read, name_there = known[name]
        columns = [described["name"] for described in inspector.get_columns(name_there, schema=schema_read)]
        used: list[ColumnClause[object]] = [column(name) for name in self._columns(source, columns)]
        # the database's own spelling of the name says whether it must be quoted
        rows = table(name_there, *used, schema=schema_read)
        return select(*used).select_from(rows).order_by(rows.c[str(self._id_field_in(columns))])

    def _columns(self, source: str, names: list[str]) -> list[str]:
        """The columns in use."""
        if not names:
            raise SourceError(f"{source}: the statement gives no rows; pass a SELECT")
        self.check_columns(source, names)
        return self.used_columns(names)

    def _record(self, location: str, row: dict[str, object]) -> tuple[str, JsonObject]:
        field = self._id_field_in(row)
        if field is not None and field in row:
            known = plain_value(location, field, row[field], whole=True, cure=_CURE)
            row[field] = known
            location = f"{location} (id {as_id(location, field, known)!r:.80})"
        return location, {name: plain_value(location, name, value, cure=_CURE) for name, value in row.items()}


def _as_list(value: Scalar | Sequence[Scalar]) -> Scalar | list[Scalar]:
    return value if value is None or isinstance(value, (str, int, float)) else list(value)
