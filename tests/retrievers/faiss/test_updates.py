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

from nlp_retrieval import FaissRetriever, Searcher
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError, ModelError
from nlp_retrieval.retrievers import HNSW, IVFPQ, SQ8, Flat
from nlp_retrieval.retrievers.faiss import types

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


@pytest.mark.parametrize("index_type", CODED)
def test_with_codes_every_item_that_is_there_is_found_once_and_no_other(index_type: str, tmp_path: Path) -> None:
    draw = random.Random(1)
    collection = UpdatedCollection(retriever(index_type), some_texts(300), tmp_path)
    for _kind in collection.change_at_random(draw, TEXTS, 10):
        for query, hits in zip(QUERIES, collection.searcher.search(QUERIES, 1000), strict=True):
            assert sorted(hit.item.item_id for hit in hits) == sorted(i.item_id for i in collection.items if i.content)
            by_hand = [product(query, hit.item.content) for hit in hits]
            np.testing.assert_allclose([hit.score for hit in hits], by_hand, atol=TOLERANCE[index_type])


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


@pytest.mark.parametrize("index_type", SETTINGS)
def test_what_joins_is_flat_and_joined_without_the_first_segment_too(
    index_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = UpdatedCollection(retriever(index_type), some_texts(300), tmp_path)
    encoded: list[int] = []
    whole = HashedWords.encode_passages

    def counted(encoder: HashedWords, passages: list[str]) -> Vectors:
        encoded.append(len(passages))
        return whole(encoder, passages)

    monkeypatch.setattr(HashedWords, "encode_passages", counted)
    monkeypatch.setattr(HashedWords, "encode_queries", whole)
    collection.add(some_texts(20, 4))
    more = some_texts(25, 5)
    collection.searcher.add(items := [collection._item(f"d{1000 + n}", text) for n, text in enumerate(more)])
    collection.items += items
    generation = collection.searcher.opened
    (record,) = generation.manifest.retrievers
    assert [(segment.first_row, segment.end_row) for segment in record.segments] == [(0, 300), (300, 345)]
    assert "vectors.npy" in record.segments[1].files
    assert sum(encoded) == 45
    collection.searcher.compact()
    assert sum(encoded) == 45
    if index_type not in CODED:
        check(collection, TOLERANCE[index_type], 1000)


def test_equal_texts_stand_by_row_whatever_segments_they_are_in(tmp_path: Path) -> None:
    for index_type, dimension in (("flat", 37), ("hnsw", 37)):
        encoder = HashedWords(dimension)
        collection = UpdatedCollection(
            retriever(index_type, encoder), ["red fox", "blue whale", "red fox"] * 30, tmp_path / index_type
        )
        collection.add(["red fox"] * 5)
        collection.add(["green tree", "red fox"])
        same = [item.item_id for item in collection.items if item.content == "red fox"]
        for query in ("red fox", "red", "fox whale"):
            for k in (1, 60, 63, 66):
                found = found_by(collection.searcher, query, k)
                scores = {score for name, score in found if name in same}
                assert [name for name, _ in found if name in same] == same[: len([n for n, _ in found if n in same])]
                assert len(scores) <= 1


@pytest.mark.parametrize(("n_first", "n_left"), [(20, 9), (9, 20), (20, 20)])
def test_auto_decides_anew_when_segments_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_first: int, n_left: int
) -> None:
    monkeypatch.setattr(types, "FLAT_BELOW", 15)
    auto = FaissRetriever(ENCODER)
    collection = UpdatedCollection(auto, TEXTS[:n_first], tmp_path / "updated")
    if n_left > n_first:
        collection.add(TEXTS[n_first:n_left])
    else:
        collection.add(["alone"])
        collection.delete(["d0", *(f"d{number}" for number in range(n_left, n_first))])
    check(collection, 2e-6, 1000)
    collection.searcher.compact()
    check(collection, 2e-6, 1000)
    assert bool(collection.files("*.faiss")) == (n_left >= 15)
    at_once = collection.built_at_once(tmp_path / "at once", FaissRetriever(ENCODER))
    assert [found_by(collection.searcher, q, 50) for q in QUERIES] == [found_by(at_once, q, 50) for q in QUERIES]


