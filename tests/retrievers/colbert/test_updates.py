"""After any updates late interaction gives what MaxSim by hand gives over the items that are there."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hashed_tokens import HashedTokens, naive_maxsim
from hashed_words import items_of
from soaking import Figures, mostly_soaked
from token_passages import TEXTS as MANY_TEXTS
from updated_collection import UpdatedCollection, check_against, files_of, found_by

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError, ModelError
from nlp_retrieval.retrievers.colbert import files as colbert_files
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

Bits = Literal[2, 4] | None
ALL_BITS: tuple[Bits, ...] = (None, 2, 4)
ENCODER = HashedTokens(24)
TEXTS = [*(f"word{n} word{n * 7 % 40} other{n % 5}" for n in range(40)), "", "alone"]
QUERIES = ["word1 other3", "alone", "word5 word9 word30", "other0"]
LOSS = {None: 2e-3, 2: 0.6, 4: 0.3}


def retriever(bits: Bits, **settings: object) -> ColbertRetriever:
    return ColbertRetriever(ENCODER, bits=bits, **settings)  # type: ignore[arg-type]


def some_texts(count: int, seed: int = 3) -> list[str]:
    return random.Random(seed).choices(TEXTS, k=count)


@lru_cache(maxsize=10_000)
def maxsim(query: str, text: str) -> float:
    return naive_maxsim(ENCODER.encode_queries([query])[0], ENCODER.encode_passages([text])[0])


def spoken(collection: UpdatedCollection) -> list[str]:
    return [item.item_id for item in collection.items if item.content]


def changed(bits: Bits, path: Path, **settings: object) -> UpdatedCollection:
    """A collection of several segments, with deleted items in each."""
    collection = UpdatedCollection(retriever(bits, **settings), some_texts(150), path)
    collection.add(["", "alone", "alone"])
    collection.put(["d1", "d3"], ["word2 other2", "alone"])
    collection.add(some_texts(20, 4))
    collection.delete([f"d{number}" for number in range(0, 170, 3) if number != 3])
    return collection


def test_any_updates_leave_what_maxsim_by_hand_finds(tmp_path: Path, effort: int, figures: Figures) -> None:
    steps = 0
    for seed in range(3 * effort):
        draw = random.Random(seed)
        collection = UpdatedCollection(retriever(None), draw.choices(TEXTS, k=30), tmp_path / str(seed))
        for _kind in collection.change_at_random(draw, TEXTS, 8):
            steps += 1
            k = draw.choice([1, 5, 1000])
            for query, hits in zip(QUERIES, collection.searcher.search(QUERIES, k), strict=True):
                check_against(collection, hits, lambda text, query=query: maxsim(query, text), k, LOSS[None])  # type: ignore[misc]
        shutil.rmtree(tmp_path / str(seed))
    figures.add("Live updates", "colbert, whole tokens: random steps of add, update, delete, compact", steps, steps)


@pytest.mark.parametrize("bits", mostly_soaked([2, 4]))
def test_compressed_every_passage_that_is_there_is_found_once_and_no_other(
    bits: Bits, tmp_path: Path, effort: int, figures: Figures
) -> None:
    steps = 0
    for seed in range(2 * effort):
        draw = random.Random(seed)
        collection = UpdatedCollection(retriever(bits), some_texts(200), tmp_path / str(seed))
        for _kind in collection.change_at_random(draw, TEXTS, 8):
            steps += 1
            for query, hits in zip(QUERIES, collection.searcher.search(QUERIES, 1000), strict=True):
                assert sorted(hit.item.item_id for hit in hits) == sorted(spoken(collection))
                by_hand = [maxsim(query, hit.item.content) for hit in hits]
                np.testing.assert_allclose([hit.score for hit in hits], by_hand, atol=LOSS[bits])
                assert all(len({h.score for h in hits if h.item.content == text}) <= 1 for text in ("alone", "word2 other2"))
        shutil.rmtree(tmp_path / str(seed))
    figures.add("Live updates", f"colbert, {bits} bits: random steps of add, update, delete, compact", steps, steps)


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_joining_segments_changes_no_score_by_a_bit_and_encodes_nothing(
    bits: Bits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = changed(bits, tmp_path)
    before = [found_by(collection.searcher, query, 1000) for query in QUERIES]

    def never(encoder: HashedTokens, passages: list[str]) -> list[Vectors]:
        raise AssertionError(f"{len(passages)} passages were encoded again")

    monkeypatch.setattr(HashedTokens, "encode_passages", never)
    assert collection.searcher.compact().segments == 1
    assert [found_by(collection.searcher, query, 1000) for query in QUERIES] == before


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_segments_behind_the_first_are_joined_without_it(bits: Bits, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(bits), some_texts(150), tmp_path)
    collection.add(some_texts(20, 4))
    collection.delete(["d151", "d160", "d5"])
    collection.searcher.add(added := items_of(some_texts(200, 5))[175:])
    collection.items += added
    assert [(segment.first_row, segment.end_row) for segment in segments_of(collection)] == [(0, 150), (150, 193)]
    before = [found_by(collection.searcher, query, 1000) for query in QUERIES]
    assert all(sorted(name for name, _ in found) == sorted(spoken(collection)) for found in before)
    collection.searcher.compact()
    assert [found_by(collection.searcher, query, 1000) for query in QUERIES] == before


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_compacted_it_is_the_index_built_at_once_within_quantisation(bits: Bits, tmp_path: Path) -> None:
    collection = changed(bits, tmp_path / "updated")
    collection.searcher.compact()
    at_once = collection.built_at_once(tmp_path / "at once", retriever(bits))
    for query in QUERIES:
        one, other = found_by(collection.searcher, query, 1000), found_by(at_once, query, 1000)
        assert sorted(name for name, _ in one) == sorted(name for name, _ in other) == sorted(spoken(collection))
        by_id = dict(other)
        np.testing.assert_allclose([score for _, score in one], [by_id[name] for name, _ in one], atol=LOSS[bits])
    if bits is None:
        assert collection.files("*.*") == files_of(at_once, "*.*")


@pytest.mark.parametrize("bits", mostly_soaked([2, 4]))
def test_inverted_lists_of_joined_segments_are_those_of_their_codes(
    bits: Bits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colbert_files, "TOKENS_AT_ONCE", 37)
    monkeypatch.setattr(colbert_files, "PAIRS_AT_ONCE", 50)
    collection = changed(bits, tmp_path)
    collection.searcher.compact()
    generation = collection.searcher.opened
    (record,) = generation.manifest.retrievers
    folder = generation.path / record.segments[0].folder
    codes, offsets = np.load(folder / "codes.npy"), np.load(folder / "offsets.npy")
    bounds, rows = np.load(folder / "list_offsets.npy"), np.load(folder / "list_rows.npy")
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    assert np.diff(offsets).tolist() == [len(item.content.split()) for item in collection.items]
    for centroid in range(len(bounds) - 1):
        assert rows[bounds[centroid] : bounds[centroid + 1]].tolist() == np.unique(owner[codes == centroid]).tolist()


@pytest.mark.parametrize("bits", mostly_soaked([2, 4]))
def test_candidates_of_several_segments_find_as_much_as_those_of_one(bits: Bits, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(bits, rescored=40), MANY_TEXTS[:500], tmp_path)
    collection.add(MANY_TEXTS[500:])
    queries = [" ".join(text.split()[:4]) for text in MANY_TEXTS[::45] if text]
    apart = [found_by(collection.searcher, query, 10) for query in queries]
    collection.searcher.compact()
    together = [found_by(collection.searcher, query, 10) for query in queries]
    assert np.mean([sum(s for _, s in one) for one in apart]) >= np.mean([sum(s for _, s in one) for one in together]) - 1e-9
    assert np.mean([len(dict(a).keys() & dict(b).keys()) for a, b in zip(apart, together, strict=True)]) > 9


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_filters_see_every_segment(bits: Bits, tmp_path: Path) -> None:
    collection = changed(bits, tmp_path, rescored=8)
    even = [item.item_id for item in collection.items if item.metadata["even"] and item.content]
    for k in (1, 10, 1000):
        found = found_by(collection.searcher, "word5 other3", k, where={"even": True})
        assert len(found) == min(k, len(even))
        assert {name for name, _ in found} <= set(even)


@pytest.mark.parametrize("bits", mostly_soaked([2, 4]))
def test_a_codec_that_a_few_passages_trained_is_not_used_for_many(
    bits: Bits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = UpdatedCollection(retriever(bits), [TEXTS[3], "", "alone"], tmp_path)
    collection.add([*TEXTS, *some_texts(160)])
    collection.add([TEXTS[9]])

    def never(encoder: HashedTokens, passages: list[str]) -> list[Vectors]:
        raise AssertionError(f"{len(passages)} passages were encoded again")

    for compacted in (False, True):
        if compacted:
            monkeypatch.setattr(HashedTokens, "encode_passages", never)
            collection.searcher.compact()
            monkeypatch.undo()
        for query, hits in zip(QUERIES, collection.searcher.search(QUERIES, 1000), strict=True):
            assert sorted(hit.item.item_id for hit in hits) == sorted(spoken(collection))
            by_hand = [maxsim(query, hit.item.content) for hit in hits]
            np.testing.assert_allclose([hit.score for hit in hits], by_hand, atol=LOSS[bits])


@pytest.mark.parametrize("bits", mostly_soaked([2, 4]))
def test_an_index_that_began_with_one_passage_is_compacted_to_the_index_built_at_once(bits: Bits, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(bits), ["alone"], tmp_path / "updated")
    for text in some_texts(9):
        collection.add([text])
        (hits,) = collection.searcher.search([text or "alone"], 1)
        assert hits[0].score == pytest.approx(maxsim(text or "alone", hits[0].item.content), abs=LOSS[bits])
    collection.searcher.compact()
    at_once = collection.built_at_once(tmp_path / "at once", retriever(bits))
    assert collection.files("*.*") == files_of(at_once, "*.*")


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_an_index_whose_first_passages_have_no_token_takes_up_some_that_have(bits: Bits, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(bits), ["", " "], tmp_path)
    collection.add([""])
    collection.add(["red fox", "blue whale sings"])
    collection.add(["", "red tree"])
    for _ in range(2):
        (hits,) = collection.searcher.search(["red fox"], 10)
        assert hits[0].item.content == "red fox"
        assert hits[0].score == pytest.approx(2.0, abs=0.01 + (LOSS[bits] if bits else 0))
        assert {hit.item.item_id for hit in hits} == {"d3", "d4", "d6"}
        collection.searcher.compact()
    collection.delete(["d3", "d4", "d6"])
    collection.searcher.compact()
    collection.add(["green tree"])
    assert found_by(collection.searcher, "green tree", 3)[0][0] == "d7"


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_a_segment_without_any_item_that_is_there_is_searched_around_and_joined(bits: Bits, tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(bits), some_texts(60), tmp_path)
    collection.add(["word1 other1", "word2"])
    collection.delete([f"d{number}" for number in range(60)])
    for _ in range(2):
        assert [name for name, _ in found_by(collection.searcher, "word2", 10)] == ["d61", "d60"]
        collection.searcher.compact()


def test_several_threads_get_what_one_gets(tmp_path: Path) -> None:
    collection = changed(2, tmp_path, rescored=8)
    alone = [found_by(collection.searcher, query, 20) for query in QUERIES]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda query: found_by(collection.searcher, query, 20), QUERIES * 6)) == alone * 6


class Projecting(HashedTokens):
    """Multiplies by a matrix that is another one every time, where none is given."""

    name = "projecting"
    matrix: Vectors | None = None

    def projection_matrix(self) -> Vectors:
        if self.matrix is None:
            self.matrix = np.linalg.qr(np.random.default_rng().standard_normal((24, 24)))[0].astype(np.float32)
        return self.matrix

    def with_projection(self, matrix: Vectors) -> Projecting:
        other = Projecting(24)
        other.matrix = matrix
        return other

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [vectors @ self.projection_matrix() for vectors in super().encode_passages(passages)]

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return self.encode_passages(queries)


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_what_joins_goes_through_the_projection_of_the_index(bits: Bits, tmp_path: Path) -> None:
    for number in range(4):
        texts = some_texts(30, number)
        engine = ColbertRetriever(Projecting(24), bits=bits)
        if number == 0:
            collection = UpdatedCollection(engine, texts, tmp_path)
        else:
            collection.searcher.retrievers["colbert"] = engine
            collection.add(texts)
    collection.searcher.compact()
    for query, hits in zip(QUERIES, collection.searcher.search(QUERIES, 1000), strict=True):
        by_hand = [maxsim(query, hit.item.content) for hit in hits]
        np.testing.assert_allclose([hit.score for hit in hits], by_hand, atol=LOSS[bits] + 0.02)


class Widened(HashedTokens):
    """Has as many dimensions as it is told, and says nothing of it."""

    name = "widened"

    def index_identity(self) -> dict[str, object]:
        return {"name": "widened"}


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_tokens_of_another_dimension_cannot_join(bits: Bits, tmp_path: Path) -> None:
    encoder = Widened(24)
    collection = UpdatedCollection(ColbertRetriever(encoder, bits=bits), some_texts(20), tmp_path)
    encoder._dimension = 30
    with pytest.raises(ModelError, match=r"dimension 30, and those in .* have 24"):
        collection.add(["red fox"])
    encoder._dimension = 24
    assert "d20" not in dict(found_by(collection.searcher, "red fox", 100))


@pytest.mark.parametrize("bits", mostly_soaked([2, 4]))
def test_a_codec_compresses_tokens_again_to_what_they_were(bits: Literal[2, 4], tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(bits), some_texts(150), tmp_path)
    ids = collection.add([item.content for item in collection.items])
    generation = collection.searcher.opened
    first, second = (generation.path / segment.folder for segment in generation.manifest.retrievers[0].segments)
    assert len(ids) == 150
    assert (np.load(first / "codes.npy") == np.load(second / "codes.npy")).mean() > 0.97
    assert (np.load(first / "residuals.npy") == np.load(second / "residuals.npy")).mean() > 0.95


@pytest.mark.parametrize("bits", mostly_soaked(ALL_BITS, [2]))
def test_a_segment_of_another_number_of_items_is_refused(bits: Bits, tmp_path: Path) -> None:
    folders = segments_of(changed(bits, tmp_path))
    wrong = SegmentFolder(folders[0].folder, 0, 151)
    with pytest.raises(IndexDamagedError, match=r"offsets\.npy is damaged: it is of 150 passages, and 151 items"):
        retriever(bits).load_segments([wrong, *folders[1:]])


def test_segments_of_two_projections_are_refused(tmp_path: Path) -> None:
    collection = UpdatedCollection(ColbertRetriever(Projecting(24), bits=2), some_texts(90), tmp_path / "index")
    collection.add(["alone"])
    one, other = segments_of(collection)
    copied = Path(shutil.copytree(other.folder, tmp_path / "copy"))
    np.save(copied / "projection.npy", np.load(copied / "projection.npy")[::-1])
    with pytest.raises(IndexDamagedError, match=r"projection\.npy"):
        ColbertRetriever(Projecting(24), bits=2).load_segments([one, SegmentFolder(copied, 90, 91)])


def test_segments_of_two_dimensions_are_refused(tmp_path: Path) -> None:
    for number, dimension in enumerate((24, 23)):
        ColbertRetriever(HashedTokens(dimension), bits=2).index(items_of(["red fox"]), tmp_path / str(number))
    one, other = (next(tmp_path.glob(f"{number}/colbert-*")) for number in (0, 1))
    with pytest.raises(IndexDamagedError, match=r"its vectors have dimension 23, and those of .* 24"):
        ColbertRetriever(ENCODER, bits=2).load_segments([SegmentFolder(one, 0, 1), SegmentFolder(other, 1, 2)])


def segments_of(collection: UpdatedCollection) -> list[SegmentFolder]:
    generation = collection.searcher.opened
    segments = generation.manifest.retrievers[0].segments
    return [SegmentFolder(generation.path / s.folder, s.first_row, s.end_row) for s in segments]


def test_adding_nothing_changes_nothing(tmp_path: Path) -> None:
    collection = UpdatedCollection(retriever(4), some_texts(9), tmp_path)
    assert collection.searcher.add(items_of([])).segments == 1
