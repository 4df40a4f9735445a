"""No file that is read is ever unpickled: not in an index whose manifest vouches for it, nor in a run folder or a cache."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.small_benchmark import benchmarker
from hashed_tokens import HashedTokens
from hashed_words import HashedWords, items_of
from sparse_models import HashedTerms

from nlp_retrieval import (
    Bm25Retriever,
    ColbertRetriever,
    FaissRetriever,
    LinkGraphRetriever,
    Searcher,
)
from nlp_retrieval.benchmarks.runs import read_run_folder
from nlp_retrieval.benchmarks.stage_store import Entry, StageStore
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, SourceError
from nlp_retrieval.lm.engine import AnswerStore
from nlp_retrieval.lm.programs import read_program
from nlp_retrieval.reports.write import write_run_files
from nlp_retrieval.retrievers import TitleMentions
from nlp_retrieval.retrievers.splade import SpladeRetriever

from .planting import forge, object_array, pickled

ITEMS = items_of(
    [f"fox {row} whale river castle{row % 5} by Page {(row + 1) % 30}" for row in range(30)],
    [f"Page {row}" for row in range(30)],
)
RETRIEVERS: dict[str, BaseRetriever] = {
    "bm25": Bm25Retriever(),
    "faiss flat": FaissRetriever(HashedWords()),
    "faiss hnsw": FaissRetriever(HashedWords(), index="hnsw"),
    "colbert": ColbertRetriever(HashedTokens()),
    "splade": SpladeRetriever(HashedTerms()),
    "link_graph": LinkGraphRetriever([Bm25Retriever()], links=[TitleMentions(rarity=0.0)]),
}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("indexes")
    for name, retriever in RETRIEVERS.items():
        Searcher([retriever]).index(ITEMS, folder / name)
    return {name: folder / name for name in RETRIEVERS}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    write_run_files(benchmarker(folder / "index").run(), folder / "output")
    return folder / "output"


def files_of(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(".")]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_an_index_with_a_pickle_in_place_of_a_file_is_damaged(name: str, indexes: dict[str, Path], tmp_path: Path) -> None:
    check_planted(RETRIEVERS[name], indexes[name], tmp_path)


def check_planted(retriever: BaseRetriever, index: Path, tmp_path: Path) -> None:
    """Check that a pickle in place of each file of an index is damage, and is not loaded."""
    ran, forged = tmp_path / "ran", tmp_path / "forged"
    files = [file.relative_to(index) for file in files_of(index) if file.name != "manifest.json"]
    assert len(files) >= 2
    for file in files:
        for plant in ("pickle", "array"):
            shutil.copytree(index, forged)
            if plant == "pickle":
                (forged / file).write_bytes(pickled(ran))
            else:
                object_array(forged / file, ran)
            forge(forged)
            with pytest.raises(IndexDamagedError) as found:
                Searcher([retriever]).open(forged).search(["fox whale"], 3)
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


def test_a_run_folder_with_a_pickle_in_place_of_a_file_is_refused(
    run_folder: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for file in ["report.json", "per_query.parquet", "hits.parquet", "queries.parquet"]:
        with subtests.test(file=file):
            tmp_path = tmp_path_factory.mktemp("case")
            for plant in ("pickle", "array"):
                planted, ran = tmp_path / plant, tmp_path / "ran"
                shutil.copytree(run_folder, planted)
                if plant == "pickle":
                    (planted / file).write_bytes(pickled(ran))
                else:
                    object_array(planted / file, ran)
                with pytest.raises(SourceError, match=file):
                    read_run_folder(planted)
                assert not ran.exists()


def test_a_stage_result_that_is_a_pickle_is_not_there(tmp_path: Path) -> None:
    store = StageStore(tmp_path)
    store.keep("group", "name", Entry({"a": 1}, {"b": np.arange(3)}))
    (file,) = tmp_path.rglob("*.stage")
    content = file.read_bytes()
    for planted in (pickled(tmp_path / "ran"), content[:90] + pickled(tmp_path / "ran")):
        file.write_bytes(planted)
        assert StageStore(tmp_path).find("group", "name") is None
        assert list(StageStore(tmp_path).entries("group")) == []
        assert not (tmp_path / "ran").exists()
    file.write_bytes(content)
    assert StageStore(tmp_path).find("group", "name") is not None


def test_an_answer_that_is_a_pickle_is_not_there(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "answers")
    store.keep({"asked": "what"}, {"text": "that"})
    assert store.find({"asked": "what"}) == {"text": "that"}
    store.path_of({"asked": "what"}).write_bytes(pickled(tmp_path / "ran"))
    assert store.find({"asked": "what"}) is None
    assert not (tmp_path / "ran").exists()


def test_a_compiled_program_that_is_a_pickle_is_refused(tmp_path: Path) -> None:
    for name, error in (("program.pkl", ConfigurationError), ("program.json", SourceError)):
        (tmp_path / name).write_bytes(pickled(tmp_path / "ran"))
        with pytest.raises(error):
            read_program(tmp_path / name)
        assert not (tmp_path / "ran").exists()


def test_what_langchain_and_llamaindex_decode_as_objects_stays_text(tmp_path: Path) -> None:
    """CVE-2025-68664 and CVE-2025-3108: marks in JSON that other tools turn into objects, or hand to pickle."""
    marked = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": f"mkdir {tmp_path / 'ran'}"}}
    metadata = {"__is_component": True, "qualified_name": "os.system", "value": marked, "py/object": "os.system"}
    items = [item.model_copy(update={"metadata": metadata}) for item in ITEMS]
    searcher = Searcher([Bm25Retriever()])
    searcher.index(items, tmp_path / "index")
    (hit, *_), *_ = searcher.search(["fox"], 1)
    assert hit.item.metadata == metadata
    assert json.loads(json.dumps(metadata)) == metadata
    assert not (tmp_path / "ran").exists()
