"""A ColbertRetriever finds files and numbers that do not fit together before it searches them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hashed_words import items_of
from token_passages import ENCODER, TEXTS

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colbert") / "index"
    for bits in (None, 2):
        ColbertRetriever(ENCODER, bits=bits).index(items_of(TEXTS), folder)
    return folder


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("codes.npy", 60_000, r"codes\.npy is damaged: it names 0\.\.60000"),
        ("offsets.npy", -4, "do not ascend"),
        ("weights.npy", np.nan, "NaN"),
    ],
)
def test_numbers_that_lead_nowhere_are_found_before_compiled_code_follows_them(
    path: Path, tmp_path: Path, name: str, value: float, said: str
) -> None:
    folder = tmp_path / "index"
    shutil.copytree(compressed_folder(path), folder)
    array = np.load(folder / name)
    array[len(array) // 2] = value
    np.save(folder / name, array)
    segment = SegmentFolder(folder, 0, len(np.load(folder / "offsets.npy")) - 1)
    with pytest.raises(IndexDamagedError, match=said):
        ColbertRetriever(ENCODER, bits=2).load_segments([segment])


def compressed_folder(path: Path) -> Path:
    (found,) = (file.parent for file in path.glob("colbert-*/codes.npy"))
    return found
