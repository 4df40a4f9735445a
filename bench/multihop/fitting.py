"""Fitting the weights of link graphs, and links that mean nothing: what the multi-hop study puts into its sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import ItemTable
from nlp_retrieval.core.components.component import BaseQueryLoader, Config
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.evaluation.tuning import TuningReport
from nlp_retrieval.loaders.datasets import BeirLoader
from nlp_retrieval.retrievers import BaseLinkExtractor, Links, LinkSentence, SharedEntities, TitleMentions
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates, LinkGraphRetriever
from nlp_retrieval.retrievers.link_graph.tuning import tune
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

CUTOFFS = [2, 5, 10, 21]
_NEUTRAL = dict.fromkeys(DEFAULT_WEIGHTS, 0.0) | {"pagerank": 1.0}


class Shuffled(BaseLinkExtractor):
    """The links of another extractor with the passages' numbers permuted: each passage gets the links of another.

    Degrees, weights and kinds stay as they are; what is lost is that links have to do with what the passages say.
    The permutation is the same for all extractors of equal seed.
    """

    name = "shuffled"

    def __init__(self, extractor: BaseLinkExtractor, seed: int = 0) -> None:
        self.extractor = extractor
        self.seed = seed
        self.along, self.against = extractor.along, extractor.against

    def extract(self, items: ItemTable) -> Links:
        links = self.extractor.extract(items)
        other = np.random.default_rng(self.seed).permutation(len(items))
        return Links(other[links.sources], other[links.targets], links.weights)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        del source, target  # no sentence says why
        return None


class ShuffledGraph(LinkGraphRetriever):
    """A link graph over the index of the real one, in which each passage has the links of another; all else stays."""

    name = "link_graph-shuffled"

    @property
    def identity(self) -> Config:
        return super().index_identity() | {"name": LinkGraphRetriever.name}

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        super().load_segments(segments)
        graph = self._graph.graph
        other = np.random.default_rng(0).permutation(graph.n_nodes)
        moved = {kind: Links(other[one.sources], other[one.targets], one.weights) for kind, one in graph.links().items()}
        kinds = {kind: (extractor.along, extractor.against) for kind, extractor in self._kinds().items()}
        self._graph = LinkGraph.of(graph.n_nodes, moved).weighted(kinds)


class Blinded:
    """A link graph in fitting: it starts from weights that know nothing, and sees no evidence whose weight is written as 0."""

    def __init__(self, retriever: LinkGraphRetriever) -> None:
        written = retriever.config["weights"] or {}
        self.retriever = retriever
        self.blind = [kind for kind, weight in written.items() if weight == 0]
        self.weights = {kind: 0.0 if kind in self.blind else weight for kind, weight in _NEUTRAL.items()}

    def open(self, index: Any) -> Blinded:
        """Open the index of the retriever."""
        self.opened = self.retriever.open(index)
        return self

    def pools(self, queries: list[str], at_least: int) -> Iterator[GraphCandidates]:
        """Its candidates, without what is not seen."""
        for pool in self.opened.pools(queries, at_least=at_least):
            hidden = {kind: np.zeros_like(pool.evidence[kind]) for kind in self.blind}
            yield pool._replace(evidence=pool.evidence | hidden)


@dataclass(frozen=True)
class Fitter:
    """Fits the weights of link graphs to judged queries over one index, and builds them there."""

    index: Path
    corpus: BeirLoader
    judged: BaseQueryLoader

    def fit(self, given: LinkGraphRetriever) -> TuningReport:
        """Fit in folds and to all queries, from weights that know nothing; evidence whose weight is 0 is not seen."""
        Searcher([given]).index(self.corpus, self.index)
        blinded = cast(LinkGraphRetriever, Blinded(given))
        return tune(blinded, self.index, self.judged.queries(), self.judged.gold(), CUTOFFS)

    def reached(self, given: LinkGraphRetriever, judged: BaseQueryLoader) -> float:
        """Which share of all gold is in the pools."""
        n_gold = sum(sum(grade > 0 for grade in one.relevance.values()) for one in judged.gold())
        return 1 - replace(self, judged=judged).fit(given).unreachable / n_gold


def shuffled(weights: Mapping[str, float] | None) -> LinkGraphRetriever:
    """The link graph with links that mean nothing."""
    links = [Shuffled(TitleMentions()), Shuffled(SharedEntities(weight=0.1))]
    return LinkGraphRetriever([Bm25Retriever(), FaissRetriever()], links, weights=weights)
