"""Multi-hop retrieval on public collections: ``python -m bench.multihop DATA`` writes ``bench/MULTIHOP.md``.

Whatever is fitted is fitted to other queries than those it is judged by, and starts from weights that know nothing: all
zero, but for PageRank's. Ablations are judged twice: with the weights of the full system, and with weights that were
fitted to what is left.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.common import Data, Row
from bench.haystack import COPIES, Naming, RememberedQueries, haystack_index, musique_index, wiki_index
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.evaluator import RetrievalEvaluator
from nlp_retrieval.benchmarks.intervals import bootstrap_interval, family_numbers
from nlp_retrieval.benchmarks.tuning import TuningReport, tune
from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.generation import open_generation
from nlp_retrieval.core.index_store import build_index
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.core.retriever import BaseRetriever
from nlp_retrieval.core.searcher import Searcher
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.graph.evidence import DEFAULT_WEIGHTS
from nlp_retrieval.graph.extractor import BaseLinkExtractor, Evidence
from nlp_retrieval.graph.link_graph import LinkGraph, Links
from nlp_retrieval.graph.shared_entities import SharedEntities
from nlp_retrieval.graph.title_mentions import TitleMentions
from nlp_retrieval.loaders.beir import BeirLoader
from nlp_retrieval.loaders.hover import HoverLoader
from nlp_retrieval.retrievers.bm25s import Bm25sRetriever
from nlp_retrieval.retrievers.faiss import FaissRetriever
from nlp_retrieval.retrievers.link_graph import LinkGraphRetriever
from nlp_retrieval.retrievers.link_graph_pool import Pool

_CUTOFFS = (2, 5, 10, 21)
_NEUTRAL = dict.fromkeys(DEFAULT_WEIGHTS, 0.0) | {"pagerank": 1.0}
_HOVER = ("perfect_recall@5", "perfect_recall@10", "perfect_recall@21")
_QUESTIONS = ("recall@2", "recall@5", "perfect_recall@5")
_ABLATED = (
    ("hover3", "perfect_recall@5"),
    ("hover3", "perfect_recall@21"),
    ("hover2", "perfect_recall@5"),
    ("hotpotqa", "recall@5"),
    ("musique", "recall@5"),
)
_NAMES = {"hover2": "HoVer, 2 hops", "hover3": "HoVer, 3 hops", "hotpotqa": "HotpotQA", "musique": "MuSiQue"}
_OUT_OF_FOLD = "link graph"
_OWN_FOLDS = "link graph, fitted to MuSiQue in 5 folds"
_DEFAULT = "link graph, the package's default weights"
_REFITTED = "link graph, weights fitted at this size"
_HAYSTACKS: dict[str, Naming] = {"10x, own names": "own", "10x, shared names": "shared"}

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
        return RetrievalEvaluator(judged.gold, self.ids, None, _CUTOFFS).evaluate(rows).per_query

    def search(self, judged: Judged, *retrievers: BaseRetriever) -> Values:
        """What a searcher of these retrievers is worth, as anyone would run it."""
        found = Searcher(list(retrievers)).open(self.path).search(judged.texts, _CUTOFFS[-1])
        row_of = {item_id: row for row, item_id in enumerate(self.ids)}
        return self.judge(judged, _padded([[row_of[result.item.item_id] for result in results] for results in found]))


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

    def evidence(self, source: SearchableItem, target: SearchableItem) -> Evidence | None:
        del source, target  # no sentence says why
        return None


class NoLinks(BaseLinkExtractor):
    """Finds none."""

    name = "no_links"
    along = against = 1.0

    def extract(self, items: ItemTable) -> Links:
        del items
        return Links.joined([])

    def evidence(self, source: SearchableItem, target: SearchableItem) -> Evidence | None:
        del source, target
        return None


class Probe(LinkGraphRetriever):
    """A link graph that walks once per query, whatever weights are tried, and that can be blinded to kinds of evidence."""

    blind: frozenset[str] = frozenset()
    walked: dict[str, Pool]

    def load(self, folder: Path) -> None:
        super().load(folder)
        if "similarity" in self.blind:
            self._open_dense = None

    def pools(self, queries: list[str], allowed: Mask | None = None, at_least: int = 1) -> Iterator[Pool]:
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
        probe = Probe([known[seed] for seed in self.seeds], weights=_NEUTRAL, **self.settings)
        probe.blind, probe.walked = self.blind, {}
        return probe


Probes = list[tuple[Collection, Probe]]


def _links() -> list[BaseLinkExtractor]:
    return [TitleMentions(), SharedEntities(weight=0.1)]


_FULL = Variant("full system")
_ABLATIONS = (
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
    Variant("PageRank alone", weights=_NEUTRAL),
    Variant("exact instead of local PageRank", {"pagerank": "exact"}),
)


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
        shown = ", ".join(f"{name} {values[name].mean():.3f}" for name in (*_HOVER, "recall@2", "recall@5"))
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
        return tune(retriever, collection.path, queries.queries, queries.gold, _CUTOFFS)

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
                ranked = [pool.ranked(by, _CUTOFFS[-1])[0].tolist() for pool, by in zip(pools, chosen, strict=True)]
                self.keep(system, name, collection.judge(judged, _padded(ranked)))
                self.reached[system, name] = _reached(collection, judged, pools)

    def quality(self) -> TuningReport:
        """The baselines, and the full system with weights from elsewhere; returns what HotpotQA gave."""
        self.baselines(self.wiki)
        self.baselines(self.musique)
        probes = [(collection, _FULL.retriever(collection)) for collection in (self.wiki, self.musique)]
        report = self.tuned(probes[0][1], self.wiki)
        self.judge(_OUT_OF_FOLD, probes, report)
        own = self.tuned(probes[1][1], self.musique, "musique")
        self.keep(_OWN_FOLDS, "musique", own.out_of_fold.per_query)
        for collection, _ in probes:
            retriever = LinkGraphRetriever([Bm25sRetriever(), collection.dense])
            for name, judged in collection.sets.items():
                self.keep(_DEFAULT, name, collection.search(judged, retriever))
        return report

    def ablations(self, full: TuningReport) -> None:
        """Every variant with the weights of the full system, and where that is not fair also with its own."""
        both = (self.wiki, self.musique)
        for collection, source in zip(both, (self.data.corpus, self.data.root / "musique"), strict=True):
            needed = [LinkGraphRetriever([Bm25sRetriever()], **variant.settings).builder() for variant in _ABLATIONS]
            report = build_index(BeirLoader(str(source)).stream(), collection.path, needed)
            self.tell(f"{collection.path.name}: {len(report.built)} link graphs built in {report.seconds:.0f} s")
        for variant in _ABLATIONS:
            probes = [(collection, variant.retriever(collection)) for collection in both]
            self.judge(variant.name, probes, variant.weights or full)
            if variant.refit:
                self.judge(f"{variant.name}, refitted", probes, self.tuned(probes[0][1], self.wiki))

    def crowded(self, full: TuningReport) -> None:
        """The same queries over ten times as many passages, whose names are their own or shared."""
        self.graphs["1x"] = _graph(self.wiki)
        for size, naming in _HAYSTACKS.items():
            path, dense = haystack_index(self.data, self.encoder, naming)
            large = Collection(path, dense, self.wiki.sets, open_generation(path).items.ids())
            self.baselines(large, f", {size}")
            probes = [(large, _FULL.retriever(large))]
            self.judge(f"{_OUT_OF_FOLD}, {size}", probes, full)
            self.judge(f"{_REFITTED}, {size}", probes, self.tuned(probes[0][1], large))
            self.graphs[size] = _graph(large)

    def cell(self, system: str, judged: str, measure: str, against: str | None = None) -> str:
        """A mean and its interval; in bold where it differs from another system by more than chance."""
        values = self.values.get((system, judged))
        if values is None:
            return ""
        shown = _shown(values[measure], self.families(judged))
        if against is None:
            return shown
        low, high = bootstrap_interval(values[measure] - self.values[against, judged][measure], self.families(judged))
        return f"**{shown}**" if low > 0 or high < 0 else shown

    def difference(self, system: str, other: str, judged: str, measure: str) -> tuple[float, float, float]:
        """How much higher a system stands, and the interval of that."""
        values = self.values[system, judged][measure] - self.values[other, judged][measure]
        return float(values.mean()), *bootstrap_interval(values, self.families(judged))

    def mean(self, system: str, judged: str, measure: str) -> float:
        return float(self.values[system, judged][measure].mean())


def measure(data: Data) -> list[Row]:
    """Measure all of it, write ``bench/MULTIHOP.md``, and return what stands out as rows."""
    study = Study(data)
    full = study.quality()
    study.ablations(full)
    study.crowded(full)
    parts = [_head(study), _data(study, full), _quality(study), _significance(study), _ablations(study), _crowding(study)]
    (Path(__file__).parent / "MULTIHOP.md").write_text("\n\n".join(parts) + "\n")
    study.tell("bench/MULTIHOP.md is written")
    return _rows(study)


def _rows(study: Study) -> list[Row]:
    rows = []
    for judged, name in (*_ABLATED[:1], *_ABLATED[2:]):
        for other in ("RRF of both", "links shuffled, refitted"):
            gain, low, high = study.difference(_OUT_OF_FOLD, other, judged, name)
            measured = f"{study.mean(_OUT_OF_FOLD, judged, name):.3f}; {other} {study.mean(other, judged, name):.3f}"
            shown = f"{measured}; difference {gain:+.3f} [{low:+.3f}, {high:+.3f}]"
            rows.append(Row(f"{_NAMES[judged]}, {_words(name)}, link graph out of fold", f"above {other}", shown, low > 0))
    return rows


def _head(study: Study) -> str:
    environment = describe_environment()
    hardware, versions = environment["hardware"], environment["versions"] | {"scipy": version("scipy")}
    shown = ("nlp_retrieval", "python", "numpy", "scipy", "bm25s", "faiss-cpu", "sentence-transformers", "torch", "numba")
    memory = f"{hardware.get('memory_bytes', 0) / 2**30:.0f} GiB"
    return _document(
        "# Multi-hop retrieval without a language model",
        """What `LinkGraphRetriever` finds where one passage is not enough, against its own seeds (BM25, dense retrieval) and
        their fusion; what its parts are worth; and what ten times as many passages do to it.""",
        f"""- Written by `python -m bench.multihop DATA` on {datetime.now(UTC):%Y-%m-%d}, in {study.seconds / 60:.0f} minutes
        on a machine that others share, indexes there already.""",
        f"""- {hardware["cores"]} cores ({hardware["cpu"]}), {memory};
        {", ".join(f"{name} {versions[name]}" for name in shown if name in versions)}.""",
        """- Brackets hold 95% intervals: percentile bootstrap, 10,000 resamples of families. Claims that were written from one
        question (`hpqa_id`) are a family; each HotpotQA and MuSiQue question is its own. Where every query succeeds such an
        interval shrinks to a point, which is too narrow: 18 families without a failure leave room for a rate of 15%.""",
    )


def _data(study: Study, full: TuningReport) -> str:
    sets = study.wiki.sets | study.musique.sets
    counts = {name: f"{len(judged.queries):,}" for name, judged in sets.items()}
    sizes = {name: f"{counts[name]} | {int(family_numbers(judged.families).max()) + 1:,}" for name, judged in sets.items()}
    weights = ", ".join(f"{kind} {weight:.2f}" for kind, weight in full.weights.items())
    n_hotpot, n_left = counts["hotpotqa"], study.n_questions - len(sets["hotpotqa"].queries)
    n_deeper = study.n_claims - len(sets["hover2"].queries) - len(sets["hover3"].queries)
    table = [
        "| set | queries | families | passages | gold |",
        "|---|---|---|---|---|",
        f"| HoVer, 2 hops | {sizes['hover2']} | {len(study.wiki.ids):,} Wikipedia introductions | supporting titles |",
        f"| HoVer, 3 hops | {sizes['hover3']} | the same | supporting titles |",
        f"| HotpotQA | {sizes['hotpotqa']} | the same | supporting passages |",
        f"| MuSiQue | {sizes['musique']} | {len(study.musique.ids):,} paragraphs | supporting paragraphs |",
    ]
    return _document(
        "## Data",
        table,
        f"""HoVer: claims of the dev release whose gold is all in the corpus; its {n_deeper} claims of 4 hops are too few to
        judge. The collections are samples, and figures do not compare with published ones over all 5 million introductions.""",
        f"""**Leakage.** {n_left} of {study.n_questions:,} HotpotQA questions are those from which HoVer claims of this set were
        written. They are left out everywhere. Weights were fitted to the other {n_hotpot}, starting from weights that know
        nothing (1 for PageRank, 0 for all else). HotpotQA is ranked in 5 folds, each by weights that it had no part in. HoVer
        and MuSiQue are ranked by the weights of all {n_hotpot}: no claim of HoVer and no question of MuSiQue had a part in
        them. **Not out of fold** is whatever is no weight: which links and which kinds of evidence there are, depth, damping,
        the power of the seeds and the size of the pool were chosen by hand, in trials on these same collections.""",
        f"The weights that all {n_hotpot} gave: {weights}.",
    )


def _quality(study: Study) -> str:
    tables = []
    for name, measures in (("hover2", _HOVER), ("hover3", _HOVER), ("hotpotqa", _QUESTIONS), ("musique", _QUESTIONS)):
        more = [_OWN_FOLDS] if name == "musique" else []
        systems = ["BM25", "dense", "RRF of both", _OUT_OF_FOLD, *more, _DEFAULT]
        tables += [f"**{_NAMES[name]}**", _table(study, systems, [(name, measure) for measure in measures])]
    reached = [f"{study.reached[_OUT_OF_FOLD, name]:.1%} on {shown}" for name, shown in _NAMES.items()]
    return _document(
        "## Quality",
        """BM25: bm25s, k1 0.9, b 0.4, Porter. Dense: all-MiniLM-L6-v2, exact search. RRF: of 100 hits of each, k = 60. Perfect
        recall@k: the share of queries with *all* gold among the first k. "link graph" is out of fold, as said above.""",
        *tables,
        f"""The default weights are the fitted ones, rounded: on HotpotQA their row is in sample. On MuSiQue, "link graph" is a
        transfer: fitted to HotpotQA, over another corpus. Weights can only order what the walk brings into the pool of 60; of
        all gold that is {", ".join(reached)}.""",
    )


def _significance(study: Study) -> str:
    others = ("RRF of both", "no links, refitted", "links shuffled, refitted")
    table = ["| | minus RRF | minus no links, refitted | minus shuffled links, refitted |", "|---|---|---|---|"]
    for judged, measures in (("hover2", _HOVER), ("hover3", _HOVER), ("hotpotqa", _QUESTIONS), ("musique", _QUESTIONS)):
        for name in measures:
            found = [study.difference(_OUT_OF_FOLD, other, judged, name) for other in others]
            cells = " | ".join(f"{gain:+.3f} [{low:+.3f}, {high:+.3f}]" for gain, low, high in found)
            table.append(f"| {_NAMES[judged]}, {_words(name)} | {cells} |")
    return _document(
        "## Differences",
        """Link graph (out of fold) minus another system, query by query. Nothing of RRF is fitted, so the fair comparisons are
        the second and the third: the same evidence, fitted in the same way, without links or with links that mean nothing.""",
        table,
    )


def _ablations(study: Study) -> str:
    systems = [_OUT_OF_FOLD]
    for variant in _ABLATIONS:
        systems += [variant.name] + [f"{variant.name}, refitted"] * variant.refit
    full, shuffled, refitted, without, fused = (
        f"{study.mean(system, 'hover3', 'perfect_recall@5'):.2f}"
        for system in (_OUT_OF_FOLD, "links shuffled", "links shuffled, refitted", "no links, refitted", "RRF of both")
    )
    return _document(
        "## What the parts are worth",
        """First with the weights of the full system; then, where leaving something out makes those weights wrong, refitted to
        HotpotQA in the same folds. **Bold**: differs from the full system (the paired interval is without 0).""",
        _table(study, systems, _ABLATED, _OUT_OF_FOLD),
        f"""- **Links shuffled** is the control: the same graph with its nodes renumbered at random, so that every passage has
        the links of another. On HoVer's 3 hops perfect recall@5 falls from {full} to {shuffled}, refitted to {refitted}.
        Without any link it is {without} (refitted), with RRF {fused}. What links are worth is the distance to the refitted
        rows; what lies between those and RRF is owed to fitting, to titles that the query names, and to terms that complement
        the foremost passage.""",
        """- Links act twice: the walk brings passages into the pool, and `chain` counts what linked candidates cover together.
        "No chain, no complement" leaves the walk and what each passage alone shows; "PageRank alone" leaves the walk.""",
        """- "No similarity in the score": dense retrieval stays a seed. "BM25 as only seed, no vectors": there is no model at
        all.""",
        """- "Exact" passes over the whole graph for each query; local PageRank approximates it.""",
    )


def _crowding(study: Study) -> str:
    columns = [("hover2", "perfect_recall@5"), *_ABLATED[:2], ("hotpotqa", "recall@2"), ("hotpotqa", "recall@5")]
    systems: list[str] = []
    for system in ("BM25", "dense", "RRF of both", _OUT_OF_FOLD):
        systems += [system, *(f"{system}, {size}" for size in _HAYSTACKS)]
    systems += [f"{_REFITTED}, {size}" for size in _HAYSTACKS]
    sizes = list(study.graphs)
    facts = ["| graph | " + " | ".join(sizes) + " |", "|---|" + "---|" * len(sizes)]
    for what in study.graphs["1x"]:
        facts.append(f"| {what} | " + " | ".join(_number(study.graphs[size][what]) for size in sizes) + " |")
    for name in ("hover2", "hover3", "hotpotqa"):
        reached = [study.reached[_OUT_OF_FOLD if size == "1x" else f"{_OUT_OF_FOLD}, {size}", name] for size in sizes]
        facts.append(f"| gold in the pool of 60, {_NAMES[name]} | " + " | ".join(f"{share:.1%}" for share in reached) + " |")
    return _document(
        "## Ten times the haystack",
        f"""{study.graphs[sizes[1]]["passages"]:,.0f} passages: the collection and {COPIES} distractors for each of its passages
        (`bench/haystack.py`). The text of a distractor is half of one passage and half of another, so that all that is said is
        said ten times. With **shared names** a distractor has a real passage's name ("Heat (1995 film, note 3)" for "Heat (1995
        film)"), so that every mention may mean ten passages; with **own names** nothing mentions it.""",
        """**What is approximated**: the vectors of distractors. They are the mean of the vectors of the two passages, scaled to
        length 1, instead of an encoding of the text; the name has no part in it. Dense figures at 10x are estimates, and so is
        what builds on them. And the texts are harsher than a real corpus of that size: no encyclopedia says everything ten
        times, nine of them of the wrong thing.""",
        _table(study, systems, columns),
        facts,
        *_reading(study),
    )


