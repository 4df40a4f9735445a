"""The searchers that are compared on questions about climate policy, named as the rows of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np

from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    FeedbackRetriever,
    LinkGraphRetriever,
    MultiSignalReranker,
    Searcher,
    SentenceTransformerEncoder,
    WordVectorEncoder,
)
from nlp_retrieval.encoders import Vectors, train_word_vectors
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever

FEEDBACK = "feedback"
SUM = "signals, weights as described"

GRID = [
    dict(zip(("lexical_too", "vector_weight", "term_weight", "neighbour_weight"), values, strict=True))
    for values in product((True, False), (1.0, 2.0), (0.5, 1.0, 2.0), (0.15, 0.3))
]
"""The settings of feedback that folds choose from: what is fed back, and what it counts."""


class RememberingEncoder(SentenceTransformerEncoder):
    """Remembers the vectors of a model: ``faiss`` and ``hop`` keep the same ones, and every grid asks the same questions."""

    name = "remembering"

    _remembered: ClassVar[dict[tuple[str, str, str], Vectors]] = {}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._once("query", queries, super().encode_queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._once("passage", passages, super().encode_passages)

    def _once(self, kind: str, texts: list[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
        keys = [(self.model, kind, text) for text in texts]
        new = [key for key in dict.fromkeys(keys) if key not in self._remembered]
        if new:
            self._remembered.update(zip(new, encode([text for _, _, text in new]), strict=True))
        return np.stack([self._remembered[key] for key in keys])


class ShuffledFeedback(FeedbackRetriever):
    """The control: each query of a call gets what is fed back for another."""

    name = "shuffled_feedback"

    def _questions(self, queries: list[str]) -> list:  # type: ignore[type-arg]
        asked = super()._questions(queries)
        half = len(asked) // 2  # neighbours are two wordings of one question
        return [one._replace(feedback=other.feedback) for one, other in zip(asked, asked[half:] + asked[:half], strict=True)]


@dataclass(frozen=True)
class Parts:
    """What the searchers of a collection are made of."""

    lexical: Bm25Retriever
    dense: FaissRetriever
    words: WordVectorEncoder

    @classmethod
    def of(cls, loader: BeirLoader, words: Path, model: str) -> Parts:
        """With word vectors trained on the collection, which are kept in a folder."""
        if not words.exists():
            train_word_vectors(loader.stream(), words, language="english")
        return cls(Bm25Retriever(), FaissRetriever(RememberingEncoder(model)), WordVectorEncoder(words))

    def single(self) -> dict[str, Searcher]:
        """The retrievers alone, and what joins their lists."""
        both = [self.lexical, self.dense]
        fused = {"RRF of both": Searcher(both), "link graph": Searcher([LinkGraphRetriever(both)])}
        return {"BM25": Searcher([self.lexical]), "dense": Searcher([self.dense])} | fused

    def fed(self, *, lexical_too: bool = True, **settings: float) -> FeedbackRetriever:
        """Feedback from dense hits, and those of BM25 or not."""
        seeds = [self.dense, self.lexical] if lexical_too else [self.dense]
        return FeedbackRetriever(seeds, subject="country", **settings)  # type: ignore[arg-type]

    def feedback(self) -> dict[str, Searcher]:
        """With its defaults, without each of its parts, and the control."""
        seeds = [self.dense, self.lexical]
        return {
            FEEDBACK: Searcher([self.fed()]),
            "feedback without vectors": Searcher([self.fed(vector_weight=0.0)]),
            "feedback without terms": Searcher([self.fed(term_weight=0.0)]),
            "feedback without neighbours": Searcher([self.fed(neighbour_weight=0.0)]),
            "feedback without BM25": Searcher([self.fed(lexical_too=False)]),
            "neighbours alone": Searcher([self.fed(vector_weight=0.0, term_weight=0.0)]),
            "names of countries compared": Searcher([FeedbackRetriever(seeds)]),
            "feedback of another question": Searcher([ShuffledFeedback(seeds, subject="country")]),
        }

    def grid(self) -> dict[str, Searcher]:
        """The settings of feedback that folds choose from."""
        return {str(number): Searcher([self.fed(**settings)]) for number, settings in enumerate(GRID)}  # type: ignore[arg-type]

    def scored(self, **weights: float) -> Searcher:
        """All passages by signals, with the described weights where none are given."""
        reranker = MultiSignalReranker(
            "climate",
            word_vectors=self.words,
            min_similarity=0.0,
            weights="described",
            **weights,  # type: ignore[arg-type]
        )
        return Searcher([self.dense], reranker=reranker, depth="all")

    def signals(self) -> dict[str, Searcher]:
        """Each signal alone, and their sum."""
        nothing = {f"{signal}_weight": 0.0 for signal in SIGNALS}
        alone = {signal: self.scored(**(nothing | {f"{signal}_weight": 1.0})) for signal in SIGNALS}
        return alone | {SUM: self.scored()}

    def hops(self) -> dict[str, Searcher]:
        """Along relations, from dense hits and from those of feedback."""
        starts = {"hop": self.dense, "hop over feedback": self.fed()}
        return {name: Searcher([HopRetriever(start, changes="none")]) for name, start in starts.items()}
