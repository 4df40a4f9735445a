"""The measurements of ``bench.multihop``."""

from __future__ import annotations

import time

import numpy as np

from bench.common import Data
from bench.haystack import RememberedQueries, haystack_index, musique_index, wiki_index
from bench.multihop_systems import (
    ABLATIONS,
    CUTOFFS,
    DEFAULT,
    FULL,
    HAYSTACKS,
    HOVER,
    OUT_OF_FOLD,
    OWN_FOLDS,
    REFITTED,
    Collection,
    Judged,
    Probe,
    Probes,
    Values,
    padded,
)
from bench.writing import shown
from nlp_retrieval.core.index.build import build_index
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.evaluation.bootstrap import bootstrap_interval
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.graph.store.link_graph import LinkGraph
from nlp_retrieval.loaders.beir import BeirLoader
from nlp_retrieval.loaders.hover import HoverLoader
from nlp_retrieval.pipelines.link_graph_tuning import TuningReport, tune
from nlp_retrieval.retrievers.bm25s.retriever import Bm25sRetriever
from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
from nlp_retrieval.retrievers.link_graph.candidates import GraphCandidates
from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever


class Study:
    """All measurements; what was measured stands in ``values``, by system and set of queries.

    Args:
        data: where the collections are.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self.begin = time.perf_counter()
        self.encoder = RememberedQueries(SentenceTransformerEncoder())
        self.values: dict[tuple[str, str], Values] = {}
        self.reached: dict[tuple[str, str], float] = {}
        self.graphs: dict[str, dict[str, float]] = {}
        hover = HoverLoader(str(data.root / "wiki" / "hover" / "hover_dev_subset.json"))
        wiki = wiki_index(data, self.encoder)
        items = open_generation(wiki).items
        by_id = RetrievalEvaluator(hover.gold(), items.ids(), items.titles(), (1,)).qrels()
        claims = [(query, Gold(query_id=query.query_id, relevance=by_id[query.query_id])) for query in hover.queries()]
        families = {query.family for query in hover.queries()}
        sets = {
            f"hover{hops}": _judged(f"hover{hops}", [pair for pair in claims if pair[0].metadata["hops"] == hops])
            for hops in (2, 3)
        }
        asked = _pairs(BeirLoader(str(data.root / "wiki" / "hotpotqa")))
        kept = [pair for pair in asked if pair[0].query_id not in families]
        sets["hotpotqa"] = _judged("hotpotqa", kept)
        self.n_claims, self.n_questions = len(claims), len(asked)
        self.wiki = Collection(wiki, FaissRetriever(self.encoder), sets, items.ids())
        path = musique_index(data, self.encoder)
        musique = {"musique": _judged("musique", _pairs(BeirLoader(str(data.root / "musique"))))}
        self.musique = Collection(path, FaissRetriever(self.encoder), musique, open_generation(path).items.ids())

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begin

    def tell(self, what: str) -> None:
        print(f"[{self.seconds:5.0f} s] {what}", flush=True)

    def keep(self, system: str, judged: str, values: Values) -> None:
        self.values[system, judged] = values
        shown = ", ".join(f"{name} {values[name].mean():.3f}" for name in (*HOVER, "recall@2", "recall@5"))
        self.tell(f"{system} | {judged}: {shown}")

    def families(self, judged: str) -> list[str | None]:
        return {**self.wiki.sets, **self.musique.sets}[judged].families

    def baselines(self, collection: Collection, suffix: str = "") -> None:
        lexical, dense = Bm25sRetriever(k1=0.9, b=0.4), collection.dense
        for name, judged in collection.sets.items():
            self.keep(f"BM25{suffix}", name, collection.search(judged, lexical))
            self.keep(f"dense{suffix}", name, collection.search(judged, dense))
            self.keep(f"RRF of both{suffix}", name, collection.search(judged, lexical, dense))

    def tuned(self, retriever: Probe, collection: Collection, judged: str = "hotpotqa") -> TuningReport:
        """Fit weights to a set of queries, in folds and to all of it."""
        queries = collection.sets[judged]
        return tune(retriever, collection.path, queries.queries, queries.gold, CUTOFFS)

    def judge(self, system: str, probes: Probes, weights: TuningReport | dict[str, float]) -> None:
        """Rank by weights that HotpotQA gave, each of its own questions by those of its fold; or by fixed ones."""
        for collection, probe in probes:
            opened = probe.open(open_generation(collection.path))
            for name, judged in collection.sets.items():
                if isinstance(weights, dict):
                    chosen = [weights] * len(judged.queries)
                elif name == "hotpotqa":
                    chosen = [weights.fold_weights[fold] for fold in weights.folds]
                else:
                    chosen = [weights.weights] * len(judged.queries)
                pools = list(opened.pools(judged.texts))
                ranked = [pool.ranked(by, CUTOFFS[-1])[0].tolist() for pool, by in zip(pools, chosen, strict=True)]
                self.keep(system, name, collection.judge(judged, padded(ranked)))
                self.reached[system, name] = _reached(collection, judged, pools)

    def quality(self) -> TuningReport:
        """The baselines, and the full system with weights from elsewhere; returns what HotpotQA gave."""
        self.baselines(self.wiki)
        self.baselines(self.musique)
        probes = [(collection, FULL.retriever(collection)) for collection in (self.wiki, self.musique)]
        report = self.tuned(probes[0][1], self.wiki)
        self.judge(OUT_OF_FOLD, probes, report)
        own = self.tuned(probes[1][1], self.musique, "musique")
        self.keep(OWN_FOLDS, "musique", own.out_of_fold.per_query)
        for collection, _ in probes:
            retriever = LinkGraphRetriever([Bm25sRetriever(), collection.dense])
            for name, judged in collection.sets.items():
                self.keep(DEFAULT, name, collection.search(judged, retriever))
        return report

    def ablations(self, full: TuningReport) -> None:
        """Every variant with the weights of the full system, and where that is not fair also with its own."""
        both = (self.wiki, self.musique)
        for collection, source in zip(both, (self.data.corpus, self.data.root / "musique"), strict=True):
            needed = [LinkGraphRetriever([Bm25sRetriever()], **variant.settings).builder() for variant in ABLATIONS]
            report = build_index(BeirLoader(str(source)).stream(), collection.path, needed)
            self.tell(f"{collection.path.name}: {len(report.built)} link graphs built in {report.seconds:.0f} s")
        for variant in ABLATIONS:
            probes = [(collection, variant.retriever(collection)) for collection in both]
            self.judge(variant.name, probes, variant.weights or full)
            if variant.refit:
                self.judge(f"{variant.name}, refitted", probes, self.tuned(probes[0][1], self.wiki))

    def crowded(self, full: TuningReport) -> None:
        """The same queries over ten times as many passages, whose names are their own or shared."""
        self.graphs["1x"] = graph_facts(self.wiki)
        for size, naming in HAYSTACKS.items():
            path, dense = haystack_index(self.data, self.encoder, naming)
            large = Collection(path, dense, self.wiki.sets, open_generation(path).items.ids())
            self.baselines(large, f", {size}")
            probes = [(large, FULL.retriever(large))]
            self.judge(f"{OUT_OF_FOLD}, {size}", probes, full)
            self.judge(f"{REFITTED}, {size}", probes, self.tuned(probes[0][1], large))
            self.graphs[size] = graph_facts(large)

    def cell(self, system: str, judged: str, measure: str, against: str | None = None) -> str:
        """A mean and its interval; in bold where it differs from another system by more than chance."""
        values = self.values.get((system, judged))
        if values is None:
            return ""
        cell = shown(values[measure], self.families(judged))
        if against is None:
            return cell
        difference = values[measure] - self.values[against, judged][measure]
        low, high = bootstrap_interval(difference, self.families(judged), bounds=(-1, 1))
        return f"**{cell}**" if low > 0 or high < 0 else cell

    def difference(self, system: str, other: str, judged: str, measure: str) -> tuple[float, float, float]:
        """How much higher a system stands, and the interval of that."""
        values = self.values[system, judged][measure] - self.values[other, judged][measure]
        return float(values.mean()), *bootstrap_interval(values, self.families(judged), bounds=(-1, 1))

    def mean(self, system: str, judged: str, measure: str) -> float:
        return float(self.values[system, judged][measure].mean())


def _pairs(loader: BeirLoader) -> list[tuple[Query, Gold]]:
    return list(zip(loader.queries(), loader.gold(), strict=True))


def _judged(name: str, pairs: list[tuple[Query, Gold]]) -> Judged:
    return Judged(name, [query for query, _ in pairs], [gold for _, gold in pairs])


def _reached(collection: Collection, judged: Judged, pools: list[GraphCandidates]) -> float:
    """Which share of all gold is in the pools."""
    row_of = {item_id: row for row, item_id in enumerate(collection.ids)}
    found = wanted = 0
    for gold, pool in zip(judged.gold, pools, strict=True):
        rows = [row_of[item_id] for item_id, grade in gold.relevance.items() if grade > 0]
        found += int(np.isin(rows, pool.rows[: len(pool.evidence["pagerank"])]).sum())
        wanted += len(rows)
    return found / wanted


def graph_facts(collection: Collection) -> dict[str, float]:
    """What the link graph of an index is like."""
    searcher = Searcher([LinkGraphRetriever([Bm25sRetriever(), collection.dense])]).open(collection.path)
    record = next(record for record in searcher.index_records() if record.identity["name"] == "link_graph")
    folder = collection.path / record.segments[0].folder
    graph, carriers = LinkGraph.open(folder), np.diff(np.load(folder / "title_offsets.npy"))
    facts = {"passages": graph.n_nodes} | {f"links, {kind}": count for kind, count in graph.n_links.items()}
    return facts | {
        "links per passage, median of both directions": float(np.median(np.diff(graph.offsets))),
        "passages that carry a name, mean": float(carriers.mean()),
        "most passages that carry one name (above 100, max_shared, it links nothing)": int(carriers.max()),
    }
