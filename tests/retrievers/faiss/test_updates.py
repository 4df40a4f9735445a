"""After any updates dense retrieval gives what numpy gives by brute force over the items that are there."""

from __future__ import annotations

import random
import shutil
import struct
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords, items_of
from soaking import Figures
from updated_collection import UpdatedCollection, check_against, files_of, found_by

from nlp_retrieval import FaissRetriever
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers import HNSW, IVFPQ, SQ8, Flat

ENCODER = HashedWords()
TEXTS = [*(f"word{n} word{n * 7 % 40} other{n % 5}" for n in range(40)), "", "alone"]
"""Distinct scores for distinct texts; the empty text is never found."""

QUERIES = ["word1 other3", "alone", "word5 word9 word30", "other0"]
SETTINGS = {"flat": Flat(), "hnsw": HNSW(), "sq8": SQ8(), "ivfpq": IVFPQ(8, nprobe=2, pq_bytes=8)}
TOLERANCE = {"flat": 2e-6, "hnsw": 2e-6, "sq8": 0.05, "ivfpq": 1.2}
CODED = ("sq8", "ivfpq")


def retriever(index_type: str, encoder: HashedWords = ENCODER) -> FaissRetriever:
    return FaissRetriever(encoder, SETTINGS[index_type])


def some_texts(count: int, seed: int = 3) -> list[str]:
    return random.Random(seed).choices(TEXTS, k=count)


@lru_cache(maxsize=10_000)
def product(query: str, text: str) -> float:
    if not text:
        return float("-inf")
    one, other = ENCODER.encode_queries([query])[0], ENCODER.encode_passages([text])[0]
    return float(one.astype(np.float64) @ other.astype(np.float64))


def check(collection: UpdatedCollection, tolerance: float, k: int) -> None:
    found = collection.searcher.search(QUERIES, k)
    for query, hits in zip(QUERIES, found, strict=True):
        check_against(collection, hits, lambda text, query=query: product(query, text), k, tolerance)  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore:faiss found nothing")  # now and then only empty texts are left
@pytest.mark.parametrize("index_type", ["flat", "hnsw"])
def test_any_updates_leave_what_brute_force_finds(index_type: str, tmp_path: Path, effort: int, figures: Figures) -> None:
    steps = 0
    for seed in range(3 * effort):
        draw = random.Random(seed)
        collection = UpdatedCollection(retriever(index_type), draw.choices(TEXTS, k=30), tmp_path / str(seed))
        for kind in collection.change_at_random(draw, TEXTS, 8):
            steps += 1
            check(collection, TOLERANCE[index_type], draw.choice([1, 5, 10]) if index_type == "flat" else 1000)
            if kind == "compact":
                assert len(collection.searcher.opened.manifest.corpus.segments) == 1
        check(collection, TOLERANCE[index_type], 1000)
        shutil.rmtree(tmp_path / str(seed))
    figures.add("Live updates", f"faiss, {index_type}: random steps of add, update, delete, compact", steps, steps)


@pytest.mark.parametrize("index_type", SETTINGS)
def test_compacted_it_is_the_index_built_at_once(index_type: str, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(index_type), some_texts(390), tmp_path / "updated")
    collection.delete([f"d{number}" for number in range(0, 390, 3)])
    collection.add(["", "alone", "alone"])
    collection.put(["d1", "d3"], ["word2 other2", "alone"])
    before = {query: dict(found_by(collection.searcher, query, 1000)) for query in QUERIES}
    collection.searcher.compact()
    at_once = collection.built_at_once(tmp_path / "at once", retriever(index_type))
    kept = {f"d{number}" for number in range(390)} - {"d1", "d3"}
    for query in QUERIES:
        one, other = found_by(collection.searcher, query, 1000), found_by(at_once, query, 1000)
        if index_type not in CODED:
            assert one == other
        assert sorted(name for name, _ in one) == sorted(name for name, _ in other)
        if index_type in CODED:  # codes of what was there are kept, and so are scores, to the bit
            same = [(name, score) for name, score in one if name in kept]
            assert same == [(name, before[query][name]) for name, _ in same]
            by_id = dict(other)
            np.testing.assert_allclose([s for _, s in one], [by_id[name] for name, _ in one], atol=TOLERANCE[index_type])
    names = ["vectors.npy"] if index_type == "flat" else ["index.faiss", "shape.npy"]
    assert [name for name in collection.files("*") if not name.startswith(".")] == names
    if index_type == "flat":
        assert collection.files() == files_of(at_once)


def segment_of(folder: Path, n_rows: int) -> SegmentFolder:
    return SegmentFolder(folder, 0, n_rows)


def written(index_type: str, folder: Path) -> Path:
    retriever(index_type).index(items_of(some_texts(300)), folder / "index")
    (found,) = (folder / "index").glob("faiss-*")
    return Path(shutil.copytree(found, folder / "copy"))


@pytest.mark.parametrize(
    ("place", "form", "value"),
    [
        (8, "<q", 2**40),
        pytest.param(8, "<q", 299, marks=pytest.mark.soak),
        (0, "4s", b"IxMp"),
    ],
)
def test_a_faiss_file_that_contradicts_its_segment_is_refused(tmp_path: Path, place: int, form: str, value: object) -> None:
    index_type = "hnsw"
    folder = written(index_type, tmp_path)
    file = folder / "index.faiss"
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, place, value)
    file.write_bytes(content)
    with pytest.raises(IndexDamagedError, match=r"index\.faiss"):
        retriever(index_type).load_segments([segment_of(folder, 300)])