@pytest.mark.parametrize("index_type", SETTINGS)
def test_vectors_and_similarities_are_those_of_the_rows_of_the_whole_index(index_type: str, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(index_type), some_texts(300), tmp_path)
    collection.add(["alone", ""])
    collection.add(["word3"])
    opened = retriever(index_type).open(collection.searcher.opened)
    texts = [item.content for item in collection.items]
    for rows in ([302, 0, 301, 300, 5, 5], [300], [2], []):
        found = opened.vectors_of(np.array(rows, np.int64))
        assert found.shape == (len(rows), 16)
        assert found.dtype == np.float32
        wanted = ENCODER.encode_passages([texts[row] for row in rows])
        assert np.abs(found - wanted).max(initial=0) <= {"sq8": 0.02, "ivfpq": 0.7}.get(index_type, 0)
    query = opened.encode(["word3 alone"])
    rows = np.array([300, 302], np.int64)
    by_hand = ENCODER.encode_passages(["alone", "word3"]) @ query[0]
    np.testing.assert_allclose(opened.similarities(query[0], rows), by_hand, atol=1e-6)


@pytest.mark.parametrize("index_type", ["flat", "hnsw"])
def test_vectors_of_another_dimension_cannot_join_and_nothing_is_added(index_type: str, tmp_path: Path) -> None:
    class Growing(HashedWords):
        """Has as many dimensions as it is told, and says nothing of it."""

        def index_identity(self) -> dict[str, object]:
            return {"name": "growing"}

        name = "growing"

    encoder = Growing(16)
    collection = UpdatedCollection(retriever(index_type, encoder), some_texts(50), tmp_path)
    encoder.dimension = 20
    with pytest.raises(ModelError, match=r"shape \(2, 20\); 2 vectors of dimension 16 were expected"):
        collection.add(["red fox", "blue whale"])
    encoder.dimension = 16
    there = [item.item_id for item in collection.items if item.content]
    assert sorted(name for name, _ in found_by(collection.searcher, "red", 100)) == sorted(there)
    assert collection.searcher.add(items_of(["red"])[:0]).n_items == 50


def segment_of(folder: Path, n_rows: int) -> SegmentFolder:
    return SegmentFolder(folder, 0, n_rows)


def written(index_type: str, folder: Path) -> Path:
    retriever(index_type).index(items_of(some_texts(300)), folder / "index")
    (found,) = (folder / "index").glob("faiss-*")
    return Path(shutil.copytree(found, folder / "copy"))


@pytest.mark.parametrize("index_type", ["hnsw", "sq8", "ivfpq"])
@pytest.mark.parametrize(
    ("place", "form", "value"),
    [
        (4, "<i", 17),
        (8, "<q", 2**40),
        pytest.param(8, "<q", 299, marks=pytest.mark.soak),
        (0, "4s", b"IxMp"),
    ],
)
def test_a_faiss_file_that_contradicts_its_segment_is_refused(
    index_type: str, tmp_path: Path, place: int, form: str, value: object
) -> None:
    folder = written(index_type, tmp_path)
    file = folder / "index.faiss"
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, place, value)
    file.write_bytes(content)
    with pytest.raises(IndexDamagedError, match=r"index\.faiss"):
        retriever(index_type).load_segments([segment_of(folder, 300)])