def _reading(study: Study) -> list[str]:
    """What the figures at 10x say."""
    own, shared = _HAYSTACKS

    def over_sizes(system: str, judged: str, name: str) -> str:
        sizes = (f"{system}, {own}", f"{system}, {shared}")
        return ", ".join(f"{study.mean(one, judged, name):.2f}" for one in ((system,) if system != _REFITTED else ()) + sizes)

    deep, wide = ("hover3", "perfect_recall@5"), ("hotpotqa", "recall@5")
    return [
        f"""- The crowd of texts hits what the walk starts from. RRF, at 1x and with own and shared names at 10x: HoVer, 3 hops,
        perfect recall@5 {over_sizes("RRF of both", *deep)}; HotpotQA, recall@5 {over_sizes("RRF of both", *wide)}.""",
        f"""- The link graph falls too: {over_sizes(_OUT_OF_FOLD, *deep)}, and {over_sizes(_OUT_OF_FOLD, *wide)}. BM25 and
        dense retrieval hardly tell own from shared names, so the second step is what ambiguous names do to links, and to titles
        that the query names.""",
        f"""- Weights that were fitted at one size do not suit a crowd. Fitted again, with own and shared names:
        {over_sizes(_REFITTED, *deep)}, and {over_sizes(_REFITTED, *wide)}. Most gold is still in the pool; what is lost is
        lost mostly in its order.""",
    ]


