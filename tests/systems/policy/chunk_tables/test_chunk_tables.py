"""What is written into chunk tables comes back as it was, is replaced by id, and is whole whatever happens."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from hashed_words import HashedWords
from psycopg import sql as names

from nlp_retrieval import RetrievalWarning, SearchableItem
from nlp_retrieval.errors import ItemError, ModelError, OutputError, QueryError, SourceError
from nlp_retrieval.systems.policy.chunk_tables.rows import item_of
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables, ChunkTablesLoader

ATTACK = "x'; DROP TABLE doc_chunks; --\"%(a)s :b {c}"


def item(item_id: str, content: str, /, **metadata: Any) -> SearchableItem:
    return SearchableItem(item_id=item_id, content=content, metadata=metadata)


PLANS = [
    item("ke-0", "Kenya will cut emissions by 32%.", document="ke.pdf", country="Kenya", position=0, year=2020, title="Target"),
    item("ke-1", "Geothermal power is added.", document="ke.pdf", country="Kenya", position=1, pages=[3, 4], more={"a": None}),
    item("jp-10", "Japan: 2050年までに", document="jp", country="Japan", position=10, share=0.25, sure=True),
    item("jp-9", "日本の目標", document="jp", country="Japan", position=9),
    item(ATTACK, ATTACK, document=ATTACK, country="Côte d'Ivoire", key=ATTACK, **{ATTACK: 1}),
    item("alone", ""),
    item("7f1c1f6e-3f0b-4c2e-9a55-0d4f6d1f7b11", "a UUID stays itself", country="Peru"),
]


def by_id(items: Iterator[SearchableItem]) -> dict[str, SearchableItem]:
    found = list(items)
    assert len({one.item_id for one in found}) == len(found)
    return {one.item_id: one for one in found}


def rows(sql: psycopg.Connection, schema: str, table: str) -> list[tuple[Any, ...]]:
    return sql.execute(names.SQL("SELECT * FROM {} ORDER BY 1").format(names.Identifier(schema, table))).fetchall()


def test_items_come_back_as_they_were(tables: ChunkTables) -> None:
    report = tables.write(PLANS)
    assert (report.documents, report.chunks) == (5, 7)
    assert by_id(tables.stream()) == {one.item_id: one for one in PLANS}
    assert tables.countries() == ["Côte d'Ivoire", "Japan", "Kenya", "Peru"]
    assert [one.item_id for one in tables.stream("Japan")] == ["jp-9", "jp-10"]
    assert [one.item_id for one in tables.stream(["Côte d'Ivoire", "Kenya"])] == ["ke-0", "ke-1", ATTACK]


NUMBERS = [
    1e16,
    1e23,
    -1e16,
    1.5e300,
    1.7976931348623157e308,
    5e-324,
    1e-7,
    0.1,
    2.0,
    3,
    2**53 + 1,
    -(2**64) - 1,
    10**639,
    True,
]


def test_numbers_come_back_exactly_and_of_the_same_type(tables: ChunkTables) -> None:
    given = item("numbers", "x", each=NUMBERS, within={"a": [{"b": number} for number in NUMBERS]}, alone=1e23, text='1e16 "é"')
    tables.write([given])
    (found,) = tables.stream()
    assert {key: repr(value) for key, value in found.metadata.items()} == {
        key: repr(value) for key, value in given.metadata.items()
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ('{"a": NaN}', "not a finite number"),
        ("[1]", r"chunk_data is \[1\], not an object"),
    ],
)
def test_data_that_no_item_can_have_is_an_error_that_names_the_chunk(data: str, said: str) -> None:
    row = {"id": "a", "content": "x", "doc_id": None, "data": data, "about": None, "filename": None, "country": None}
    with pytest.raises(SourceError, match=f"^plans, chunk a: .*{said}"):
        item_of("plans, chunk", row)


def test_the_country_stands_in_one_place_and_the_view_shows_it(
    tables: ChunkTables, sql: psycopg.Connection, schema: str
) -> None:
    tables.write(PLANS)
    kept = names.SQL("SELECT count(*) FROM {} WHERE chunk_data ? 'country'").format(names.Identifier(schema, "doc_chunks"))
    assert sql.execute(kept).fetchone() == (0,)
    view = names.SQL("SELECT content, country FROM {}").format(names.Identifier(schema, "doc_chunks_with_country"))
    assert dict(sql.execute(view).fetchall()) == {one.content: one.metadata.get("country") for one in PLANS}


def test_writing_again_changes_nothing_and_writing_otherwise_replaces(
    tables: ChunkTables, sql: psycopg.Connection, schema: str
) -> None:
    tables.write(PLANS)
    before = [rows(sql, schema, table) for table in ("documents", "doc_chunks")]
    tables.write(PLANS)
    assert [rows(sql, schema, table) for table in ("documents", "doc_chunks")] == before
    changed = item("ke-1", "Nuclear power is added.", document="ke.pdf", country="Kenya", position=1)
    tables.write([changed])
    assert by_id(tables.stream()) == {one.item_id: one for one in PLANS} | {"ke-1": changed}


def test_vectors_are_written_by_encoders_and_by_hand(tables: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    by_hand = np.arange(14, dtype=np.float32).reshape(7, 2)
    report = tables.write(PLANS, encoders={"transformer_embedding": HashedWords(4)}, vectors={"hoprag_embedding": by_hand})
    assert report.without_vector == {"hoprag_embedding": 0, "transformer_embedding": 1}  # "alone" has no words
    counts = tables.counts()
    assert counts.without_vector == {"transformer_embedding": 1, "word2vec_embedding": 7, "hoprag_embedding": 0}
    assert (counts.documents, counts.chunks, counts.relations, counts.without_country) == (5, 7, 0, 1)
    query = names.SQL("SELECT content, transformer_embedding::text, hoprag_embedding::text FROM {}")
    found = {row[0]: row[1:] for row in sql.execute(query.format(names.Identifier(schema, "doc_chunks"))).fetchall()}
    for one, own in zip(PLANS, by_hand, strict=True):
        words, hop = found[one.content]
        wanted = HashedWords(4).encode_passages([one.text])[0]
        assert (words is None) if not wanted.any() else np.array_equal(np.array(floats_of(words), np.float32), wanted)
        assert floats_of(hop) == own.tolist()


def floats_of(text: str) -> list[float]:
    return [float(part) for part in text.strip("[]").split(",")]


@pytest.mark.parametrize(
    ("column", "vectors", "error", "said"),
    [
        ("word2vec_embedding", np.ones((2, 5)), ModelError, "vectors of 3 dimensions, and these have 5"),
        ("word2vec_embedding", np.ones((1, 3)), ModelError, "2 chunks need as many vectors"),
        (
            "word2vec_embedding",
            np.array([["1", "2", "x"]] * 2),
            ModelError,
            "word2vec_embedding: the vector of item 'ke-0' holds str",
        ),
        ("word2vec_embedding", [[1, 2, 3], [1, "b", 3]], ModelError, "the vector of item 'ke-1' holds str"),
        ("word2vec_embedding", [[1, 2, 3], [1, 2]], ModelError, "not an array of numbers of one length"),
        ("word2vec_embedding", [None, None], ModelError, "the vector of item 'ke-0' holds NoneType"),
        ("word2vec_embedding", np.full((2, 3), np.nan), ModelError, "the vector of item 'ke-0' is not finite"),
        ("word_embedding", np.ones((2, 3)), QueryError, "no column 'word_embedding'; did you mean 'word2vec_embedding'"),
        ("content", np.ones((2, 3)), QueryError, "content holds text, which is not a vector type"),
    ],
)
def test_wrong_vectors_are_refused_and_nothing_is_written(
    tables: ChunkTables, column: str, vectors: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        tables.write(PLANS[:2], vectors={column: vectors})
    assert tables.counts().chunks == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (item("a", "zero \0 in it"), "item 'a': its content holds a NUL character"),
        (item("a\0", "x"), "its id holds a NUL character"),
        (item("a", "x", deep={"b": ["\0"]}), "its metadata holds a NUL character"),
        (item("a", "half \ud800"), "half of a surrogate pair"),
        (item("a", "x", country=" Kenya"), "its country is ' Kenya'; expected text without surrounding white space"),
        (item("a", "x", country=["Kenya"]), "its country is"),
        (item("a", "x", document=3), "its document is 3"),
        (item("a", "x", item_id="b"), "a key 'item_id'"),
    ],
)
def test_what_postgresql_cannot_store_is_refused_by_name(tables: ChunkTables, wrong: SearchableItem, said: str) -> None:
    with pytest.raises(ItemError, match=said):
        tables.write([wrong])
    assert tables.counts().chunks == 0


def test_a_document_has_one_country(tables: ChunkTables) -> None:
    with pytest.raises(ItemError, match="document 'd' is of 'Kenya' in item 'a' and of 'Peru' in item 'b'"):
        tables.write([item("a", "", document="d", country="Kenya"), item("b", "", document="d", country="Peru")])
    tables.write([item("a", "", document="d", country="Kenya")])
    with pytest.raises(ItemError, match=r"document 'd' is of 'Peru' in item 'b', and of 'Kenya' in the table; delete_document"):
        tables.write([item("b", "", document="d", country="Peru")])
    with pytest.raises(ItemError, match="item 'a' already exists in another document than 'e'"):
        tables.write([item("a", "", document="e")])
    with pytest.raises(ItemError, match="item 'x' occurs twice"):
        tables.write([item("x", "1", document="e"), item("x", "2", document="e")])
    assert [one.item_id for one in tables.stream()] == ["a"]


def test_a_document_is_deleted_with_its_chunks(tables: ChunkTables) -> None:
    tables.write(PLANS)
    assert tables.delete_document("ke.pdf") == 2
    assert tables.delete_document("alone") == 1
    assert tables.delete_document(ATTACK) == 1
    assert set(by_id(tables.stream())) == {"jp-9", "jp-10", PLANS[-1].item_id}
    with pytest.raises(ItemError, match=r"there is no document 'ke\.pdf'"):
        tables.delete_document("ke.pdf")


def test_documents_before_one_that_fails_are_there(tables: ChunkTables) -> None:
    with pytest.raises(ItemError, match="item 'bad'"):
        tables.write([*PLANS[:2], item("bad", "\0", document="z"), *PLANS[2:]])
    assert set(by_id(tables.stream())) == {"ke-0", "ke-1"}


def test_the_loader_reads_what_was_written(tables: ChunkTables, dsn: str, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.write(PLANS)
    monkeypatch.setenv("CHUNKS", dsn)
    loader = ChunkTablesLoader("env:CHUNKS", schema=schema, country="Kenya")
    assert loader.load() == PLANS[:2]
    assert loader.config == {"name": "chunk_tables", "url": "env:CHUNKS", "schema": schema, "country": "Kenya"}


def test_a_country_that_is_not_there_is_named_with_the_nearest(tables: ChunkTables) -> None:
    tables.write(PLANS)
    with pytest.raises(QueryError, match="there is no chunk of 'Japn'; did you mean 'Japan'"):
        list(tables.stream("Japn"))


def test_streaming_reads_one_state(tables: ChunkTables) -> None:
    many = [item(f"i{number:04}", "text", document="d", position=number) for number in range(1200)]
    tables.write(many)
    streamed = tables.stream()
    first = next(streamed)
    tables.delete_document("d")
    assert [first.item_id, *(one.item_id for one in streamed)] == [one.item_id for one in many]


def test_ids_of_rows_follow_from_ids_of_items(tables: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    """The rows of one item have one id wherever they are written, now and later."""
    tables.write([item("ke-0", "", document="ke.pdf")])
    (chunk,), (document,) = rows(sql, schema, "doc_chunks"), rows(sql, schema, "documents")
    assert chunk[0] == uuid.UUID("74a5f9e4-2551-5049-8198-c76135c07bb1")
    assert document[0] == uuid.UUID("56c3653d-6847-5eae-822c-7908611ecb19")


def test_a_password_is_never_shown(tables: ChunkTables, dsn: str, schema: str) -> None:
    for url in ("postgresql://u:s3cret@host/db", "host=h dbname=db password='s3 cret'", "host=h password = s3cret dbname=db"):
        loader = ChunkTablesLoader(url)
        assert "cret" not in repr(loader) + str(loader.config)
        with pytest.raises(SourceError, match="never shows a secret"):
            ChunkTablesLoader(loader.config["url"]).load()
    with pytest.raises(Exception, match=r"\*\*\*") as raised:
        ChunkTables("postgresql://u:s3cret@127.0.0.1:9/db")
    assert "s3cret" not in str(raised.value)
    with pytest.raises(Exception, match=r"password=\*\*\*") as raised:
        ChunkTables("host=127.0.0.1 port=9 dbname=db password=s3cret")
    assert "s3cret" not in str(raised.value)


def test_a_row_that_says_another_id_is_not_believed(tables: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    tables.write(PLANS[:1])
    lie = names.SQL('UPDATE {} SET chunk_data = chunk_data || \'{{"item_id": "jp-9"}}\'')
    sql.execute(lie.format(names.Identifier(schema, "doc_chunks")))
    (found,) = tables.stream()
    assert uuid.UUID(found.item_id) == rows(sql, schema, "doc_chunks")[0][0]


def test_tables_that_were_closed_to_writing_say_so(tables: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    sql.execute(names.SQL("ALTER TABLE {} RENAME COLUMN content TO body").format(names.Identifier(schema, "doc_chunks")))
    with pytest.raises(OutputError, match=r"cannot be written: .*this transaction was rolled back"):
        tables.write(PLANS[:1])


@pytest.mark.parametrize("counted", [RetrievalWarning])
def test_no_warning_is_given_where_nothing_is_wrong(tables: ChunkTables, counted: type[Warning], recwarn: Any) -> None:
    tables.write(PLANS)
    list(tables.stream())
    assert not [one for one in recwarn if issubclass(one.category, counted)]
