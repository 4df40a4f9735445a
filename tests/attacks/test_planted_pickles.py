"""No file that is read is ever unpickled: not in an index whose manifest vouches for it, nor in a run folder or a cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hashed_tokens import HashedTokens
from hashed_words import HashedWords, items_of

from nlp_retrieval import (
    Bm25Retriever,
    ColbertRetriever,
    FaissRetriever,
    LinkGraphRetriever,
    Searcher,
)
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers import TitleMentions

from .planting import forge, object_array, pickled

ITEMS = items_of(
    [f"fox {row} whale river castle{row % 5} by Page {(row + 1) % 30}" for row in range(30)],
    [f"Page {row}" for row in range(30)],
)
RETRIEVERS: dict[str, BaseRetriever] = {
    "bm25": Bm25Retriever(),
    "faiss hnsw": FaissRetriever(HashedWords(), index="hnsw"),
    "colbert": ColbertRetriever(HashedTokens()),
    "link_graph": LinkGraphRetriever([Bm25Retriever()], links=[TitleMentions(rarity=0.0)]),
}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("indexes")
    for name, retriever in RETRIEVERS.items():
        Searcher([retriever]).index(ITEMS, folder / name)
    return {name: folder / name for name in RETRIEVERS}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_an_index_with_a_pickle_in_place_of_a_file_is_damaged(name: str, indexes: dict[str, Path], tmp_path: Path) -> None:
    index, forged, ran = indexes[name], tmp_path / "forged", tmp_path / "ran"
    files = [file.relative_to(index) for file in index.glob("*/*") if not file.name.startswith(".")]
    assert len(files) >= 2
    for file in files:
        for plant in (lambda path, ran: path.write_bytes(pickled(ran)), object_array):
            shutil.copytree(index, forged)
            plant(forged / file, ran)
            forge(forged)
            with pytest.raises(IndexDamagedError) as found:
                Searcher([RETRIEVERS[name]]).open(forged).search(["fox whale"], 3)
            assert str(forged) in str(found.value)
            assert not ran.exists(), f"{file} was unpickled"
            shutil.rmtree(forged)


def test_a_manifest_that_is_a_pickle_is_damaged(indexes: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(indexes["bm25"], tmp_path / "index")
    (tmp_path / "index" / "manifest.json").write_bytes(pickled(tmp_path / "ran"))
    with pytest.raises(IndexDamagedError, match="it is not a manifest"):
        Searcher([Bm25Retriever()]).open(tmp_path / "index")
    assert not (tmp_path / "ran").exists()


def test_an_arrow_extension_type_is_not_unpickled(tmp_path: Path) -> None:
    """CVE-2023-47248: pyarrow before 14 unpickled what a file's schema says of its extension types."""
    forged = tmp_path / "index"
    Searcher([Bm25Retriever()]).index(ITEMS, forged)
    (items,) = forged.glob("items-*/items.arrow")
    with pa.ipc.open_stream(items.read_bytes()) as reader:
        table = reader.read_all()
    planted = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": pickled(tmp_path / "ran")}
    schema = table.schema
    for number, field in enumerate(schema):
        schema = schema.set(number, field.with_metadata((field.metadata or {}) | planted))
    with pa.ipc.new_stream(items, schema) as writer:
        writer.write_table(pa.Table.from_arrays(table.columns, schema=schema))
    forge(forged)
    found = Searcher([Bm25Retriever()]).open(forged).search(["fox whale"], 3)[0]
    assert [hit.item for hit in found] == ITEMS[:3]
    assert not (tmp_path / "ran").exists()
