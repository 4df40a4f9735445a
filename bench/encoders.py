"""Encoders: what each backend and precision brings, in speed and on two collections.

Everything is timed in one run against torch in float32 by hand, which is sentence-transformers as it comes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from bench.common import Data, Row, at_least, best_of_each, compared, noted, seconds_of
from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    HoverLoader,
    LinkGraphRetriever,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.encoders.base import Vectors

_PASSAGES, _QUERIES = 500, 100
_ALLOWED = 0.005


def measure(data: Data) -> list[Row]:
    """Passages, queries, quality alone, quality as a seed of the link graph."""
    torch_f32 = SentenceTransformerEncoder(precision="float32")
    eight = SentenceTransformerEncoder(backend="onnx")
    return [*_passages(data, eight), *_queries(data, eight), *_quality(data, torch_f32, eight), *_seeds(data, torch_f32)]


def _passages(data: Data, eight: BaseEncoder) -> list[Row]:
    from sentence_transformers import SentenceTransformer

    texts = data.texts()[:: len(data.texts()) // _PASSAGES][:_PASSAGES]
    folder = str(SentenceTransformerEncoder().folder.path)
    model = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": torch.float32})
    found: dict[str, Vectors] = {}

    def kept(name: str, encode: Callable[[], Vectors]) -> Callable[[], None]:
        encode()  # opened and warm

        def call() -> None:
            found[name] = encode()

        return call

    calls = {
        "torch": kept("torch", lambda: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)),
        "eight": kept("eight", lambda: eight.encode_passages(texts)),
        "auto": kept("auto", lambda: SentenceTransformerEncoder().encode_passages(texts)),
    }
    seconds = dict(zip(calls, best_of_each(3, *calls.values()), strict=True))
    budget = 3 if torch.cpu.get_capabilities().get("amx_int8") else 2
    cosine = (found["eight"] * found["torch"]).sum(axis=1)
    rate = _PASSAGES / seconds["eight"]

    def times(one: str, other: str) -> float:
        return seconds[one] / seconds[other]

    shown = f"{rate:.0f} passages/s; cosine {cosine.mean():.4f}, lowest {cosine.min():.4f}; CPU: {_cpu()}"
    return [
        at_least("ONNX with 8-bit weights against torch in float32, passages", budget, times("torch", "eight"), shown),
        noted("torch as this project chooses, against float32", f"{times('torch', 'auto'):.2f} times, same passages"),
    ]


def _queries(data: Data, eight: BaseEncoder) -> list[Row]:
    questions = data.questions()[:_QUERIES]
    encoders = {
        "torch float32": SentenceTransformerEncoder(precision="float32"),
        "torch auto": SentenceTransformerEncoder(),
        "ONNX 8 bits": eight,
    }
    rows = []
    for name, encoder in encoders.items():
        encoder.encode_queries(["warm"])
        times = [1000 * seconds_of(partial(encoder.encode_queries, [question])) for question in questions]
        median, p95 = statistics.median(times), float(np.percentile(times, 95))
        goal = name == "ONNX 8 bits"
        measured = f"median {median:.1f} ms, p95 {p95:.1f}"
        rows.append(Row(f"one query, {name}", "at most 5 ms" if goal else "-", measured, median <= 5 if goal else None))
    return rows


def _quality(data: Data, whole: BaseEncoder, eight: BaseEncoder) -> list[Row]:
    rows = []
    collections = {"SciFact": data.root / "scifact", "HotpotQA": data.root / "wiki" / "hotpotqa"}
    for name, queries in collections.items():
        corpus = BeirLoader(str(queries if name == "SciFact" else data.corpus))
        encoders = {"float32": whole, "8 bits": eight}
        searchers = {label: Searcher([FaissRetriever(encoder)]) for label, encoder in encoders.items()}
        searchers["bm25s"] = Searcher([Bm25Retriever()])
        index = data.work / ("scifact-index" if name == "SciFact" else "wiki-index")
        run = compared(searchers, corpus, BeirLoader(str(queries)), (10,), index)
        found = {one.name: (one.measures["recall@10"], one.measures["ndcg@10"]) for one in run.report.configurations}
        for label, (recall, ndcg) in found.items():
            shown = f"recall@10 {recall:.4f}, nDCG@10 {ndcg:.4f}"
            lost = found["float32"][0] - recall
            goal = label == "8 bits"
            budget = f"recall@10 within {_ALLOWED} of float32" if goal else "-"
            rows.append(Row(f"{name}, {label}", budget, shown, abs(lost) <= _ALLOWED if goal else None))
    return rows


def _seeds(data: Data, whole: BaseEncoder) -> list[Row]:
    """The link graph seeded by BM25 alone, and with the transformer."""
    seeds = {"BM25": [], "BM25 and MiniLM": [FaissRetriever(whole)]}
    searchers = {label: Searcher([LinkGraphRetriever([Bm25Retriever(), *more])]) for label, more in seeds.items()}
    rows = []
    for name, queries, measures in (
        ("HotpotQA", BeirLoader(str(data.root / "wiki" / "hotpotqa")), ("recall@2", "recall@5", "recall@10")),
        ("HoVer", HoverLoader(data.claims), ("perfect_recall@5", "perfect_recall@10", "perfect_recall@21")),
    ):
        run = compared(searchers, BeirLoader(str(data.corpus)), queries, (2, 5, 10, 21), data.work / "wiki-index")
        for one in run.report.configurations:
            shown = ", ".join(f"{measure} {one.measures[measure]:.3f}" for measure in measures)
            rows.append(noted(f"link graph seeded by {one.name}, {name}", shown))
    return rows


def _cpu() -> str:
    named = torch.cpu.get_capabilities()
    return ", ".join(sorted(name for name, there in named.items() if there is True and name != "mpam")) or "none"
