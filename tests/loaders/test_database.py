"""DatabaseLoader, on SQLite: rows of tables and queries."""

from __future__ import annotations

import datetime
import decimal
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval.core.files.records import plain_value
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ConfigurationError, DependencyError, SourceError
from nlp_retrieval.loaders.database import DatabaseLoader

pytest.importorskip("sqlalchemy")

Make = Callable[..., str]
SECRET = "s3cr@t/x"


@pytest.fixture
def database(tmp_path: Path) -> Make:
    """Run statements on a new database, and return its URL."""

    def make(*statements: str, rows: list[tuple[Any, ...]] | None = None) -> str:
        path = tmp_path / "docs.db"
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                if rows is not None and statement.startswith("INSERT"):
                    connection.executemany(statement, rows)
                else:
                    connection.execute(statement)
            connection.commit()
        return f"sqlite:///{path}"

    return make


@pytest.fixture
def url(database: Make) -> str:
    return database(
        "CREATE TABLE docs (id INTEGER, content TEXT, title TEXT, year INTEGER, price NUMERIC)",
        "INSERT INTO docs VALUES (?, ?, ?, ?, ?)",
        rows=[(2, "two é漢🙂", None, 1999, 1.5), (1, "one", "T", None, 2)],
    )


def error_of(loader: DatabaseLoader, kind: type[Exception] = SourceError) -> str:
    with pytest.raises(kind) as caught:
        loader.load()
    return str(caught.value)


def test_rows_of_a_table_become_items_ordered_by_id(url: str) -> None:
    assert DatabaseLoader(url, table="docs").load() == [
        SearchableItem(item_id="1", content="one", metadata={"title": "T", "year": None, "price": 2}),
        SearchableItem(item_id="2", content="two é漢🙂", metadata={"year": 1999, "price": 1.5}),
    ]


def test_rows_of_a_query_come_in_its_order_with_bound_parameters(url: str) -> None:
    query = "SELECT id AS k, content AS body, year FROM docs WHERE year > :since OR id IN :ids ORDER BY id DESC"
    loader = DatabaseLoader(url, query=query, parameters={"since": 1990, "ids": [1, 7]}, id_field="k", content_field="body")
    assert [(item.item_id, item.metadata) for item in loader.stream()] == [("2", {"year": 1999}), ("1", {"year": None})]


