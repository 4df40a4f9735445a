"""What the server holds is what the index was built with, or an error; and what no index needs any more is dropped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords
from postgres_server import env_url
from soaking import mostly_soaked

from nlp_retrieval import PgvectorRetriever, Searcher
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import (
    ConfigurationError,
    IndexDamagedError,
    IndexLockedError,
    IndexMismatchError,
    RetrievalWarning,
    ServerError,
)
from nlp_retrieval.retrievers.postgres import tables as tables_room
from nlp_retrieval.retrievers.postgres.engine import verify_tables

from .conftest import WORDS, Place, corpus

ENGINES = ("pgvector", "postgres_text")


def found(searcher: Searcher, query: str = "fox whale", k: int = 5, where=None) -> list[tuple[str, float]]:
    return [(hit.item.item_id, hit.score) for hit in searcher.search([query], k, where)[0]]


def record_of(index: Path) -> tuple[Path, dict[str, object]]:
    (path,) = index.glob("*/server.json")
    return path, json.loads(path.read_text())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_directory_keeps_a_record_without_url_or_credentials(engine, place, index, monkeypatch):
    monkeypatch.setenv("SECRET_DSN", os.environ[place.url.removeprefix("env:")] + "&password=s3cret-word")
    retriever = place.retriever(engine)
    type(retriever)(**(retriever._arguments | {"url": "env:SECRET_DSN"})).index(corpus(20), index)
    path, record = record_of(index)
    assert [file.name for file in path.parent.iterdir() if not file.name.startswith(".")] == ["server.json"]
    assert record["table"] in place.tables()
    written = b"".join(file.read_bytes() for file in index.rglob("*") if file.is_file())
    assert b"s3cret" not in written
    assert b"host=" not in written


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE {}", "there is no table"),
        ("DELETE FROM {} WHERE row = 3", "holds 19 rows, and not the 20"),
        ("UPDATE {} SET row = 25 WHERE row = 19", "holds other rows"),
        ("UPDATE {} SET item_id = 'd4' WHERE row = 3", "holds other rows"),
        ("ALTER TABLE {} ALTER COLUMN item_id TYPE varchar, DROP COLUMN embedding", "with a column 'embedding'"),
        ("UPDATE {} SET embedding = embedding + embedding WHERE row = 3", "holds other rows"),
        ("UPDATE {} SET words = to_tsvector('english', 'fox') WHERE row = 3", "holds other rows"),
        ("ALTER TABLE {} ALTER COLUMN embedding TYPE vector(23) USING subvector(embedding, 1, 23)", r"not vector\(24\)"),
    ],
)
def test_a_table_that_is_missing_or_changed_is_an_error_and_never_an_answer(engine, statement, message, place, index):
    other = {"pgvector": "words", "postgres_text": "embedding"}[engine]
    if other in statement:
        statement, message = "DROP TABLE {}", "there is no table"
    place.searcher(engine).index(corpus(20), index)
    place.change(statement, str(record_of(index)[1]["table"]))
    with pytest.raises(IndexDamagedError, match=f"(?s){message}.*replace=True"):
        place.searcher(engine).open(index).search("fox", 3)
    assert len(verify_tables(index, place.url)) == 1


def test_of_a_large_table_opening_reads_the_index_of_the_rows_and_verify_all(place, index, monkeypatch):
    monkeypatch.setattr(tables_room, "CHECKED_WHOLE", 5)
    place.searcher().index(corpus(20), index)
    table = str(record_of(index)[1]["table"])
    assert verify_tables(index, place.url) == []
    place.change("UPDATE {} SET embedding = embedding + embedding WHERE row = 3", table)
    place.searcher().open(index)
    assert "other rows" in verify_tables(index, place.url)[0]
    place.change("UPDATE {} SET id_sum = id_sum + 1 WHERE row = 3", table)
    with pytest.raises(IndexDamagedError, match="other rows"):
        place.searcher().open(index)


@pytest.mark.parametrize("engine", ENGINES)
def test_indexing_again_finds_a_missing_table_and_replaces_it(engine, place, index):
    searcher = place.searcher(engine)
    searcher.index(corpus(20), index)
    before = found(searcher)
    place.change("DROP TABLE {}", str(record_of(index)[1]["table"]))
    with pytest.raises(IndexDamagedError, match="there is no table"):
        place.searcher(engine).index(corpus(20), index)
    again = place.searcher(engine)
    assert again.index(corpus(20), index, replace=True).built == [engine]
    assert found(again) == before
    assert verify_tables(index, place.url) == []


def test_a_table_that_is_dropped_while_it_is_open_is_an_error(place, index):
    searcher = place.searcher()
    searcher.index(corpus(20), index)
    assert found(searcher)
    place.change("DROP TABLE {}", str(record_of(index)[1]["table"]))
    with pytest.raises(IndexDamagedError, match="dropped or changed since it was opened"):
        found(searcher)


def test_a_record_that_was_edited_is_damage(place, index):
    place.searcher().index(corpus(20), index)
    path, record = record_of(index)
    path.write_text(json.dumps(record | {"table": "pg_class"}))
    with pytest.raises(IndexDamagedError, match=r"server\.json"):
        place.searcher().open(index)


def test_another_encoder_is_a_mismatch_that_names_both(place, index):
    place.searcher().index(corpus(20), index)
    with pytest.raises(IndexMismatchError, match=r"encoder.*dimension: indexed with 24, now 16"):
        place.searcher(encoder=HashedWords(16)).open(index)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_that_nothing_names_any_more_is_dropped_by_the_next_writer(engine, place, index):
    searcher = place.searcher(engine)
    searcher.index(corpus(20), index)
    first = place.tables()
    searcher.add(corpus(4, 20), auto_compact=False)
    assert len(place.tables()) == 2
    reader = place.searcher(engine).open(index)
    before = found(reader)
    searcher.compact()
    assert found(reader) == before
    assert set(first) <= set(place.tables()), "a reader holds the folder that names it"
    del reader
    Searcher(searcher.retrievers).index(corpus(30), index, replace=True)
    searcher.refresh()
    searcher.delete(["d0"], auto_compact=False)
    assert len(place.tables()) == 1
    assert not set(first) & set(place.tables())


def test_a_copied_directory_answers_and_never_drops_what_the_original_uses(place, index, tmp_path):
    searcher = place.searcher()
    searcher.index(corpus(20), index)
    before = found(searcher)
    copy = tmp_path / "copy"
    shutil.copytree(index, copy)
    copied = place.searcher().open(copy)
    assert found(copied) == before
    copied.add(corpus(14, 20))
    copied.compact()
    assert found(place.searcher().open(index)) == before
    Searcher([place.retriever()]).index(corpus(9), copy, replace=True)
    assert found(place.searcher().open(index)) == before


def test_a_moved_directory_keeps_its_tables_and_drops_them_itself(place, index, tmp_path):
    place.searcher().index(corpus(20), index)
    first = place.tables()
    index.rename(tmp_path / "moved")
    place.searcher().index(corpus(12), index)
    assert set(first) <= set(place.tables())
    moved = place.searcher().open(tmp_path / "moved")
    assert len(found(moved, k=20)) == 20
    del moved
    place.searcher().index(corpus(15), tmp_path / "moved", replace=True)
    assert not set(first) & set(place.tables())
    assert len(place.tables()) == 2


def test_two_directories_on_one_server_do_not_disturb_each_other(place, tmp_path):
    one, other = place.searcher(), place.searcher()
    one.index(corpus(20), tmp_path / "one")
    other.index(corpus(12), tmp_path / "other")
    before = found(one)
    other.index(corpus(15), tmp_path / "other", replace=True)
    other.delete(["d3"])
    other.compact()
    del other
    place.searcher().open(tmp_path / "other").delete(["d4"], auto_compact=False)
    assert found(place.searcher().open(tmp_path / "one")) == before
    assert len(place.tables()) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_items_do_not_join_an_index_on_another_server(engine, place, index):
    searcher = place.searcher(engine)
    searcher.index(corpus(20), index)
    before = found(searcher)
    mine = place.retriever(engine)
    elsewhere = type(mine)(**(mine._arguments | {"url": env_url("old")}))
    changed = Searcher([elsewhere])
    with pytest.raises(IndexDamagedError, match="there is no table"):
        changed.open(index).add(corpus(3, 20))
    with pytest.raises(IndexDamagedError, match="there is no table"):
        elsewhere.builder().extend(ItemTable(next(index.glob("items-*/items.arrow"))), index, [segment_of(index)], None)
    assert found(place.searcher(engine).open(index)) == before


def segment_of(index: Path) -> SegmentFolder:
    path, record = record_of(index)
    return SegmentFolder(path.parent, 0, int(str(record["rows"])))


def test_more_queries_than_a_statement_holds_line_up(place, index):
    searcher = place.searcher()
    searcher.index(corpus(100), index)
    queries = [f"{WORDS[n % 16]} {WORDS[(3 * n) % 16]} {n}" for n in range(40)]
    assert [[hit.item.item_id for hit in hits] for hits in searcher.search(queries, 4)] == [
        [hit.item.item_id for hit in searcher.search([query], 4)[0]] for query in queries
    ]


def test_a_build_that_fails_leaves_no_table_that_stays(place, index):
    class Failing(HashedWords):
        def encode_passages(self, passages):
            if any("harbour" in passage for passage in passages):
                raise RuntimeError("no such harbour")
            return super().encode_passages(passages)

    with pytest.raises(RuntimeError, match="no such harbour"):
        Searcher([place.retriever(encoder=Failing(24))]).index(corpus(20), index)
    assert place.tables() == []


def test_a_table_without_its_folder_is_dropped_where_the_next_build_begins_anew(place, index):
    killed = """
