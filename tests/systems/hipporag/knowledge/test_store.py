"""KnowledgeStore: updates equal a rebuild, extractions are kept apart, and what is in a database is not believed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy_iris.base import IRISDialect

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import RetrievalError, SourceError
from nlp_retrieval.systems.hipporag.knowledge import (
    MAX_CHARACTERS,
    Extraction,
    PassageKnowledge,
    PassageRecord,
    ReadKnowledge,
    Triple,
    passage_hash,
)
from nlp_retrieval.systems.hipporag.store import KnowledgeStore
from nlp_retrieval.systems.hipporag.store_tables import Tables
from systems.hipporag.knowledge.databases import rows_of

SMALL, LARGE = Extraction("openai/small", "{}"), Extraction("openai/large", "{}")
NAMES = ["Erik Hort", "Montebello", "Rockland County", "蒙特贝洛", "Монтебелло", 'it\'s "quoted"; DROP TABLE passages', "ß"]


def item(number, text="", title=""):
    return SearchableItem(item_id=f"d{number}", content=text or f"text {number}", metadata={"title": title} if title else {})


def says(*names, triples=(), types=None):
    return ReadKnowledge(PassageKnowledge(names, tuple(Triple(*triple) for triple in triples)), 0, types or {})


def record(of, read, error=""):
    return PassageRecord(of.item_id, passage_hash(of.title, of.content), read, error)


@pytest.fixture
def store(make_store):
    made = make_store()
    made.begin(SMALL)
    return made


HORT = says("Erik Hort", "Montebello", triples=[("Erik Hort", "was born in", "Montebello"), ("Hort", "is", "Erik Hort")])


def test_what_was_saved_is_found_by_its_text_under_any_id(store):
    store.save(SMALL, [record(item(1), HORT), record(item(2), says())])
    other = SearchableItem(item_id="else", content="text   1")
    assert store.source().of([item(2), item(3), item(1), other]) == [
        PassageKnowledge((), ()), None, HORT.knowledge, HORT.knowledge
    ]  # fmt: skip
    assert store.missing(SMALL, [item(1), item(2), other, item(1, "changed")]) == [False, False, True, True]


def test_an_entity_has_the_documents_that_name_it_or_say_something_of_it(store):
    store.save(SMALL, [record(item(1), HORT), record(item(2), says("Montebello")), record(item(3), says("Oslo"))])
    extraction = store.extractions()[0]
    assert store.document_ids(extraction, "Montebello") == ["d1", "d2"]
    assert store.document_ids(extraction, "Hort") == ["d1"]
    assert store.document_ids(extraction, "Bergen") == []


phrases = st.sampled_from(NAMES)
reads = st.builds(
    lambda names, triples: says(*dict.fromkeys(names), triples=dict.fromkeys(triples)),
    st.lists(phrases, max_size=3),
    st.lists(st.tuples(phrases, st.sampled_from(["is", "lies in"]), phrases), max_size=3),
)
texts = st.sampled_from(["one", "two", "three"])
numbers = st.integers(0, 4)
saves = st.lists(st.tuples(numbers, texts, reads | st.none()), max_size=4)
changes = st.lists(saves, max_size=6)


@given(changes)
def test_updates_equal_a_rebuild(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("store")
    final = {}
    with KnowledgeStore(str(folder / "a.db"), create=True) as updated, KnowledgeStore(str(folder / "b.db"), create=True) as new:
        updated.begin(SMALL)
        for step in steps:
            updated.save(SMALL, [record(item(number, words), read) for number, words, read in step])
            final |= {number: record(item(number, words), read) for number, words, read in step}
        new.begin(SMALL)
        new.save(SMALL, list(final.values()))
        assert rows_of(updated) == rows_of(new)
        asked = [item(0, words) for words in ("one", "two", "three")]
        found = updated.source().of(asked)
        for one, knowledge in zip(asked, found, strict=True):
            same = [r.read.knowledge for r in final.values() if r.read and r.content_hash == passage_hash("", one.content)]
            assert knowledge in same if same else knowledge is None


def test_writers_at_once_lose_nothing(store):
    """Eight threads, in orders of their own, on entities that all of them share."""
    done = []

    def write(worker):
        for number in range(worker, 40, 8):
            store.save(SMALL, [record(item(number), says(*NAMES, triples=[(NAMES[0], "is", NAMES[1])]))])
        done.append(worker)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 8
    rows = rows_of(store)
    assert [len(rows[name]) for name in ("passages", "entities", "relationships")] == [40, len(NAMES), 40]


DIALECTS = {
    "iris": IRISDialect,
    "mssql": mssql.dialect,
    "mysql": mysql.dialect,
    "oracle": oracle.dialect,
    "postgresql": postgresql.dialect,
    "sqlite": sqlite.dialect,
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("schema", [None, "hipporag"])
def test_every_dialect_can_say_the_tables(name, schema):
    tables = Tables.of_schema(schema)
    for table in tables.metadata.sorted_tables:
        said = str(CreateTable(table).compile(dialect=DIALECTS[name]()))
        assert all(column.name in said for column in table.c)
        for index in table.indexes:
            assert "INDEX" in str(CreateIndex(index).compile(dialect=DIALECTS[name]()))


def test_a_server_that_goes_away_is_named_without_its_password(monkeypatch):
    url = "postgresql+psycopg://me:s3cret-word@127.0.0.1:1/name"
    for given_url in (url, "env:STORE_URL"):
        monkeypatch.setenv("STORE_URL", url)
        with pytest.raises(RetrievalError, match="cannot be read") as caught:
            KnowledgeStore(given_url, create=True)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(SourceError, match=r"^iris://\*\*\*@127.0.0.1:1/NAME: .*(cannot be used|cannot be read)"):
        KnowledgeStore("iris://me:s3cret-word@127.0.0.1:1/NAME", create=True)
    monkeypatch.delenv("STORE_URL")
    with pytest.raises(SourceError, match="STORE_URL"):
        KnowledgeStore("env:STORE_URL")


@pytest.mark.parametrize("statement", ["CREATE TABLE passages (id, text)", "CREATE VIEW passages AS SELECT 1 AS id"])
def test_tables_of_somebody_else_are_left_alone(statement, tmp_path):
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    for create in (True, False):
        with pytest.raises(SourceError, match="of another program"):
            KnowledgeStore(str(path), create=create)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("passages",)]


def test_what_no_extraction_wrote_is_an_error_and_not_believed(tmp_path):
    path = tmp_path / "hostile.db"
    with KnowledgeStore(str(path), create=True) as store:
        store.begin(SMALL)
        store.save(SMALL, [record(item(1), HORT)])
        for planted in ("X'ff00'", f"'{'x' * (MAX_CHARACTERS + 1)}'", "CAST(X'ff41' AS TEXT)"):
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(f"UPDATE entities SET entity_text = {planted}")
                connection.commit()
            with pytest.raises(SourceError, match=r"hostile\.db: the knowledge store (holds a text that no|cannot be read)"):
                store.source().of([item(1)])
