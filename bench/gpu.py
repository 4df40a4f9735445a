"""Encoding on a GPU, against sentence-transformers by hand with the same settings; without one, a row that says so.

Ours cuts the wiki collection into the blocks that an index has. By hand, the library is given the whole collection at once.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator

import torch

from bench.common import Data, Row, at_most, best_of_each, median_ms, noted, seconds_of
from bench.stored_tokens import MODEL
from nlp_retrieval import BeirLoader, ColbertEncoder, FaissRetriever, Searcher, SentenceTransformerEncoder, Vectors

_BLOCK, _TOKEN_BLOCK, _TOKEN_PASSAGES, _COMPARED, _QUERIES = 1024, 256, 8192, 1024, 100
_BATCHES = (64, 256, 1024)


def measure(data: Data) -> list[Row]:
    """Passages in batches of several sizes, an index, queries, and token vectors."""
    if not torch.cuda.is_available():
        return [noted("encoding on a GPU", "there is none here")]
    warnings.simplefilter("ignore")  # that MiniLM was not trained for late interaction
    return [noted("the GPU", torch.cuda.get_device_name()), *_passages(data), *_queries(data), *_tokens(data)]


def _passages(data: Data) -> Iterator[Row]:
    from sentence_transformers import SentenceTransformer

    texts, found = data.texts(), dict[str, Vectors]()
    by_hand = SentenceTransformer(str(SentenceTransformerEncoder().folder.path), model_kwargs={"dtype": torch.bfloat16})
    for size in _BATCHES:
        encoder = SentenceTransformerEncoder(batch_size=size)

        def ours(encoder: SentenceTransformerEncoder = encoder) -> None:
            for first in range(0, len(texts), _BLOCK):
                vectors = encoder.encode_passages(texts[first : first + _BLOCK])
                found.setdefault("ours", vectors)

        def theirs(size: int = size) -> None:
            by_hand.encode(texts, batch_size=size, normalize_embeddings=True, show_progress_bar=False)

        ours_s, theirs_s = best_of_each(2, ours, theirs)
        shown = f"{len(texts) / ours_s:,.0f} passages/s, by hand {len(texts) / theirs_s:,.0f}"
        yield at_most(f"passages, {size} in a batch, against sentence-transformers by hand", 1.1, ours_s / theirs_s, shown)
    exact = SentenceTransformerEncoder(precision="float32", device="cpu").encode_passages(texts[:_COMPARED])
    cosine = (found["ours"][:_COMPARED] * exact).sum(axis=1)
    yield noted("the same passages by a CPU in float32", f"cosine {cosine.mean():.5f}, lowest {cosine.min():.5f}")
    place = data.work / "gpu-index"
    shutil.rmtree(place, ignore_errors=True)
    seconds = seconds_of(lambda: Searcher([FaissRetriever()]).index(BeirLoader(str(data.corpus)), place))
    shutil.rmtree(place)
    yield noted("an index of `faiss`, with settings as they come", f"{seconds:.1f} s, {len(texts) / seconds:,.0f} passages/s")


def _queries(data: Data) -> Iterator[Row]:
    questions = data.questions()[:_QUERIES]
    for name, encoder in (("GPU", SentenceTransformerEncoder()), ("CPU", SentenceTransformerEncoder(device="cpu"))):
        encoder.encode_queries(["warm"])
        milliseconds = median_ms(lambda question, encoder=encoder: encoder.encode_queries([question]), questions)  # type: ignore[misc]
        yield noted(f"one query on the {name}", f"median {milliseconds:.1f} ms")


def _tokens(data: Data) -> Iterator[Row]:
    texts = data.texts()[:_TOKEN_PASSAGES]
    for size in _BATCHES[:2]:
        encoder = ColbertEncoder(MODEL, batch_size=size)
        encoder.encode_passages(texts[:_TOKEN_BLOCK])
        firsts = range(0, len(texts), _TOKEN_BLOCK)
        seconds = seconds_of(
            lambda: [encoder.encode_passages(texts[first : first + _TOKEN_BLOCK]) for first in firsts]  # noqa: B023 -- called here
        )
        yield noted(f"token vectors, {size} in a batch", f"{len(texts) / seconds:,.0f} passages/s")
