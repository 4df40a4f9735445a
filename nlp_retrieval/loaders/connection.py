"""Opening a database by its URL, with errors that give advice and never show a secret.

A URL is either in SQLAlchemy's own form or ``env:NAME``, the name of an environment variable that holds it. All output, such as
a ``repr``, a ``config`` or an error, goes through :func:`hide_secrets` or :func:`scrub` first.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from nlp_retrieval.core.secrets import HIDDEN, hide_parts, read_variable, was_read
from nlp_retrieval.errors import DependencyError, SourceError, install

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["HIDDEN", "connect", "hide_secrets", "make_engine", "resolve", "scrub"]

# a password may hold an unescaped "@" or "/", so it ends at the last "@": hiding too much is better than too little
_PASSWORD = re.compile(r"^(?!sqlite:///)((?>(?:[^:]*://)?)[^:@]*:)(.+)(?=@)", re.DOTALL)
_SETTING = re.compile(r"([?&;][^=&;?]*=)([^&;]+)")
_KEYWORD = re.compile(r"(\b\w++\s*+=\s*+)('(?:[^'\\]|\\.)*+'?|[^\s'&]++)")  # host=... password=..., the form of libpq
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|credential|odbc_connect", re.IGNORECASE)

_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}
_READING_PRAGMAS = {
    "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list", "database_list",
    "data_version",
}  # fmt: skip

_PACKAGES = {
    "psycopg2": "psycopg2-binary",
    "psycopg": '"psycopg[binary]"',
    "MySQLdb": "mysqlclient",
    "duckdb": "duckdb-engine",
    "snowflake": "snowflake-sqlalchemy",
    "bigquery": "sqlalchemy-bigquery",
    "redshift": "sqlalchemy-redshift",
    "clickhouse": "clickhouse-sqlalchemy",
    "trino": "trino[sqlalchemy]",
    "databricks": "databricks-sqlalchemy",
}
"""Package to install for a driver module or a dialect, where its name differs."""


def hide_secrets(url: str) -> str:
    """Return a database URL with its password, and settings that look like one, replaced by ``***``.

    Args:
        url: a URL or libpq settings (``host=... password=...``), even malformed; ``env:NAME`` stays unchanged.
    """
    return url if url.startswith("env:") else _hidden(url)[0]


def _hidden(url: str) -> tuple[str, set[str]]:
    """A URL without its secrets, and the secrets."""
    secrets: set[str] = set()

    def hide(match: re.Match[str]) -> str:
        if match.re is not _PASSWORD and not _SECRET_NAME.search(match[1]):
            return match[0]
        secrets.add(match[2].strip("'"))
        return f"{match[1]}{HIDDEN}"

    # one pass may uncover another secret
    while (shown := _KEYWORD.sub(hide, _SETTING.sub(hide, _PASSWORD.sub(hide, url)))) != url:
        url = shown
    return url, secrets - {HIDDEN, ""}


def scrub(text: object, url: str) -> str:
    """Return a message, such as a driver's, without the secrets of the URL that caused it.

    A URL from an environment variable is a secret as a whole: no part of it is shown.

    Args:
        text: the message, or an exception.
        url: the URL with its secrets.
    """
    hidden, secrets = _hidden(url)
    shown = str(text).strip()
    shown = hide_parts(shown, url) if was_read(url) else shown.replace(url, hidden)
    forms = {form for secret in secrets for form in (secret, unquote(secret), unquote_plus(secret))}
    for form in sorted(forms, key=len, reverse=True):
        shown = shown.replace(form, HIDDEN)
    return shown


def resolve(url: str) -> str:
    """Return the URL itself, or the one in the environment variable that ``env:NAME`` names.

    Raises:
        SourceError: the variable is not set, or the URL has lost its password to :func:`hide_secrets`.
    """
    if url.startswith("env:"):
        name = url.removeprefix("env:")
        if not (value := read_variable(name)):
            raise SourceError(f"{url}: the environment variable {name} is not set; export {name}=<its value>")
        return value
    if f":{HIDDEN}@" in url or f"={HIDDEN}" in url:
        raise SourceError(
            f"{url}: this URL was taken from a config, which never shows a secret; "
            "put the whole URL into an environment variable NAME and pass url=env:NAME"
        )
    return url


@contextmanager
def connect(url: str, shown: str | None = None) -> Iterator[Connection]:
    """Open a connection that streams its results and is rolled back at the end.

    Args:
        url: a SQLAlchemy URL, as :func:`resolve` returns it.
        shown: shown in messages instead; by default the URL without its secrets. An environment variable may hold something
            other than a URL, which must not be shown: pass ``env:NAME`` for it.

    Raises:
        DependencyError: SQLAlchemy or the database's driver is not installed.
        SourceError: the URL is malformed, or the database cannot be reached.
    """
    shown = hide_secrets(url) if shown is None else shown
    engine = make_engine(url, shown)
    from sqlalchemy.exc import SQLAlchemyError

    try:
        try:
            connection = engine.connect()
        except (SQLAlchemyError, OSError) as error:
            reason = scrub(getattr(error, "orig", None) or error, url)
            raise SourceError(
                f"{shown}: the database cannot be opened: {reason}; check host, name, user and password"
            ) from None  # the driver's own message may show the password
        with connection:
            if engine.dialect.name == "sqlite":
                # in SQLite, statements that define tables take effect at once, and a rollback would come too late
                connection.exec_driver_sql("PRAGMA query_only = ON")
                _allow_reading_alone(connection.connection.driver_connection)
            yield connection.execution_options(stream_results=True)
    finally:
        engine.dispose()


def _allow_reading_alone(driver: object) -> None:
    """Forbid operations that query_only still allows: attaching files, copying to them, switching journals."""
    if isinstance(driver, sqlite3.Connection):
        driver.set_authorizer(_reads)


def _reads(action: int, name: str | None, *_: str | None) -> int:
    """Return whether a part of a statement only reads; an authorizer of SQLite, where ``name`` is the name of a pragma."""
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if name is not None and name.lower() in _READING_PRAGMAS else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_UPDATE and name == "sqlite_master":
        return sqlite3.SQLITE_OK  # requested when a virtual table (full text) is opened; query_only forbids actual writes
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def make_engine(url: str, shown: str, *, who: str = "DatabaseLoader", may_create: bool = False) -> Engine:
    """Return a function that opens connections to a database, one per transaction; none is opened yet.

    Args:
        url: a SQLAlchemy URL, as :func:`resolve` returns it.
        shown: what messages show instead.
        who: needs SQLAlchemy, for the message if it is not installed.
        may_create: whether a missing SQLite file is created with the first connection.

    Raises:
        DependencyError: SQLAlchemy or the database's driver is not installed.
        SourceError: the URL is malformed, or there is no such file.
    """
    try:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise DependencyError(f"{who} needs SQLAlchemy: {install('database')} ({error})") from error
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SourceError(
            f"{shown}: not a database URL; write driver://host/name (user and password in front of the host, with : and @) or sqlite:///path/to/file.db"
        ) from None
    database = parsed.database or ":memory:"
    is_file = parsed.get_backend_name() == "sqlite" and not database.startswith((":memory:", "file:"))
    if is_file and database.startswith("~"):
        database = str(Path(database).expanduser())
        parsed = parsed.set(database=database)
    if is_file and not may_create and not Path(database).is_file():
        # SQLite would create the file, and the error would be about a missing table
        raise SourceError(f"{shown}: no such file; check the path (sqlite:///relative.db, sqlite:////absolute.db)")
    try:
        engine = create_engine(parsed, poolclass=NullPool, hide_parameters=True)
    except NoSuchModuleError:
        dialect = parsed.drivername.split("+")[0]
        package = _PACKAGES.get(dialect, f"sqlalchemy-{dialect}")
        raise DependencyError(
            f"{shown}: SQLAlchemy knows no {parsed.drivername!r}; check its spelling, or install its dialect "
            f"(probably pip install {package})"
        ) from None
    except ImportError as error:
        module = (error.name or parsed.drivername).split(".")[0]
        raise DependencyError(
            f"{shown}: the driver {module} is not installed: pip install {_PACKAGES.get(module, module)}"
        ) from error
    except (SQLAlchemyError, TypeError, ValueError) as error:
        raise SourceError(f"{shown}: not a usable database URL: {scrub(error, url)}") from None
    if engine.dialect.is_async:
        raise SourceError(f"{shown}: {parsed.drivername} is an asynchronous driver; use a synchronous one")
    return engine
