"""What the server holds is what the index was built with, or an error; and what no index needs any more is dropped."""

from __future__ import annotations

import gc
import json
import os
import shutil
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from nlp_retrieval import Searcher
from nlp_retrieval.core.components.registry import registered
from nlp_retrieval.core.search.base_searcher import drop_retriever
from nlp_retrieval.errors import (
    ForkError,
    IndexDamagedError,
    RetrievalWarning,
)

from .conftest import Store, corpus, found


def record_of(index: Path) -> tuple[Path, dict[str, object]]:
    (path,) = index.glob("*/server.json")
    return path, json.loads(path.read_text())


def table_of(index: Path) -> str:
    return str(record_of(index)[1]["table"])


def test_the_directory_keeps_the_name_of_a_table_and_no_url(store: Store, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "SECRET_URL", os.environ[store.url.removeprefix("env:")] + "&password=s3cret" * (store.engine != "milvus")
    )
    store.searcher(url="env:SECRET_URL").index(corpus(20), index)
    path, record = record_of(index)
    assert [file.name for file in path.parent.iterdir() if not file.name.startswith(".")] == ["server.json"]
    assert {record["table"]} == store.tables()
    written = b"".join(file.read_bytes() for file in index.rglob("*") if file.is_file())
    assert b"s3cret" not in written
    assert os.environ[store.url.removeprefix("env:")].encode() not in written


def test_a_table_that_is_missing_or_has_other_rows_is_an_error_and_is_replaced(store: Store, index: Path) -> None:
    searcher = store.searcher()
    searcher.index(corpus(20), index)
    before = found(searcher)
    store.delete_a_row(table_of(index))
    with pytest.raises(IndexDamagedError, match=r"holds 19 rows, and not the 20 .*replace=True"):
        store.searcher().open(index)
    store.drop(table_of(index))
    with pytest.raises(IndexDamagedError, match=r"dropped.*replace=True"):
        found(searcher)
    for use in (lambda: store.searcher().open(index), lambda: store.searcher().index(corpus(20), index)):
        with pytest.raises(IndexDamagedError, match=r"there is no nlpr_.*replace=True"):
            use()
    again = store.searcher()
    assert again.index(corpus(20), index, replace=True).built == [store.engine]
    assert found(again) == before


def test_a_table_that_nothing_names_any_more_is_dropped_by_the_next_writer(store: Store, index: Path) -> None:
    searcher = store.searcher()
    searcher.index(corpus(20), index)
    first = store.tables()
    searcher.add(corpus(4, 20), auto_compact=False)
    assert len(store.tables()) == 2
    reader = store.searcher().open(index)
    before = found(reader)
    searcher.compact()
    assert found(reader) == before
    assert first <= store.tables(), "a reader holds the folder that names it"
    del reader
    Searcher(searcher.retrievers).index(corpus(30), index, replace=True)
    searcher.refresh()
    searcher.delete(["d0"], auto_compact=False)
    assert len(store.tables()) == 1
    assert not first & store.tables()


def test_the_tables_of_a_retriever_that_is_dropped_go_with_it(
    store: Store, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("hashed-words", "hashed_words:HashedWords", "nlp_retrieval.encoders")
    monkeypatch.setitem(registered("encoders"), "hashed-words", entry)
    Searcher(["bm25", store.retriever()]).index(corpus(20), index)
    assert len(store.tables()) == 1
    gc.collect()  # a traceback that pymilvus keeps holds the searcher, which has the folder open
    with pytest.warns(RetrievalWarning, match="is trusted"):
        assert drop_retriever(index, store.engine, trust=True) == ["bm25"]
    assert not store.tables()


def test_a_copied_directory_answers_and_never_drops_what_the_original_uses(store: Store, index: Path, tmp_path: Path) -> None:
    searcher = store.searcher()
    searcher.index(corpus(20), index)
    before = found(searcher)
    shutil.copytree(index, tmp_path / "copy")
    copied = store.searcher().open(tmp_path / "copy")
    assert found(copied) == before
    copied.add(corpus(14, 20))
    copied.compact()
    store.searcher().index(corpus(9), tmp_path / "copy", replace=True)
    assert found(store.searcher().open(index)) == before


def test_ids_texts_metadata_and_queries_are_values(store: Store, index: Path) -> None:
    odd = ["'); DROP TABLE x; --", "nul\0byte", "%s %(rows)s", 'say "row in [1]" or 1 == 1', "back\\slash", "\t\n", "{1,2}"]
    odd += ["Ünïcode 東京 🦊", '"', "NULL", "row not in []", "a" * 5000]
    items = [
        item.model_copy(update={"item_id": name, "content": name + " fox"})
        for name, item in zip(odd, corpus(len(odd)), strict=True)
    ]
    searcher = store.searcher()
    searcher.index(items, index)
    searcher.delete([odd[0]], auto_compact=False)
    searcher.add([items[0]], auto_compact=False)
    searcher.compact()
    assert {item_id for item_id, _ in found(searcher, "fox", 20)} == {*odd}
    for query in odd:
        assert searcher.search([f"fox {query}"], 5)[0]


def test_a_child_of_this_process_is_told_to_open_its_own(store: Store, index: Path) -> None:
    searcher = store.searcher()
    searcher.index(corpus(20), index)
    before = found(searcher)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"answered"
        try:
            found(searcher)
        except ForkError:
            said = b"refused"
        finally:
            os.write(into, said)
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(out, 100) == b"refused"
    assert found(searcher) == before
