"""After any updates late interaction gives what MaxSim by hand gives over the items that are there."""

from __future__ import annotations

import random
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hashed_tokens import HashedTokens, naive_maxsim
from soaking import Figures, mostly_soaked
from updated_collection import UpdatedCollection, check_against, found_by

from nlp_retrieval.encoders.base import Vectors
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
