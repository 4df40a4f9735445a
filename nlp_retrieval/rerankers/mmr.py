"""Reranking for diversity: passages that repeat earlier choices move down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Scores
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseListReranker
from nlp_retrieval.core.search.retriever import current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.sentence_transformer import as_encoder, require_cosine

_TEXTS_AT_ONCE = 256


class MmrReranker(BaseListReranker):
    """Chooses candidates one by one by maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

    The next one has the highest ``lambda_mult * relevance - (1 - lambda_mult) * redundancy``, where redundancy is the highest
    cosine to any candidate chosen before it (0 for the first); the incoming order breaks ties. Whole lists are ordered, so the
    k best are the first k chosen.

    The score is that value at the time of choice. If it would not be below the previous score (possible only for vectors that
    point away from one another), it is set to the next smaller number, so that scores fall in the order of choice; they are
    comparable only within one list. ``mmr.relevance`` and ``mmr.redundancy`` are its parts. Each distinct text of a call is
    encoded once (https://doi.org/10.1145/290941.291025).

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        lambda_mult: the weight of relevance, the cosine of query and passage: from 0 (diversity alone) to 1 (relevance alone).

    Examples:
        >>> Searcher(["faiss"], reranker=MmrReranker(lambda_mult=0.7), depth=50)
        Searcher(retrievers=[FaissRetriever()], reranker=MmrReranker(encoder=SentenceTransformerEncoder(), lambda_mult=0.7),
        depth=50)
    """

    name = "mmr"
    manifest_may_set = may_set("lambda_mult", encoder=reads_model)

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        lambda_mult: Annotated[float, Field(ge=0, le=1)] = 0.5,
    ) -> None:
        self.encoder = as_encoder(encoder)
        self.lambda_mult = lambda_mult
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    def score_lists(
        self, queries: Sequence[str], batch: CandidateBatch, items: list[SearchableItem]
    ) -> Mapping[str, NDArray[np.floating]]:
        require_cosine(self.encoder, self.name)
        texts = [item.text for item in items]
        places = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        vectors = _of_length_one(self._passages(list(places)))
        slots = np.array([places[text] for text in texts])
        relevance = self._cosines(queries, batch, vectors, slots)
        scores, redundancy = np.zeros(len(items)), np.zeros(len(items))
        for begin, end in pairwise(batch.offsets.tolist()):
            part = slice(begin, end)
            scores[part], redundancy[part] = chosen_by_mmr(relevance[part], vectors[slots[part]], self.lambda_mult)
        return {"score": scores, "relevance": relevance, "redundancy": redundancy}

    def cut_off(self, queries: list[str], items: list[SearchableItem]) -> dict[str, tuple[int, int]]:
        del queries
        passages = list(dict.fromkeys(item.text for item in items))
        return {"passages": (self.encoder.cut_passages(passages), len(passages))}

    def _passages(self, texts: list[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        parts = []
        dimension = None
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            chosen = [texts[number] for number in order[first : first + _TEXTS_AT_ONCE]]
            parts.append(checked_vectors(self.encoder.encode_passages(chosen), chosen, self.encoder, dimension))
            dimension = parts[0].shape[1]
        vectors = np.empty((len(texts), parts[0].shape[1]), np.float32)
        vectors[order] = np.concatenate(parts)
        return vectors

    def _cosines(self, queries: Sequence[str], batch: CandidateBatch, vectors: Vectors, slots: NDArray[np.integer]) -> Scores:
        distinct = list(dict.fromkeys(queries))

        def encode(distinct: list[str]) -> Vectors:
            return checked_vectors(self.encoder.encode_queries(distinct), distinct, self.encoder, vectors.shape[1])

        directions = _of_length_one(current_stages().encoded(self.encoder, distinct, encode))
        numbers = {query: number for number, query in enumerate(distinct)}
        of_lists = np.array([numbers[query] for query in queries])[batch.owner]
        cosines: Scores = np.einsum("ij,ij->i", directions[of_lists], vectors[slots], dtype=np.float64)
        return cosines


def chosen_by_mmr(relevance: Scores, vectors: Vectors, lambda_mult: float) -> tuple[Scores, Scores]:
    """Return the score of each candidate of a list, and its redundancy when it was chosen."""
    n = len(relevance)
    scores, redundancy = np.empty(n), np.zeros(n)
    nearest = np.full(n, -np.inf)
    remaining = np.ones(n, np.bool_)
    before = np.inf
    for turn in range(n):
        if turn:
            redundancy[remaining] = nearest[remaining]
        values = np.where(remaining, lambda_mult * relevance - (1 - lambda_mult) * redundancy, -np.inf)
        chosen = int(np.argmax(values))  # the first of equals
        before = min(float(values[chosen]), float(np.nextafter(before, -np.inf)))
        scores[chosen] = before
        remaining[chosen] = False
        # row by row: a product of BLAS depends on the neighbouring rows
        nearest[remaining] = np.maximum(
            nearest[remaining], np.einsum("ij,j->i", vectors[remaining], vectors[chosen], dtype=np.float64)
        )
    return scores, redundancy


def _of_length_one(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1; a zero vector stays one."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, None]
    directions: Vectors = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return directions