def _document(*parts: str | list[str]) -> str:
    """Put paragraphs, bullets and tables together, wrapped; a list is a table's lines."""
    text = ""
    for part in parts:
        bullet = isinstance(part, str) and part.startswith("- ")
        if text:
            text += "\n" if bullet and text.rsplit("\n\n", 1)[-1].startswith("- ") else "\n\n"
        if isinstance(part, list):
            text += "\n".join(part)
        else:
            indent = "  " * bullet
            text += fill(" ".join(part.split()), 125, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _table(study: Study, systems: Sequence[str], columns: Sequence[tuple[str, str]], against: str | None = None) -> list[str]:
    several = len({judged for judged, _ in columns}) > 1
    heads = [f"{_NAMES[judged]}, {_words(name)}" if several else _words(name) for judged, name in columns]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(columns)]
    return lines + [f"| {system} | {_cells(study, system, columns, against)} |" for system in systems]


def _cells(study: Study, system: str, columns: Sequence[tuple[str, str]], against: str | None = None) -> str:
    return " | ".join(study.cell(system, judged, name, against) for judged, name in columns)


def _words(measure: str) -> str:
    return measure.replace("_", " ")


def _pairs(loader: BeirLoader) -> list[tuple[Query, Gold]]:
    return list(zip(loader.queries(), loader.gold(), strict=True))


