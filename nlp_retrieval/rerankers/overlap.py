"""The document scorer of multi-hop HoVer pipelines: the words that a document shares with the original claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.text.mentions import Mentions, SpacyMentions, mentions_by_rules, normalize

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class OverlapReranker(BaseReranker):
    """Scores a document by its overlap with the claim, each part between 0 and 1.

    ``entities``: share of the claim's entities that are entities of the document. ``proper_nouns``: the same for single proper
    nouns. ``phrases``: share of the claim's phrases that occur verbatim in the document; 1 if the document's title (without its
    qualifier in brackets) occurs verbatim in the claim. The score is their weighted sum.

    Args:
        entity_weight: weight of ``entities``.
        proper_noun_weight: weight of ``proper_nouns``.
        phrase_weight: weight of ``phrases``.
        spacy_pipeline: name or folder of a spaCy pipeline that finds entities and proper nouns; by default rules find them,
            without a model.
        blend: use of the incoming ranking: fuse with it by ``rank`` or by ``score``, or ``replace`` it.

    Examples:
        >>> results = [[RetrievalResult(item=item, score=0.0) for item in items]]
        >>> reranked = OverlapReranker(blend="replace").rerank(["Where does the Arctic fox hunt?"], results, k=1)
        >>> reranked[0][0].item.title
        'Arctic fox'
    """

    name = "overlap"
    manifest_may_set = may_set("entity_weight", "proper_noun_weight", "phrase_weight", "blend", spacy_pipeline=loads_pipeline)

    def __init__(
        self,
        entity_weight: Weight = 0.30,
        proper_noun_weight: Weight = 0.40,
        phrase_weight: Weight = 0.30,
        spacy_pipeline: str | None = None,
        blend: Blend = "rank",
    ) -> None:
        if entity_weight + proper_noun_weight + phrase_weight == 0:
            raise ConfigurationError("OverlapReranker: all weights are 0; at least one must be above 0")
        self.entity_weight = entity_weight
        self.proper_noun_weight = proper_noun_weight
        self.phrase_weight = phrase_weight
        self.spacy_pipeline = spacy_pipeline
        self.blend: Blend = blend
        self._spacy = SpacyMentions(spacy_pipeline) if spacy_pipeline is not None else None

    def index_identity(self) -> Config:
        return super().index_identity() | ({} if self._spacy is None else self._spacy.identity("spacy_pipeline"))

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        claims = self._mentions(queries)
        documents = self._mentions([item.text for item in items])
        parts = np.array(
            [
                (
                    _share(claim.entities, document.entities),
                    _share(claim.proper_nouns, document.proper_nouns),
                    _phrase_match(claim, document, item.title),
                )
                for claim, document, item in zip(claims, documents, items, strict=True)
            ]
        )
        weights = np.array([self.entity_weight, self.proper_noun_weight, self.phrase_weight])
        entities, proper_nouns, phrases = parts.T
        return {"score": parts @ weights, "entities": entities, "proper_nouns": proper_nouns, "phrases": phrases}

    def _mentions(self, texts: list[str]) -> list[Mentions]:
        return self._spacy.find(texts) if self._spacy is not None else [mentions_by_rules(text) for text in texts]


def _share(wanted: frozenset[str], present: frozenset[str]) -> float:
    return len(wanted & present) / len(wanted) if wanted else 0.0


def _phrase_match(claim: Mentions, document: Mentions, title: str) -> float:
    name = normalize(title.partition(" (")[0])
    if name and f" {name} " in claim.words:
        return 1.0
    if not claim.phrases:
        return 0.0
    return sum(f" {phrase} " in document.words for phrase in claim.phrases) / len(claim.phrases)
