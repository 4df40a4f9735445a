"""Reranking by late interaction: each token of the query is compared with its nearest token of the passage; no index."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors, checked_tokens

_TEXTS_AT_ONCE = 256
_LOWEST = -1.0


class LateInteractionReranker(BaseReranker):
    """Scores a passage by MaxSim (ColBERT: Khattab and Zaharia, SIGIR 2020, https://arxiv.org/abs/2004.12832).

    The score is the mean, over the query's tokens, of the cosine to the nearest token of the passage: between -1 and 1 whatever
    the length of the query. A passage without tokens scores -1; if the query has none, every passage with tokens scores 0.

    Args:
        encoder: gives each token of a text a vector of length 1.
        blend: use of the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.

    Examples:
        >>> Searcher(["bm25"], reranker=LateInteractionReranker(ColbertEncoder()), depth=100)
        Searcher(retrievers=[Bm25Retriever()], reranker=LateInteractionReranker(encoder=ColbertEncoder()), depth=100)
    """

    name = "late_interaction"
    manifest_may_set = may_set("encoder", "blend")
    batch_size = 2**62  # all pairs of a call at once, so that each distinct text is encoded once; the encoder makes batches

    def __init__(self, encoder: BaseTokenEncoder, blend: Blend = "replace") -> None:
        self.encoder = encoder
        self.blend: Blend = blend

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        distinct = list(dict.fromkeys(queries))
        encoded = checked_tokens(self.encoder.encode_queries(distinct), distinct, self.encoder)
        tokens = dict(zip(distinct, encoded, strict=True))
        pairs_of: dict[str, list[int]] = {}
        for pair, item in enumerate(items):
            pairs_of.setdefault(item.text, []).append(pair)
        texts = iter(sorted(pairs_of, key=len, reverse=True))
        scores = np.zeros(len(items))
        while chosen := list(islice(texts, _TEXTS_AT_ONCE)):
            encoded = checked_tokens(self.encoder.encode_passages(chosen), chosen, self.encoder)
            for text, passage in zip(chosen, encoded, strict=True):
                for pair in pairs_of[text]:
                    scores[pair] = maxsim(tokens[queries[pair]], passage)
        return {"score": scores}


def maxsim(query: Vectors, passage: Vectors) -> float:
    """Return the mean, over the query's tokens, of the inner product with the passage's nearest token."""
    if len(passage) == 0:
        return _LOWEST
    return float((query @ passage.T).max(axis=1).mean()) if len(query) else 0.0
