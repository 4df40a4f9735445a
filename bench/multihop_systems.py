"""What ``bench.multihop`` compares: collections, link graphs that lack something, and links that mean nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.haystack import Naming
from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.graph.links.base import BaseLinkExtractor, LinkSentence
from nlp_retrieval.graph.links.shared_entities import SharedEntities
from nlp_retrieval.graph.links.title_mentions import TitleMentions
from nlp_retrieval.graph.store.link_graph import Links
from nlp_retrieval.graph.walk.evidence import DEFAULT_WEIGHTS
from nlp_retrieval.retrievers.bm25s.retriever import Bm25sRetriever
from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
from nlp_retrieval.retrievers.link_graph.candidates import GraphCandidates
from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever

CUTOFFS = (2, 5, 10, 21)
NEUTRAL = dict.fromkeys(DEFAULT_WEIGHTS, 0.0) | {"pagerank": 1.0}
HOVER = ("perfect_recall@5", "perfect_recall@10", "perfect_recall@21")
QUESTIONS = ("recall@2", "recall@5", "perfect_recall@5")
ABLATED = (
    ("hover3", "perfect_recall@5"),
    ("hover3", "perfect_recall@21"),
    ("hover2", "perfect_recall@5"),
    ("hotpotqa", "recall@5"),
    ("musique", "recall@5"),
)
NAMES = {"hover2": "HoVer, 2 hops", "hover3": "HoVer, 3 hops", "hotpotqa": "HotpotQA", "musique": "MuSiQue"}
OUT_OF_FOLD = "link graph"
OWN_FOLDS = "link graph, fitted to MuSiQue in 5 folds"
DEFAULT = "link graph, the package's default weights"
REFITTED = "link graph, weights fitted at this size"
HAYSTACKS: dict[str, Naming] = {"10x, own names": "own", "10x, shared names": "shared"}

Values = dict[str, NDArray[np.float64]]
"""A measure per query, by the measure's name."""


@dataclass(frozen=True)
class Judged:
    """Queries of one collection, with gold by item id.

    Args:
        name: short.
        queries: with their families.
        gold: one per query.
    """

    name: str
    queries: list[Query]
    gold: list[Gold]

    @property
    def texts(self) -> list[str]:
        return [query.text for query in self.queries]

    @property
    def families(self) -> list[str | None]:
        return [query.family for query in self.queries]


@dataclass(frozen=True)
class Collection:
    """An index and the queries that are asked of it.

    Args:
        path: of the index.
        dense: the dense retriever that it was built with.
        sets: the queries, by name.
        ids: the item ids, by row.
    """

    path: Path
    dense: FaissRetriever
    sets: dict[str, Judged]
    ids: list[str]

    def judge(self, judged: Judged, rows: NDArray[np.int64]) -> Values:
        return RetrievalEvaluator(judged.gold, self.ids, None, CUTOFFS).evaluate(rows).per_query

    def search(self, judged: Judged, *retrievers: BaseRetriever) -> Values:
        """What a searcher of these retrievers is worth, as anyone would run it."""
        found = Searcher(list(retrievers)).open(self.path).search(judged.texts, CUTOFFS[-1])
        row_of = {item_id: row for row, item_id in enumerate(self.ids)}
        return self.judge(judged, padded([[row_of[result.item.item_id] for result in results] for results in found]))


class Shuffled(BaseLinkExtractor):
    """The links of another extractor with the passages' numbers permuted: each passage gets the links of another.

    Degrees, weights and kinds stay as they are; what is lost is that links have to do with what the passages say.

    Args:
        extractor: whose links.
        seed: of the permutation, which is the same for all extractors of equal seed.
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


class NoLinks(BaseLinkExtractor):
    """Finds none."""

    name = "no_links"
    along = against = 1.0

    def extract(self, items: ItemTable) -> Links:
        del items
        return Links.joined([])

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        del source, target
        return None


class Probe(LinkGraphRetriever):
    """A link graph that walks once per query, whatever weights are tried, and that can be blinded to kinds of evidence."""

    blind: frozenset[str] = frozenset()
    walked: dict[str, GraphCandidates]

    def load(self, folder: Path) -> None:
        super().load(folder)
        if "similarity" in self.blind:
            self._open_dense = None

    def pools(self, queries: list[str], allowed: Mask | None = None, at_least: int = 1) -> Iterator[GraphCandidates]:
        new = [query for query in queries if query not in self.walked]
        for query, pool in zip(new, super().pools(new, allowed, at_least), strict=True):
            hidden = {kind: np.zeros_like(pool.evidence[kind]) for kind in self.blind}
            self.walked[query] = replace(pool, evidence=pool.evidence | hidden)
        yield from (self.walked[query] for query in queries)


@dataclass(frozen=True)
class Variant:
    """One configuration of the link graph.

    Args:
        name: as the table shows it.
        settings: of the retriever; where seeds are not given, they are BM25 and dense.
        blind: kinds of evidence that it does not see.
        refit: whether it is also judged with weights of its own.
        weights: instead of those of the full system.
        seeds: which of ``bm25s`` and ``faiss``.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    blind: frozenset[str] = frozenset()
    refit: bool = False
    weights: dict[str, float] | None = None
    seeds: tuple[str, ...] = ("bm25s", "faiss")

    def retriever(self, collection: Collection) -> Probe:
        """The retriever for one collection; its fitting starts from weights that know nothing."""
        known: dict[str, BaseRetriever] = {"bm25s": Bm25sRetriever(), "faiss": collection.dense}
        probe = Probe([known[seed] for seed in self.seeds], weights=NEUTRAL, **self.settings)
        probe.blind, probe.walked = self.blind, {}
        return probe


Probes = list[tuple[Collection, Probe]]


def _links() -> list[BaseLinkExtractor]:
    return [TitleMentions(), SharedEntities(weight=0.1)]


FULL = Variant("full system")
ABLATIONS = (
    Variant("links shuffled", {"links": [Shuffled(links) for links in _links()]}, refit=True),
    Variant("no links", {"links": [NoLinks()]}, refit=True),
    Variant("title mentions only", {"links": [TitleMentions()]}),
    Variant("shared entities only", {"links": [SharedEntities(weight=0.1)]}),
    Variant("mentions walked along only", {"links": [TitleMentions(against=0.0), SharedEntities(weight=0.1)]}),
    Variant("mentions walked against only", {"links": [TitleMentions(along=0.0), SharedEntities(weight=0.1)]}),
    Variant("BM25 as only seed, no vectors", seeds=("bm25s",), refit=True),
    Variant("dense as only seed", seeds=("faiss",), refit=True),
    Variant("no titles of the query", {"title_weight": 0.0}, frozenset({"titles"}), refit=True),
    Variant("no similarity in the score", blind=frozenset({"similarity"}), refit=True),
    Variant("no chain, no complement", blind=frozenset({"chain", "complement"}), refit=True),
    Variant("PageRank alone", weights=NEUTRAL),
    Variant("exact instead of local PageRank", {"pagerank": "exact"}),
)


def padded(ranked: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Rankings as a matrix of rows; -1 where one is short."""
    rows = np.full((len(ranked), CUTOFFS[-1]), -1, np.int64)
    for number, found in enumerate(ranked):
        rows[number, : len(found)] = found
    return rows
