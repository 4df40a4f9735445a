"""Models shared by threads: loaded once, also when all come at once, and no thread changes what another one gets.

The queries and passages differ much in length: transformers' tokenizers keep in themselves where to cut.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from colbert_checkpoints import save_bert as save_encoder
from hashed_words import items_of
from rerankers.tiny_models import save_bert as save_cross_encoder
from soaking import Figures

from nlp_retrieval import (
    Bm25Retriever,
    CrossEncoderReranker,
    FaissRetriever,
    RetrievalResult,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.rerankers import pair_models

from .forking import raced

THREADS = 8
WORDS = "who wrote the novel that kubrick filmed red fox blue whale green tree film shining river castle".split()


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.choice([2, 5, 9, 70]))) for _ in range(count)]


QUERIES = texts(24, 1)
ITEMS = items_of(texts(60, 2))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_encoder(folder / "bert")
    save_cross_encoder(folder / "pairs")
    return folder


def searcher(label: str, models: Path) -> Searcher:
    if label == "dense":
        return Searcher([FaissRetriever(SentenceTransformerEncoder(str(models / "bert"), max_length=20))])
    return Searcher([Bm25Retriever()], reranker=CrossEncoderReranker(str(models / "pairs")), depth=10)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was loaded."""
    loaded: list[object] = []

    def counted(method: Callable[..., object]) -> Callable[..., object]:
        def load(self: object, *arguments: object) -> object:
            loaded.append(self)
            return method(self, *arguments)

        return load

    for owner, name in ((SentenceTransformerEncoder, "load_model"), (pair_models.TorchPairs, "__init__")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    return loaded


def told(results: list[list[RetrievalResult]]) -> list[dict[str, float]]:
    return [{hit.item.item_id: hit.score for hit in hits} for hits in results]


@pytest.mark.filterwarnings("ignore:.*longer than:nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.filterwarnings("ignore:.*not all the model reads:nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.parametrize("label", ["dense", "cross-encoder"])
def test_threads_share_a_model(
    label: str, models: Path, tmp_path: Path, loads: list[object], effort: int, figures: Figures
) -> None:
    searcher(label, models).index(ITEMS, tmp_path / "index")
    loads.clear()
    shared = searcher(label, models).open(tmp_path / "index")
    slices = [QUERIES[first : first + 3] for first in range(0, len(QUERIES), 3)]

    def search(place: int) -> Callable[[], list[list[dict[str, float]]]]:
        turned = slices[place:] + slices[:place]
        return lambda: [told(shared.search(asked, 5)) for asked in turned[: 4 * effort]]

    together = raced([search(place) for place in range(THREADS)])
    assert len(loads) <= 1, "a model that all share is loaded once"
    for place, found in enumerate(together):
        for one, other in zip(found, search(place)(), strict=True):
            assert [list(hits) for hits in one] == [list(hits) for hits in other]
            for mine, its in zip(one, other, strict=True):
                assert np.allclose([*mine.values()], [*its.values()], atol=1e-3)
    searches = sum(map(len, together))
    figures.add(
        "Concurrency", f"{label}: model shared by {THREADS} threads", searches, searches, "loaded once, answers as alone"
    )