def _judged(name: str, pairs: list[tuple[Query, Gold]]) -> Judged:
    return Judged(name, [query for query, _ in pairs], [gold for _, gold in pairs])


def _padded(ranked: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    rows = np.full((len(ranked), _CUTOFFS[-1]), -1, np.int64)
    for number, found in enumerate(ranked):
        rows[number, : len(found)] = found
    return rows


def _reached(collection: Collection, judged: Judged, pools: list[Pool]) -> float:
    """Which share of all gold is in the pools."""
    row_of = {item_id: row for row, item_id in enumerate(collection.ids)}
    found = wanted = 0
    for gold, pool in zip(judged.gold, pools, strict=True):
        rows = [row_of[item_id] for item_id, grade in gold.relevance.items() if grade > 0]
        found += int(np.isin(rows, pool.rows[: len(pool.evidence["pagerank"])]).sum())
        wanted += len(rows)
    return found / wanted


def _graph(collection: Collection) -> dict[str, float]:
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


def _shown(values: NDArray[np.float64], families: list[str | None]) -> str:
    low, high = bootstrap_interval(values, families)
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def main(arguments: list[str]) -> int:
    """Measure and write."""
    data = Data(Path(arguments[0] if arguments else "").absolute(), Path(__file__).parent / ".work")
    if len(arguments) != 1 or not data.corpus.is_file() or not (data.root / "musique").is_dir():
        print("usage: python -m bench.multihop DATA   (DATA holds wiki/ and musique/)")
        return 2
    data.work.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    measure(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
