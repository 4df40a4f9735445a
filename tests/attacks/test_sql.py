"""Nothing of a filter, an id, a name or a value is ever read as SQL, nor as a pattern."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.core.filters import Where
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.database import DatabaseLoader

INJECTED = (
    "' OR '1'='1", '" OR ""="', "'; DROP TABLE docs; --", "%", "Japan' UNION SELECT * FROM secrets --", "Japan\0' OR 1",
    "`; DROP TABLE docs; `", "NULL", '{"$ne": null}', ".*",
)  # fmt: skip

TABLES = ('docs"', "(SELECT * FROM secrets)", "main.docs; --")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "docs.db")) as connection:
        connection.execute("CREATE TABLE docs (id TEXT, content TEXT, country TEXT)")
        connection.execute("CREATE TABLE secrets (id TEXT, content TEXT, country TEXT)")
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", [("1", "red fox", "Japan"), ("2", "blue whale", "Peru")])
        connection.execute("INSERT INTO secrets VALUES ('9', 'the password', 'all')")
        connection.commit()
    return tmp_path / "docs.db"


def rows(path: Path, table: str = "docs") -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY id').fetchall()


def test_a_parameter_of_a_query_is_a_value(path: Path, subtests: pytest.Subtests) -> None:
    for value in INJECTED:
        with subtests.test(value=value):
            before = rows(path)
            query = "SELECT * FROM docs WHERE country = :wanted"
            assert DatabaseLoader(f"sqlite:///{path}", query=query, parameters={"wanted": value}).load() == []
            query = "SELECT * FROM docs WHERE country IN :wanted"
            found = DatabaseLoader(f"sqlite:///{path}", query=query, parameters={"wanted": [value, "Peru"]}).load()
            assert [item.item_id for item in found] == ["2"]
            assert rows(path) == before


def test_a_table_is_one_that_the_database_lists(path: Path, subtests: pytest.Subtests) -> None:
    for name in [*INJECTED, *TABLES]:
        with subtests.test(name=name):
            before = rows(path)
            with pytest.raises(SourceError, match="no such table or view"):
                DatabaseLoader(f"sqlite:///{path}", table=name).load()
            assert rows(path) == before


def test_a_query_that_does_not_only_read_leaves_everything_as_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for query in [
        "DROP TABLE docs",
        "SELECT * FROM docs; DROP TABLE docs",
        "ATTACH DATABASE 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('evil')",
        "WITH x AS (SELECT 1) INSERT INTO docs SELECT '3', 'x', 'y'",
    ]:
        with subtests.test(query=query):
            monkeypatch.chdir(tmp_path)
            before = rows(path)
            for url in (f"sqlite:///{path}", f"sqlite:///file:{path}?uri=true"):
                with pytest.raises(SourceError):
                    DatabaseLoader(url, query=query).load()
                assert rows(path) == before
            assert {file.name for file in tmp_path.iterdir()} <= {"docs.db"}


ITEMS = [
    *(
        SearchableItem(item_id=text, content="fox whale", metadata={"country": text, text: "here", "n": n})
        for n, text in enumerate(INJECTED)
    ),
    SearchableItem(item_id="plain", content="fox whale", metadata={"country": "Japan"}),
    SearchableItem(item_id="other", content="fox whale", metadata={}),
]
"""Every text that was ever injected, as an id, as a value and as a key."""


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    made = Searcher([Bm25Retriever()])
    made.index(ITEMS, tmp_path_factory.mktemp("index"))
    return made


def found(searcher: Searcher, where: Where) -> set[str]:
    return {hit.item.item_id for hit in searcher.search(["fox"], len(ITEMS), where)[0]}


def test_a_filter_compares_and_nothing_else(searcher: Searcher, subtests: pytest.Subtests) -> None:
    for text in INJECTED:
        with subtests.test(text=text):
            everything = {item.item_id for item in ITEMS}
            assert found(searcher, {"country": text}) == {text}
            assert found(searcher, {"country": {"in": [text, "x"]}}) == {text}
            assert found(searcher, {f"metadata.{text}": "here"}) == {text}
            assert found(searcher, {f"metadata.{text}": {"exists": True}}) == {text}
            assert found(searcher, {"not": {"country": text}}) == everything - {text}
            bounds = {
                item.item_id
                for item in ITEMS
                if str(item.metadata.get("country", "\0\0")) >= text and "country" in item.metadata
            }
            assert found(searcher, {"country": {"gte": text}}) == bounds


def test_a_column_is_one_that_the_table_has(path: Path, subtests: pytest.Subtests) -> None:
    for parameter in ["id_field", "content_field", "title_field", "metadata_fields"]:
        for name in INJECTED:
            with subtests.test(parameter=parameter, name=name):
                columns: dict[str, object] = {parameter: [name] if parameter == "metadata_fields" else name}
                with pytest.raises(SourceError, match=r'no ".*" field'):
                    DatabaseLoader(f"sqlite:///{path}", table="docs", **columns).load()  # type: ignore[arg-type]
                assert len(rows(path)) == 2
