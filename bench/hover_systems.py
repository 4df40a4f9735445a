"""What ``bench.hover`` compares: ways to find candidates, and rerankers of what they found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.interfaces import BaseUserQueryProcessor
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Scope, Searcher
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.encoders.token_base import BaseTokenEncoder
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.claim_decomposition import ClaimDecomposition
from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker
from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker
from nlp_retrieval.rerankers.overlap import OverlapReranker
from nlp_retrieval.retrievers.bm25s.retriever import Bm25sRetriever
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever
from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever

Merge = Literal["max", "rrf", "round_robin"]

DEPTH = 100
PIPELINE: dict[str, Any] = {"scope": "per_subquery", "depth": 25, "quota": 7}
"""The numbers of ``HoverMultiHopPipeline``."""


@dataclass(frozen=True)
class Policy:
    """What becomes of a claim's sub-queries.

    Args:
        keep_query: whether the claim itself is searched too.
        scope: of the searcher.
        merge: of the retrievers, with scope ``pooled``.
        quota: with scope ``per_subquery``.
    """

    keep_query: bool
    scope: Scope = "pooled"
    merge: Merge = "max"
    quota: int | None = None

    def __str__(self) -> str:
        kept = "the claim and its phrases" if self.keep_query else "phrases alone"
        how = f"merged by {self.merge}" if self.scope == "pooled" else f"interleaved, quota {self.quota or 'even'}"
        return f"{kept}, {how}"


POLICIES = [
    Policy(keep_query, *rest)
    for keep_query in (True, False)
    for rest in (
        ("pooled", "max"),
        ("pooled", "rrf"),
        ("pooled", "round_robin"),
        ("per_subquery", "max", None),
        ("per_subquery", "max", 7),
        ("per_subquery", "max", 14),
    )
]  # fmt: skip


class RememberedScores(BaseReranker):
    """A reranker that scores each pair once, so that a hundred configurations cost little more than one.

    Args:
        reranker: the one that it stands for.
        blend: what becomes of the incoming ranking.
        file: where the scores are kept for the next run; none by default.
    """

    name = "remembered-scores"

    def __init__(self, reranker: BaseReranker, blend: Blend = "rank", file: Path | None = None) -> None:
        self.reranker = reranker
        self.blend: Blend = blend
        self.file = file
        kept = json.loads(file.read_text("utf-8")) if file is not None and file.exists() else []
        self.scores = {(query, item_id): score for query, item_id, score in kept}

    def blended(self, blend: Blend) -> RememberedScores:
        """The same with another blend, and with one memory."""
        other = RememberedScores(self.reranker, blend)
        other.scores, other.file = self.scores, self.file
        return other

    def save(self) -> None:
        """Keep the scores."""
        if self.file is not None:
            write_atomically(self.file, json.dumps([[*pair, score] for pair, score in self.scores.items()]).encode())

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        pairs = [(query, item.item_id) for query, item in zip(queries, items, strict=True)]
        new = {pair: item for pair, item in zip(pairs, items, strict=True) if pair not in self.scores}
        if new:
            found = self.reranker.score_pairs([query for query, _ in new], list(new.values()))["score"]
            self.scores.update(zip(new, map(float, found), strict=True))
        return {"score": np.array([self.scores[pair] for pair in pairs])}


def rerankers(encoder: BaseTokenEncoder, cross_encoder: Path, work: Path) -> dict[str, RememberedScores]:
    """The rerankers by name.

    Args:
        encoder: of tokens.
        cross_encoder: folder of a cross-encoder exported to ONNX.
        work: the folder for what takes long to make.
    """
    reader = CrossEncoderReranker(str(cross_encoder), backend="onnx")
    return {
        "overlap": RememberedScores(OverlapReranker()),
        "late interaction": RememberedScores(LateInteractionReranker(encoder)),
        "cross-encoder": RememberedScores(reader, file=work / f"scores-{reader.model_fingerprint()[-16:]}.json"),
    }


@dataclass(frozen=True)
class System:
    """A way to find candidates.

    Args:
        name: as the table shows it.
        retrievers: by label.
        processor: of the claims.
        settings: scope, depth and quota.
        asks: whether a language model is asked.
        reranker: its own; systems without one are also shown with each.
    """

    name: str
    retrievers: dict[str, BaseRetriever]
    processor: BaseUserQueryProcessor | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    asks: bool = False
    reranker: BaseReranker | None = None

    def searcher(self, reranker: BaseReranker | None = None) -> Searcher:
        """The searcher; candidates are as deep with a reranker as without."""
        return Searcher(
            self.retrievers,
            processor=self.processor,
            reranker=reranker or self.reranker,
            **({"depth": DEPTH} | self.settings),
        )


@dataclass(frozen=True)
class Parts:
    """The retrievers that systems are made of.

    Args:
        dense: the encoder of passages.
        tokens: the encoder of tokens.
    """

    dense: BaseEncoder
    tokens: BaseTokenEncoder

    def bm25(self, merge: Merge = "max") -> dict[str, BaseRetriever]:
        return {"bm25s": Bm25sRetriever(merge=merge)}

    def hybrid(self, merge: Merge = "max") -> dict[str, BaseRetriever]:
        return self.bm25(merge) | {"faiss": FaissRetriever(self.dense, merge=merge)}

    def colbert(self, merge: Merge = "max") -> dict[str, BaseRetriever]:
        return {"colbert": ColbertRetriever(self.tokens, merge=merge)}

    def graph(self, merge: Merge = "max") -> dict[str, BaseRetriever]:
        return {"link_graph": LinkGraphRetriever([Bm25sRetriever(), FaissRetriever(self.dense)], merge=merge)}

    def plain(self) -> list[System]:
        """Systems that search for the claim as it is."""
        return [
            System("BM25", self.bm25()),
            System("dense", {"faiss": FaissRetriever(self.dense)}),
            System("ColBERT", self.colbert()),
            System("BM25 + dense", self.hybrid()),
            System("BM25 + ColBERT", self.bm25() | self.colbert()),
            System("BM25 + dense + ColBERT", self.hybrid() | self.colbert()),
            System("link graph", self.graph()),
            System("link graph + BM25", self.graph() | self.bm25()),
            System("link graph + BM25 + dense + ColBERT", self.graph() | self.hybrid() | self.colbert()),
        ]

    def by_phrases(self, name: str, processor: BaseUserQueryProcessor, policy: Policy, asks: bool) -> list[System]:
        """Systems that search for a claim's phrases."""
        settings = {"scope": policy.scope, "quota": policy.quota}
        return [
            System(f"{name}: BM25", self.bm25(policy.merge), processor, settings, asks),
            System(f"{name}: BM25 + dense", self.hybrid(policy.merge), processor, settings, asks),
            System(f"{name}: link graph", self.graph(policy.merge), processor, settings, asks),
        ]

    def phrases_by_rules(self, policy: Policy) -> list[System]:
        return self.by_phrases("EntityPhrases", EntityPhrases(keep_query=policy.keep_query), policy, asks=False)

    def phrases_by_model(self, lm: LanguageModel, policy: Policy) -> list[System]:
        """Claim decomposition, and the pipeline with its own numbers and reranker, with and without the claim itself."""
        found = self.by_phrases("ClaimDecomposition", ClaimDecomposition(lm, policy.keep_query), policy, asks=True)
        for keep_query in (False, True):
            name = "HoverMultiHopPipeline" + ", claim kept" * keep_query
            processor = ClaimDecomposition(lm, keep_query)
            found.append(System(f"{name}: BM25", self.bm25(), processor, PIPELINE, True, OverlapReranker()))
        return found