@pytest.mark.parametrize("index_type", SETTINGS)
def test_a_segment_of_another_number_of_items_is_refused(index_type: str, tmp_path: Path) -> None:
    folder = written(index_type, tmp_path)
    opened = retriever(index_type)
    opened.load_segments([segment_of(folder, 300)])
    for n_rows in (299, 301):
        with pytest.raises(IndexDamagedError, match="vectors" if index_type == "flat" else "300 vectors"):
            opened.load_segments([segment_of(folder, n_rows)])


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((300, 16), np.float64),
        np.zeros((300, 16), np.int32),
        np.zeros(300, np.float32),
        np.zeros((300, 16, 1), np.float32),
        np.asfortranarray(np.zeros((300, 16), np.float32)),
        np.zeros((300, 16), ">f4"),
    ],
)
def test_vectors_that_are_no_float32_matrix_are_refused(tmp_path: Path, wrong: np.ndarray) -> None:
    np.save(tmp_path / "vectors.npy", wrong)
    with pytest.raises(IndexDamagedError, match=r"vectors\.npy"):
        retriever("flat").load_segments([segment_of(tmp_path, 300)])
    with pytest.raises(IndexDamagedError, match=r"vectors\.npy"):
        retriever("flat").load_segments([segment_of(tmp_path, 300)])


def test_segments_of_two_dimensions_are_refused(tmp_path: Path) -> None:
    segments = []
    for number, dimension in enumerate((16, 17)):
        folder = tmp_path / str(number)
        folder.mkdir()
        np.save(folder / "vectors.npy", np.zeros((3, dimension), np.float32))
        segments.append(SegmentFolder(folder, 3 * number, 3 * number + 3))
    with pytest.raises(IndexDamagedError, match=r"1/vectors\.npy.*\(3, 17\).*3 x 16"):
        retriever("flat").load_segments(segments)


def test_training_and_building_read_vectors_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nlp_retrieval.retrievers.faiss import build as faiss_build

    monkeypatch.setattr(faiss_build, "_AT_ONCE", 50)
    read: list[int] = []
    whole = np.fromfile

    def counted(file: object, dtype: np.dtype, count: int) -> np.ndarray:
        read.append(count)
        return whole(file, dtype, count)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(np, "fromfile", counted)
    collection = UpdatedCollection(retriever("ivfpq"), some_texts(420), tmp_path / "small blocks")
    collection.add(some_texts(70, 2))
    collection.searcher.compact()
    assert sum(read) >= 16 * (420 + 70)
    assert max(read) <= 50 * 16
    monkeypatch.undo()
    other = UpdatedCollection(retriever("ivfpq"), some_texts(420), tmp_path / "large blocks")
    other.add(some_texts(70, 2))
    other.searcher.compact()
    assert [found_by(collection.searcher, q, 30) for q in QUERIES] == [found_by(other.searcher, q, 30) for q in QUERIES]


@pytest.mark.parametrize(("steps", "off"), [([60], 0.02), ([15] * 4, 0.12)], ids=["at once", "little by little"])
def test_a_quantiser_that_few_items_trained_is_trained_again_where_they_have_become_many(
    tmp_path: Path, steps: list[int], off: float
) -> None:
    texts = [" ".join(f"word{(7 * row + place * place) % 83}" for place in range(6)) for row in range(5 + sum(steps))]
    items = items_of(texts)
    grown = Searcher([FaissRetriever(HashedWords(), index="sq8")])
    grown.index(items[:5], tmp_path / "grown")
    for count in steps:
        there = grown.opened.manifest.corpus.n_items
        grown.add(items[there : there + count], auto_compact=False)
        grown.compact()
    at_once = Searcher([FaissRetriever(HashedWords(), index="sq8")])
    at_once.index(items, tmp_path / "at once")
    scores = [
        {hit.item.item_id: hit.score for hit in searcher.search("word1 word50 word77", k=len(items))[0]}
        for searcher in (grown, at_once)
    ]
    assert scores[0].keys() == scores[1].keys()
    assert max(abs(score - scores[1][item_id]) for item_id, score in scores[0].items()) < off  # 0.27 by the first quantiser
