"""A verifier as a reranker: passages that bear on a claim before those that do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import BaseReranker, ByName, may_set, resolve_components
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier


class VerifierReranker(BaseReranker):
    """Scores a passage by the probability that it supports or contradicts the query, which is a claim.

    A pair that the verifier could not judge scores 0. The parts are ``support`` and ``contradict``.

    Args:
        verifier: judges a claim by a passage.
        blend: use of the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.

    Examples:
        >>> reranker = VerifierReranker("lexical")
        >>> results = [[RetrievalResult(item=item, score=0.0) for item in items]]
        >>> reranker.rerank(["The blue whale eats krill."], results, k=1)[0][0].item.item_id
        'whale'
    """

    name = "verifier"
    manifest_may_set = may_set("verifier", "blend")

    def __init__(self, verifier: BaseVerifier | ByName, blend: Literal["replace", "rank", "score"] = "replace") -> None:
        self.verifier: BaseVerifier = resolve_components(self, VerifierReranker, verifier=verifier)["verifier"]
        self.blend = blend

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        judged = self.verifier.judge(queries, [item.text for item in items])
        parts = np.array([(each.support, each.contradict) if each.was_judged else (0.0, 0.0) for each in judged]).T
        support, contradict = parts
        return {"score": support + contradict, "support": support, "contradict": contradict}