@pytest.mark.parametrize("name", ['we"ird; DROP TABLE docs; --', "select", "a.b", "Ünï çödé", "per%cent:x", "[x]`y`"])
def test_tables_and_columns_of_any_name_are_quoted(database: Make, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    url = database(
        f"CREATE TABLE {quoted} ({quoted} TEXT, content TEXT)",
        f"INSERT INTO {quoted} VALUES ('a', 'text')",
        "CREATE TABLE docs (id TEXT)",
    )
    assert DatabaseLoader(url, table=name, id_field=name).load() == [SearchableItem(item_id="a", content="text")]
    assert 'no "content" field' in error_of(DatabaseLoader(url, table="docs"))


def test_a_table_that_is_not_there_is_an_error_that_lists_those_that_are(url: str, subtests: pytest.Subtests) -> None:
    for name in ["doc", "docs; DROP TABLE docs", "docs--", '"docs"', "main.nothing", "other.docs", "", "*"]:
        with subtests.test(name=name):
            message = error_of(DatabaseLoader(url, table=name))
            assert f"table {name}: no such table or view; " in message
            assert "docs" in message.split("no such table")[1]
            assert len(DatabaseLoader(url, table="docs").load()) == 2


def test_a_wrong_column_or_parameter_is_an_error_that_lists_those_that_are_there(url: str) -> None:
    message = error_of(DatabaseLoader(url, table="docs", content_field="text"))
    assert message.endswith(
        'table docs: no "text" field (found: "id", "content", "title", "year", "price"); pass content_field="content"'
    )
    assert "pass id_field=" in error_of(DatabaseLoader(url, query="SELECT content FROM docs"))
    assert 'pass title_field="title"' in error_of(DatabaseLoader(url, table="docs", title_field="heading"))
    loader = DatabaseLoader(url, query="SELECT a.*, b.year FROM docs a, docs b")
    assert '2 columns are called "year"; rename one' in error_of(loader)
    loader = DatabaseLoader(url, query="SELECT * FROM docs WHERE year > :since", parameters={"sinec": 1})
    assert "the query has the parameters ['since'], and parameters gives ['sinec']" in error_of(loader, ConfigurationError)
    for settings in [{}, {"query": "SELECT 1", "table": "docs"}, {"table": "docs", "id_field": None}]:
        with pytest.raises(ConfigurationError, match=r"pass either query|name the id_field"):
            DatabaseLoader(url, **settings)


def test_values_of_a_database_become_json_values_or_are_refused() -> None:
    for value, expected in [
        (datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.UTC), "2020-01-02T03:04:00+00:00"),
        (datetime.time(3, 4), "03:04:00"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ([decimal.Decimal("1"), None, {"a": datetime.date(2020, 1, 2)}], [1.0, None, {"a": "2020-01-02"}]),
    ]:
        found = plain_value("here", "column", value)
        assert (found, type(found)) == (expected, type(expected))
    assert plain_value("here", "id", decimal.Decimal(7), whole=True) == 7
    for value in [memoryview(b"x"), datetime.timedelta(1), {1, 2}, [b"x"]]:
        with pytest.raises(SourceError, match=r'here: column "c" holds .*convert it to text, or leave it out'):
            plain_value("here", "c", value)


def test_bad_sql_is_an_error_and_changes_nothing(url: str, subtests: pytest.Subtests) -> None:
    for query, expected in [
        ("SELEC 1", 'query: the database refused: near "SELEC": syntax error; check the URL and the SQL'),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT 1 AS id; DROP TABLE docs", "the database refused: "),
        ("UPDATE docs SET content = 'x'", "the database refused: "),
        ("DROP TABLE docs", "the database refused: "),
        ("", "query: the statement gives no rows; pass a SELECT"),
    ]:
        with subtests.test(query=query, expected=expected):
            assert expected in error_of(DatabaseLoader(url, query=query))
            assert [item.content for item in DatabaseLoader(url, table="docs").stream()] == ["one", "two é漢🙂"]


def test_a_missing_sqlite_file_is_an_error_and_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    said = error_of(DatabaseLoader(f"sqlite:///{path}", table="docs"))
    assert f"sqlite:///{path}: no such file; check the path" in said
    assert "not a database URL" not in said
    assert "unable to open database file" in error_of(DatabaseLoader(f"sqlite:///file:{path}?uri=true", table="docs"))
    assert not path.exists()
    path.write_bytes(b"not a database" * 100)
    assert "the database refused: file is not a database" in error_of(DatabaseLoader(f"sqlite:///{path}", table="docs"))


def test_the_url_may_stand_in_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DatabaseLoader("env:DOCS_URL", table="docs")
    assert "the environment variable DOCS_URL is not set; export DOCS_URL=" in error_of(loader)
    monkeypatch.setenv("DOCS_URL", url)
    assert len(loader.load()) == 2
    assert loader.config["url"] == "env:DOCS_URL"
    monkeypatch.setenv("DOCS_URL", f"nosuchdb://u:{SECRET}@h/d")
    assert SECRET not in error_of(loader, DependencyError)


def test_no_secret_of_a_url_is_ever_shown(subtests: pytest.Subtests) -> None:
    for url in [
        f"postgresql://u:{SECRET}@h:5432/d",
        f"postgresql://:{SECRET}@h",
        f"postgresql://u/v:{SECRET}@h",
        f"postgres:u:{SECRET}@h/d",
        f"u:{SECRET}@h",
        f"postgresql://h/d?user=u&password={SECRET}",
        f"mysql://u@h/d?sslmode=on&api_key={SECRET}&x=1",
        f"mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3D{SECRET}",
        f"mssql+pyodbc:///?odbc_connect=DRIVER=x;PWD={SECRET};UID=u",
        f"nosuchdb://u:{SECRET}@h/d",
        f"nosuchdb://u:x@h/d;pwd={SECRET}",
        f"postgresql://h/d password={SECRET}",
        f"postgresql://h:x/d?password='{SECRET} and s3cr'",
        f"?key=a://@&b:{SECRET}@d",
    ]:
        with subtests.test(url=url):
            loader = DatabaseLoader(url, table="docs")
            with pytest.raises((SourceError, DependencyError)) as caught:
                loader.load()
            for shown in (repr(loader), str(loader.config), str(loader.index_identity()), str(caught.value)):
                assert SECRET not in shown
                assert "s3cr" not in shown
            assert caught.value.__cause__ is None or "s3cr" not in str(caught.value.__cause__)
