"""Nothing of a filter, an id, a name or a value is ever read as SQL, nor as a pattern."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, ColbertRetriever, FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.core.filters import Where
from nlp_retrieval.errors import ConfigurationError, QueryError, SourceError
from nlp_retrieval.loaders.database import DatabaseLoader

from .conftest import Tally

FAMILY = "SQL in filters, ids, names and values"
INJECTED = (
    "' OR '1'='1", "' OR 1=1 --", '" OR ""="', "'; DROP TABLE docs; --", "x'; DELETE FROM docs; --", "1) OR (1=1", "%",
    "_", "*", "Japan' UNION SELECT * FROM secrets --", "\\' OR 1=1 --", "Japan\0' OR 1", "') OR 1=1 --",
    "`; DROP TABLE docs; `", "[docs]", "\uff2aapan' OR 'a'='a", "NULL", "true", "$where: 1", '{"$ne": null}', ".*",
    "Japan*", "id = id", "0 OR 1=1", "sleep(9)",
)  # fmt: skip

TABLES = ('docs"', "docs; DROP TABLE docs", "docs UNION SELECT * FROM secrets", "(SELECT * FROM secrets)", "main.docs; --")
ODD = (
    'odd"name', "odd'; DROP TABLE docs; --", "odd name", "select", "a.b", "odd]", "odd`", "odd%s", "odd:x", "odd?",
)  # fmt: skip

NO_FILTERS = (
    {"country": {"$ne": 1}}, {"country": {"like": "%"}}, {"country": {"regex": ".*"}}, {"country": {"eq OR 1=1": 1}}, "1=1",
    {"country": {"eq": {"eq": "Japan"}}}, {"$where": "1"}, {"or 1=1 --": 1}, {"and": "1=1"}, ["country"], {"country": b"Japan"},
)  # fmt: skip


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


def test_values_pasted_into_sql_are_obeyed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        wanted = "' OR '1'='1"
        assert len(connection.execute(f"SELECT id FROM docs WHERE country = '{wanted}'").fetchall()) == 2
        wanted = "x' UNION SELECT content FROM secrets --"
        assert connection.execute(f"SELECT id FROM docs WHERE country = '{wanted}'").fetchall() == [("the password",)]
        connection.executescript("SELECT id FROM docs WHERE country = 'x'; DROP TABLE docs; --'")
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("secrets",)]


@pytest.mark.parametrize("value", INJECTED)
def test_a_parameter_of_a_query_is_a_value(value: str, path: Path, tally: Tally) -> None:
    before = rows(path)
    with tally(FAMILY):
        query = "SELECT * FROM docs WHERE country = :wanted"
        assert DatabaseLoader(f"sqlite:///{path}", query=query, parameters={"wanted": value}).load() == []
        query = "SELECT * FROM docs WHERE country IN :wanted"
        found = DatabaseLoader(f"sqlite:///{path}", query=query, parameters={"wanted": [value, "Peru"]}).load()
        assert [item.item_id for item in found] == ["2"]
        assert rows(path) == before


@pytest.mark.parametrize(
    "name",
    [
        *INJECTED,
        'docs"',
        "docs; DROP TABLE docs",
        "docs UNION SELECT * FROM secrets",
        "(SELECT * FROM secrets)",
        "main.docs; --",
    ],
)
def test_a_table_is_one_that_the_database_lists(name: str, path: Path, tally: Tally) -> None:
    before = rows(path)
    with tally(FAMILY):
        with pytest.raises(SourceError, match="no such table or view"):
            DatabaseLoader(f"sqlite:///{path}", table=name).load()
        assert rows(path) == before


@pytest.mark.parametrize("name", INJECTED)
@pytest.mark.parametrize("parameter", ["id_field", "content_field", "title_field", "metadata_fields"])
def test_a_column_is_one_that_the_table_has(parameter: str, name: str, path: Path, tally: Tally) -> None:
    columns: dict[str, object] = {parameter: [name] if parameter == "metadata_fields" else name}
    with tally(FAMILY):
        with pytest.raises(SourceError, match=r'no ".*" field'):
            DatabaseLoader(f"sqlite:///{path}", table="docs", **columns).load()  # type: ignore[arg-type]
        assert len(rows(path)) == 2


@pytest.mark.parametrize("name", ODD)
def test_tables_and_columns_may_have_such_names_and_are_only_read(name: str, path: Path, tally: Tally) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {quoted} ({quoted} TEXT, content TEXT, ':a' TEXT)")
        connection.execute(f"INSERT INTO {quoted} VALUES (?, 'text', 'of a')", [name])
        connection.commit()
    before = rows(path)
    with tally(FAMILY):
        (item,) = DatabaseLoader(f"sqlite:///{path}", table=name, id_field=name).load()
        assert (item.item_id, item.content, item.metadata) == (name, "text", {":a": "of a"})
        assert rows(path) == before


@pytest.mark.parametrize(
    "query",
    ["DROP TABLE docs", "DELETE FROM docs", "UPDATE docs SET content = ''", "INSERT INTO docs VALUES ('3', 'x', 'y')",
     "CREATE TABLE more (id TEXT)", "SELECT * FROM docs; DROP TABLE docs", "ATTACH DATABASE 'other.db' AS other",
     "PRAGMA query_only = OFF; DROP TABLE docs", "VACUUM INTO 'copy.db'", "SELECT load_extension('evil')",
     "PRAGMA journal_mode = WAL", "PRAGMA user_version = 7", "DETACH DATABASE main", "EXPLAIN DELETE FROM docs", "REINDEX",
     "UPDATE sqlite_master SET sql = 'x'",
     "WITH x AS (SELECT 1) INSERT INTO docs SELECT '3', 'x', 'y'"],
)  # fmt: skip
def test_a_query_that_does_not_only_read_leaves_everything_as_it_is(
    query: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.chdir(tmp_path)
    before = rows(path)
    with tally(FAMILY):
        for url in (f"sqlite:///{path}", f"sqlite:///file:{path}?uri=true"):
            with pytest.raises(SourceError):
                DatabaseLoader(url, query=query).load()
            assert rows(path) == before
        assert {file.name for file in tmp_path.iterdir()} <= {"docs.db"}


def test_whatever_only_reads_is_read(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW seen AS SELECT id, content FROM docs")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(id, content)")
        connection.execute("INSERT INTO words SELECT id, content FROM docs")
        connection.commit()
    url = f"sqlite:///{path}"
    ids = [
        [item.item_id for item in DatabaseLoader(url, **source).load()]  # type: ignore[arg-type]
        for source in (
            {"table": "seen"},
            {"table": "words"},
            {"query": "SELECT id, content FROM words WHERE words MATCH 'fox'"},
            {"query": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2) "
                      "SELECT i AS id, upper(content) AS content FROM n JOIN docs ON docs.id = n.i ORDER BY i"},
        )
    ]  # fmt: skip
    assert ids == [["1", "2"], ["1", "2"], ["1"], ["1", "2"]]


@pytest.mark.parametrize("name", ["wanted; DROP TABLE docs", "wanted' OR 1=1 --", "1", ""])
def test_names_of_parameters_are_those_of_the_query(name: str, path: Path, tally: Tally) -> None:
    query = "SELECT * FROM docs WHERE country = :wanted"
    with tally(FAMILY), pytest.raises(ConfigurationError, match="no value for parameter 'wanted'"):
        DatabaseLoader(f"sqlite:///{path}", query=query, parameters={name: "Peru"}).load()


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
def searchers(tmp_path_factory: pytest.TempPathFactory) -> list[Searcher]:
    from hashed_tokens import HashedTokens

    made = []
    for number, retriever in enumerate((Bm25Retriever(), FaissRetriever(HashedWords()), ColbertRetriever(HashedTokens()))):
        made.append(Searcher([retriever]))
        made[-1].index(ITEMS, tmp_path_factory.mktemp("index") / str(number))
    return made


def found(searcher: Searcher, where: Where) -> set[str]:
    return {hit.item.item_id for hit in searcher.search(["fox"], len(ITEMS), where)[0]}


@pytest.mark.parametrize("text", INJECTED)
def test_a_filter_compares_and_nothing_else(text: str, searchers: list[Searcher], tally: Tally) -> None:
    everything = {item.item_id for item in ITEMS}
    for searcher in searchers:
        with tally(FAMILY):
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


@pytest.mark.parametrize("where", NO_FILTERS, ids=str)
def test_what_is_no_filter_is_an_error(where: Where, searchers: list[Searcher], tally: Tally) -> None:
    for searcher in searchers:
        with tally(FAMILY), pytest.raises(QueryError):
            searcher.search(["fox"], 3, where)
