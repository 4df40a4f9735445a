"""Late interaction with 8-bit weights: what ONNX brings to a token encoder, in speed, and what it loses as a reranker."""

from __future__ import annotations

import warnings

import numpy as np

from bench.common import Data, Row, at_least, best_of_each, compared, noted, query_ms
from bench.stored_tokens import MODEL
from nlp_retrieval import BeirLoader, Bm25Retriever, ColbertEncoder, HoverLoader, LateInteractionReranker, Searcher
from nlp_retrieval.encoders import Vectors

_PASSAGES, _QUERIES, _DEPTH = 300, 100, 20
_ALLOWED = 0.005


def measure(data: Data) -> list[Row]:
    """Passages and queries, against torch in float32; claims of HoVer whose first 20 passages are put in order."""
    encoders = {"float32": ColbertEncoder(MODEL, precision="float32"), "8 bits": ColbertEncoder(MODEL, backend="onnx")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that MiniLM was not trained for this
        for encoder in encoders.values():
            encoder.encode_queries(["warm"])
    return [*_speed(data, *encoders.values()), *_quality(data, encoders)]


def _speed(data: Data, whole: ColbertEncoder, eight: ColbertEncoder) -> list[Row]:
    texts = data.texts()[:: len(data.texts()) // _PASSAGES][:_PASSAGES]
    found: dict[str, list[Vectors]] = {}

    def by_torch() -> None:
        found["torch"] = whole.encode_passages(texts)

    def by_onnx() -> None:
        found["onnx"] = eight.encode_passages(texts)

    torch_s, onnx_s = best_of_each(3, by_torch, by_onnx)
    cosine = np.concatenate([(one * other).sum(axis=1) for one, other in zip(found["torch"], found["onnx"], strict=True)])
    shown = f"{_PASSAGES / onnx_s:.0f} passages/s; cosine of tokens {cosine.mean():.4f}, lowest {cosine.min():.4f}"
    questions = data.questions()[:_QUERIES]
    torch_ms, onnx_ms = (query_ms(encoder, questions) for encoder in (whole, eight))
    return [
        at_least("token vectors by ONNX with 8-bit weights against torch in float32, passages", 2, torch_s / onnx_s, shown),
        noted("token vectors of one query", f"{onnx_ms:.1f} ms; torch in float32 {torch_ms:.1f}"),
    ]


def _quality(data: Data, encoders: dict[str, ColbertEncoder]) -> list[Row]:
    """BM25's first passages in the order of late interaction, with each encoder."""
    searchers = {
        name: Searcher([Bm25Retriever()], reranker=LateInteractionReranker(encoder), depth=_DEPTH)
        for name, encoder in encoders.items()
    }
    corpus, queries = BeirLoader(str(data.corpus)), HoverLoader(data.claims)
    run = compared(searchers, corpus, queries, (5, 10), data.work / "bm25-index")
    recalls = {one.name: (one.measures["recall@5"], one.measures["recall@10"]) for one in run.report.configurations}
    shown = "; ".join(f"{name} recall@5 {five:.4f}, recall@10 {ten:.4f}" for name, (five, ten) in recalls.items())
    apart = abs(recalls["float32"][1] - recalls["8 bits"][1])
    budget = f"recall@10 within {_ALLOWED} of float32"
    return [Row(f"HoVer, BM25's first {_DEPTH} by late interaction", budget, shown, apart <= _ALLOWED)]