import os, signal, sys
from pathlib import Path
from hashed_words import HashedWords
from nlp_retrieval import PgvectorRetriever
from nlp_retrieval.retrievers.postgres.tables import TableRecord
from retrievers.postgres.conftest import corpus
TableRecord.write = lambda record, folder: os.kill(os.getpid(), signal.SIGKILL)
PgvectorRetriever(HashedWords(dimension=24), url=sys.argv[1], schema=sys.argv[2]).index(corpus(20), Path(sys.argv[3]))
"""
    tests = Path(__file__).parents[2]
    paths = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", killed, place.url, place.schema, str(index)],
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, done.stderr
    (orphan,) = place.tables()
    searcher = place.searcher()
    searcher.index(corpus(20), index)
    assert len(place.tables()) == 1
    assert orphan not in place.tables()


def test_a_server_that_is_away_when_orphans_are_dropped_costs_a_warning_and_no_index(place, index, monkeypatch):
    def away(*_, **__):
        raise ServerError("away")

    searcher = place.searcher()
    searcher.index(corpus(20), index)
    monkeypatch.setattr("nlp_retrieval.retrievers.postgres.engine.settle", away)
    with pytest.warns(RetrievalWarning, match="was not removed"):
        Searcher(searcher.retrievers).index(corpus(12), index, replace=True)
    assert len(found(place.searcher().open(index), k=20)) == 12


def test_a_second_writer_is_told_of_the_first(place, index):
    class Writing(HashedWords):
        def encode_passages(self, passages):
            with pytest.raises(IndexLockedError):
                place.searcher().index(corpus(3), index)
            return super().encode_passages(passages)

    Searcher([place.retriever(encoder=Writing(24))]).index(corpus(20), index)
    assert len(place.tables()) == 1


@pytest.mark.parametrize(
    "schema", mostly_soaked(['x"; DROP SCHEMA public CASCADE; --', "東京", "a b", "'; --", "{}", "A.b", "a" * 63], 2)
)
def test_a_schema_may_have_any_name(schema, index):
    place = Place(schema)
    searcher = place.searcher()
    searcher.index(corpus(20), index)
    searcher.add(corpus(3, 20))
    assert len(found(searcher, k=30)) == 23
    assert place.tables()


@pytest.mark.parametrize("schema", ["", "a\0b", "pg_catalog", "é" * 32, "%s"])
def test_what_cannot_be_a_schema_is_a_wrong_setting(schema):
    with pytest.raises(ConfigurationError, match="schema="):
        PgvectorRetriever(HashedWords(), schema=schema)


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_and_texts_are_values(engine, place, index):
    odd = ["'); DROP TABLE x; --", "nul\0byte", "%s %(rows)s", "\\.", "\t\n", "{1,2}", "Ünïcode 東京", '"', "NULL", "a" * 5000]
    items = [
        item.model_copy(update={"item_id": name, "content": name + " fox"}) for name, item in zip(odd, corpus(10), strict=True)
    ]
    searcher = place.searcher(engine)
    searcher.index(items, index)
    searcher.delete([odd[0]], auto_compact=False)
    searcher.add([items[0]], auto_compact=False)
    searcher.compact()
    assert {item_id for item_id, _ in found(searcher, "fox", 20)} == {*odd}
    for query in odd:
        assert searcher.search([f"fox {query}"], 5)[0]


def test_filters_are_exact_on_an_old_and_a_new_extension(index):
    """k items whenever k match, and those of numpy; also where the filter is selective and the index a graph."""
    items, encoder = corpus(3000), HashedWords(24)
    vectors = encoder.encode_passages([item.text for item in items])
    for kind in ("embedded", "old"):
        for index_type in ("hnsw", "exact"):
            searcher = Place("filters", kind).searcher(index_type=index_type)
            searcher.index(items, index / kind / index_type)
            for query in ("fox whale", "queen orbit harbour"):
                scores = vectors @ encoder.encode_queries([query])[0]
                for where, passes in (({"part": 7}, lambda n: n % 10 == 7), ({"part": {"lt": 8}}, lambda n: n % 10 < 8)):
                    rows = np.array([row for row in range(3000) if passes(row)])
                    wanted = np.sort(scores[rows])[::-1][:10]
                    given = found(searcher, query, 10, where)
                    assert len(given) == 10
                    assert all(passes(int(item_id[1:])) for item_id, _ in given)
                    np.testing.assert_allclose([score for _, score in given], wanted, atol=1e-6)


def test_filters_of_many_rows_are_bits_and_as_exact(index, monkeypatch):
    monkeypatch.setattr("nlp_retrieval.retrievers.postgres.tables.FEW", 0)
    monkeypatch.setattr("nlp_retrieval.retrievers.pgvector.FEW", 0)
    test_filters_are_exact_on_an_old_and_a_new_extension(index)


@pytest.mark.parametrize("many_rows", [0, 10_000])
def test_a_batch_answers_as_each_query_alone(many_rows, place, index, monkeypatch):
    """Whether the queries of a batch are sent together, or one by one, as over a large table."""
    monkeypatch.setattr("nlp_retrieval.retrievers.pgvector._MANY_ROWS", many_rows)
    for index_type in ("exact", "hnsw"):
        searcher = place.searcher(index_type=index_type)
        searcher.index(corpus(300), index / index_type)
        for where in (None, {"part": {"lt": 3}}):
            batch = searcher.search(WORDS, 7, where)
            alone = [searcher.search([word], 7, where)[0] for word in WORDS]
            assert [[(hit.item.item_id, hit.score) for hit in hits] for hits in batch] == [
                [(hit.item.item_id, hit.score) for hit in hits] for hits in alone
            ]


def test_deep_lists_come_back_whole_from_a_graph(place, index):
    searcher = place.searcher(index_type="hnsw")
    searcher.index(corpus(2500), index)
    assert len(found(searcher, k=2000)) == 2000
    assert len(found(searcher, k=2000, where={"part": {"gte": 1}})) == 2000


def test_the_old_extension_has_no_halves_and_says_what_to_do(index):
    with pytest.raises(ServerError, match=r"0\.6\.2 is too old for precision='halfvec'.*ALTER EXTENSION"):
        Place("halves", "old").searcher(precision="halfvec").index(corpus(5), index)


def test_vectors_too_long_for_an_index_are_an_error_that_says_what_fits(place, index):
    with pytest.raises(ConfigurationError, match=r"at most 2,000 dimensions.*precision='halfvec'"):
        place.searcher(encoder=HashedWords(2001), index_type="hnsw").index(corpus(3), index)
    searcher = place.searcher(encoder=HashedWords(2001), index_type="hnsw", precision="halfvec")
    searcher.index(corpus(3), index)
    assert len(found(searcher)) == 3


def test_a_language_that_the_server_does_not_know_is_named(place, index):
    with pytest.raises(ConfigurationError, match="did you mean 'english'"):
        place.searcher("postgres_text", language="englisch").index(corpus(3), index)


def test_full_text_search_is_any_word_by_stem_and_no_operator(place, index):
    from nlp_retrieval import SearchableItem

    texts = ["The turbines were built.", "A turbine and a mill", "mills", "nothing of it", "Москва слезам не верит"]
    searcher = place.searcher("postgres_text")
    searcher.index([SearchableItem(item_id=str(n), content=text) for n, text in enumerate(texts)], index)
    assert {item_id for item_id, _ in found(searcher, "turbine mill")} == {"0", "1", "2"}
    assert found(searcher, "turbine mill")[0][0] == "1"
    assert {item_id for item_id, _ in found(searcher, "!turbine & mill <-> 'x':*")} == {"0", "1", "2"}
    assert [item_id for item_id, _ in found(searcher, "москва")] == ["4"]


def test_verify_asks_the_server_and_says_which_table_was_changed(place, index):
    def verify(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-c", "from nlp_retrieval.cli.app import main; main()", "verify", str(index), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "2000"})
        return done.returncode, done.stdout + done.stderr

    place.searcher().index(corpus(20), index)
    assert verify("--url", place.url)[0] == 0
    assert verify()[0] == 2
    assert "pass its URL with --url env:NAME" in verify()[1]
    table = str(record_of(index)[1]["table"])
    place.change("UPDATE {} SET embedding = embedding + embedding WHERE row = 3", table)
    code, said = verify("--url", place.url)
    assert code == 3
    assert table in said
