"""Opening a database that a URL names, with errors that say what to install and never show a secret.

A URL is either SQLAlchemy's own form or ``env:NAME``, the name of an environment variable that holds it. Whatever is
shown, a ``repr``, a ``config`` or an error, goes through :func:`hide_secrets` or :func:`scrub` first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from nlp_retrieval.errors import DependencyError, SourceError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["connect", "hide_secrets", "resolve", "scrub"]

HIDDEN = "***"

# a password may hold an unescaped "@" or "/", so it ends at the last "@": hiding too much is better than too little,
# also in what is hardly a URL
_PASSWORD = re.compile(r"^(?!sqlite:///)((?>(?:[^:]*://)?)[^:@]*:)(.*)(?=@)", re.DOTALL)
_SECRET_SETTING = re.compile(r"(?i)([?&;][^=&;]*(?:pass|pwd|secret|token|key|credential|odbc_connect)[^=&;]*=)([^&;]*)")

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
"""What to install for a driver module or a dialect, where the name of the package is another one."""


def hide_secrets(url: str) -> str:
    """Return a database URL with its password, and settings that look like one, replaced by ``***``.

    Args:
        url: a URL, even one that is not well formed.
    """
    return _SECRET_SETTING.sub(rf"\g<1>{HIDDEN}", _PASSWORD.sub(rf"\g<1>{HIDDEN}", url))


def scrub(text: object, url: str) -> str:
    """Return a message, a driver's for instance, without the secrets of the URL that caused it.

    Args:
        text: the message, or an exception.
        url: the URL as it is.
    """
    found = _PASSWORD.search(url)
    secrets = [value for _, value in _SECRET_SETTING.findall(url)] + ([found[2]] if found else [])
    shown = str(text).strip().replace(url, hide_secrets(url))
    for secret in sorted({form for one in secrets for form in (one, unquote(one), unquote_plus(one))}, key=len):
        if secret and secret != HIDDEN:
            shown = shown.replace(secret, HIDDEN)
    return shown


def resolve(url: str) -> str:
    """Return the URL itself, or the one in the environment variable that ``env:NAME`` names.

    Raises:
        SourceError: the variable is not set, or the URL has lost its password to :func:`hide_secrets`.
    """
    if url.startswith("env:"):
        name = url.removeprefix("env:")
        if not (found := os.environ.get(name)):
            raise SourceError(f"{url}: the environment variable {name} is not set; export {name}=<database URL>")
        return found
    if f":{HIDDEN}@" in url or f"={HIDDEN}" in url:
        raise SourceError(
            f"{url}: this URL was taken from a config, which never shows a secret; "
            "put the whole URL into an environment variable NAME and pass url=env:NAME"
        )
    return url


@contextmanager
def connect(url: str) -> Iterator[Connection]:
    """Open a connection that streams its results and is rolled back at the end.

    Args:
        url: a SQLAlchemy URL, as :func:`resolve` returns it.

    Raises:
        DependencyError: SQLAlchemy or the database's driver is not installed.
        SourceError: the URL is malformed, or the database cannot be reached.
    """
    engine = _engine(url)
    from sqlalchemy.exc import SQLAlchemyError

    try:
        try:
            connection = engine.connect()
        except (SQLAlchemyError, OSError) as error:
            reason = scrub(getattr(error, "orig", None) or error, url)
            raise SourceError(
                f"{hide_secrets(url)}: the database cannot be opened: {reason}; check host, name, user and password"
            ) from None  # the driver's own message may show the password
        with connection:
            if engine.dialect.name == "sqlite":
                # what defines tables takes effect at once there, and a rollback would come too late
                connection.exec_driver_sql("PRAGMA query_only = ON")
            yield connection.execution_options(stream_results=True)
    finally:
        engine.dispose()


def _engine(url: str) -> Engine:
    try:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise DependencyError(f'DatabaseLoader needs SQLAlchemy: pip install "nlp_retrieval[database]" ({error})') from error
    shown = hide_secrets(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SourceError(
            f"{shown}: not a database URL; write driver://user:password@host/name or sqlite:///path/to/file.db"
        ) from None
    database = parsed.database or ":memory:"
    is_file = parsed.get_backend_name() == "sqlite" and not database.startswith((":memory:", "file:"))
    if is_file and not Path(database).is_file():
        # SQLite would create the file, and the complaint would be about a missing table
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
