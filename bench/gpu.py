"""Encoding on a GPU, against sentence-transformers by hand with the same settings; without one, a row that says so.

Ours cuts the wiki collection into the blocks that an index has. By hand, the library is given the whole collection at once.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from functools import partial

import torch

from bench.common import Data, Row, at_most, best_of_each, noted, query_ms, seconds_of
from bench.stored_tokens import MODEL
from nlp_retrieval import BeirLoader, ColbertEncoder, FaissRetriever, Searcher, SentenceTransformerEncoder
from nlp_retrieval.encoders import BaseEncoder, BaseTokenEncoder

_BLOCK, _TOKEN_BLOCK, _TOKEN_PASSAGES, _QUERIES = 1024, 256, 8192, 100
_BATCHES = (64, 256, 1024)


def measure(data: Data) -> list[Row]:
    """Passages in batches of several sizes, an index, queries, and token vectors."""
    if not torch.cuda.is_available():
        return [noted("encoding on a GPU", "there is none here")]
    warnings.simplefilter("ignore")  # that MiniLM was not trained for late interaction
    return [noted("the GPU", torch.cuda.get_device_name()), *_passages(data), *_queries(data), *_tokens(data)]


def _passages(data: Data) -> Iterator[Row]:
    from sentence_transformers import SentenceTransformer

    texts = data.texts()
    by_hand = SentenceTransformer(str(SentenceTransformerEncoder().folder.path), model_kwargs={"dtype": torch.bfloat16})
    for size in _BATCHES:
        ours = partial(_encode, SentenceTransformerEncoder(batch_size=size), texts, _BLOCK)
        theirs = partial(by_hand.encode, texts, batch_size=size, normalize_embeddings=True, show_progress_bar=False)
        ours_s, theirs_s = best_of_each(2, ours, theirs)
        shown = f"{len(texts) / ours_s:,.0f} passages/s, by hand {len(texts) / theirs_s:,.0f}"
        yield at_most(f"passages, {size} in a batch, against sentence-transformers by hand", 1.1, ours_s / theirs_s, shown)
    exact = SentenceTransformerEncoder(precision="float32", device="cpu").encode_passages(texts[:_BLOCK])
    cosine = (SentenceTransformerEncoder().encode_passages(texts[:_BLOCK]) * exact).sum(axis=1)
    yield noted("the same passages by a CPU in float32", f"cosine {cosine.mean():.5f}, lowest {cosine.min():.5f}")
    with tempfile.TemporaryDirectory() as folder:
        seconds = seconds_of(lambda: Searcher([FaissRetriever()]).index(BeirLoader(str(data.corpus)), folder))
    yield noted("an index of `faiss`, with settings as they come", f"{seconds:.1f} s, {len(texts) / seconds:,.0f} passages/s")


def _queries(data: Data) -> Iterator[Row]:
    questions = data.questions()[:_QUERIES]
    for name, encoder in (("GPU", SentenceTransformerEncoder()), ("CPU", SentenceTransformerEncoder(device="cpu"))):
        encoder.encode_queries(["warm"])
        yield noted(f"one query on the {name}", f"median {query_ms(encoder, questions):.1f} ms")


def _tokens(data: Data) -> Iterator[Row]:
    texts = data.texts()[:_TOKEN_PASSAGES]
    for size in _BATCHES[:2]:
        encoder = ColbertEncoder(MODEL, batch_size=size)
        encoder.encode_passages(texts[:_TOKEN_BLOCK])
        seconds = seconds_of(partial(_encode, encoder, texts, _TOKEN_BLOCK))
        yield noted(f"token vectors, {size} in a batch", f"{len(texts) / seconds:,.0f} passages/s")


def _encode(encoder: BaseEncoder | BaseTokenEncoder, texts: list[str], block: int) -> None:
    """Encode passages in the blocks that an index has."""
    for first in range(0, len(texts), block):
        encoder.encode_passages(texts[first : first + block])
