"""Files of a knowledge graph that contradict one another are damage that is named, whatever their checksums say."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed_words import HashedWords
from numpy.typing import NDArray

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.systems.hipporag.graph import open_knowledge
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from systems.hipporag.stored_knowledge import openie_file, random_passage

DRAW = random.Random(5)
ITEMS = [random_passage(DRAW, f"d{number}") for number in range(12)]

pytestmark = pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")

Change = Callable[[NDArray[Any]], NDArray[Any]]


@pytest.fixture
def segment(tmp_path: Path) -> SegmentFolder:
    HippoRagRetriever(HashedWords(8), openie_file(tmp_path / "openie.json", ITEMS)).index(ITEMS, tmp_path / "index")
    (folder,) = (tmp_path / "index").glob("hipporag-*")
    return SegmentFolder(folder, 0, len(ITEMS))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("known", lambda column: column[:-1]),
        ("entities", lambda column: column[::-1].copy()),
        ("triples", lambda column: np.r_[column[:1], column[:-1]]),
        ("triple_ends", lambda column: column + np.uint64(1)),
        ("text_offsets", lambda column: column * 2),
        ("statement_rows", lambda column: column + len(ITEMS)),
        ("statement_triples", lambda column: column + np.uint64(1)),
        ("synonym_targets", lambda column: np.r_[column, column[:1]]),
        ("synonym_similarities", lambda column: column * np.nan),
        ("knowledge_vectors", lambda column: column[:-1]),
    ],
)
def test_a_column_that_cannot_be_is_damage_that_names_the_folder(segment: SegmentFolder, name: str, change: Change) -> None:
    path = segment.folder / f"{name}.npy"
    changed = change(np.load(path))
    path.chmod(0o644)
    np.save(path, changed)
    with pytest.raises(IndexDamagedError, match=segment.folder.name):
        open_knowledge([segment])


def test_a_graph_of_other_nodes_is_damage(segment: SegmentFolder, tmp_path: Path) -> None:
    other = ITEMS[:5]
    HippoRagRetriever(HashedWords(8), openie_file(tmp_path / "other.json", other)).index(other, tmp_path / "other")
    (folder,) = (tmp_path / "other").glob("hipporag-*")
    with pytest.raises(IndexDamagedError, match="does not match its tables"):
        open_knowledge([segment]).weighted(folder, passages=True)
