"""Multi-hop retrieval on public collections: ``python -m bench.multihop DATA`` writes ``bench/MULTIHOP.md``.

Whatever is fitted is fitted to other queries than those it is judged by, and starts from weights that know nothing: all
zero, but for PageRank's. Ablations are judged twice: with the weights of the full system, and with weights that were
fitted to what is left. The controls are links that mean nothing, and none.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from bench.common import Data, Row, record_of
from bench.haystack import COPIES, HaystackLoader, Naming, haystack_index
from bench.sweeps import Figures, configured, read_sweep, run
from bench.writing import page, table, words
from nlp_retrieval import (
    BaseLinkExtractor,
    BaseRetriever,
    BeirLoader,
    Bm25sRetriever,
    FaissRetriever,
    Gold,
    HoverLoader,
    ItemTable,
    LinkGraphRetriever,
    Links,
    LinkSentence,
    Query,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
    SharedEntities,
    TitleMentions,
    TuningReport,
    tune,
)
from nlp_retrieval.benchmarks.benchmarkable import Entry
from nlp_retrieval.benchmarks.config import BenchmarkConfig
from nlp_retrieval.evaluation.bootstrap import family_numbers
from nlp_retrieval.graph.store.link_graph import LinkGraph
from nlp_retrieval.graph.walk.evidence import DEFAULT_WEIGHTS
from nlp_retrieval.retrievers.link_graph.candidates import GraphCandidates

_SWEEP = Path(__file__).parent / "systems.yaml"
_CUTOFFS = [2, 5, 10, 21]
_NEUTRAL = dict.fromkeys(DEFAULT_WEIGHTS, 0.0) | {"pagerank": 1.0}
_HOVER = ("perfect_recall@5", "perfect_recall@10", "perfect_recall@21")
_QUESTIONS = ("recall@2", "recall@5", "perfect_recall@5")
_MEASURES = {"hover2": _HOVER, "hover3": _HOVER, "hotpotqa": _QUESTIONS, "musique": _QUESTIONS}
_ABLATED = [
    ("hover3", _HOVER[0]),
    ("hover3", _HOVER[2]),
    ("hover2", _HOVER[0]),
    ("hotpotqa", "recall@5"),
    ("musique", "recall@5"),
]
_NAMES = {"hover2": "HoVer, 2 hops", "hover3": "HoVer, 3 hops", "hotpotqa": "HotpotQA", "musique": "MuSiQue"}
_FULL, _FUSED = "link graph", "RRF of both"
_OWN_FOLDS = "link graph, fitted to MuSiQue in 5 folds"
_DEFAULT = "link graph, the package's default weights"
_REFITTED = "link graph, weights fitted at this size"
_SHUFFLED = "links shuffled"
_HAYSTACKS: dict[str, Naming] = {"10x, own names": "own", "10x, shared names": "shared"}

Judged = tuple[list[Query], list[Gold]]


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


class Blinded:
    """A link graph in fitting: it starts from weights that know nothing, and sees no evidence whose weight is written as 0.

    Args:
        retriever: any weights but 0 are not looked at.
    """

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
            yield replace(pool, evidence=pool.evidence | hidden)


@dataclass(frozen=True)
class Fitter:
    """Fits the weights of searchers to the queries of one index.

    Args:
        index: the index directory; the link graphs are built there.
        corpus: of it.
        judged: queries and gold.
    """

    index: Path
    corpus: BeirLoader | HaystackLoader
    judged: Judged

    def fit(self, given: LinkGraphRetriever) -> TuningReport:
        """Fit in folds and to all queries, from weights that know nothing; evidence whose weight is 0 is not seen."""
        Searcher([given]).index(self.corpus, self.index)
        return tune(cast(LinkGraphRetriever, Blinded(given)), self.index, *self.judged, _CUTOFFS)

    def reached(self, given: LinkGraphRetriever, judged: Judged) -> float:
        """Which share of all gold is in the pools."""
        n_gold = sum(sum(grade > 0 for grade in one.relevance.values()) for one in judged[1])
        return 1 - replace(self, judged=judged).fit(given).unreachable / n_gold


class Study:
    """All measurements: the figures by set of queries.

    Args:
        data: where the collections are.
    """

    def __init__(self, data: Data) -> None:
        self.data, self.begin = data, time.perf_counter()
        self.work = data.work / "multihop"
        self.fits: dict[str, TuningReport] = {}
        self.graphs: dict[str, dict[str, float]] = {}
        self.reached: dict[tuple[str, str], float] = {}
        claims = data.hover()
        hover = {hops: HoverLoader(data.claims, hops=[hops]) for hops in (2, 3)}
        self.sets: dict[str, Judged] = {f"hover{hops}": (one.queries(), one.gold()) for hops, one in hover.items()}
        asked = data.root / "wiki" / "hotpotqa"
        sources = {claim.family for claim in claims}
        self.n_claims, self.n_questions = len(claims), len(BeirLoader(str(asked)).queries())
        kept = self._part(asked, "all", {query.query_id for query in BeirLoader(str(asked)).queries()} - sources)
        self.sets["hotpotqa"] = kept.queries(), kept.gold()
        musique = BeirLoader(str(data.root / "musique"))
        self.sets["musique"] = musique.queries(), musique.gold()
        self.wiki = Fitter(data.work / "wiki-index", BeirLoader(str(data.corpus)), self.sets["hotpotqa"])
        self.musique = Fitter(data.work / "musique-index", musique, self.sets["musique"])
        self.figures = self._one_fold_after_the_other()
        self._crowded()

    @property
    def full(self) -> TuningReport:
        """What HotpotQA gave for the full system."""
        return self.fits[_FULL]

    def _part(self, source: Path, name: str, ids: set[str]) -> BeirLoader:
        """Write some of the questions of a collection as one of their own."""
        folder = self.work / "questions" / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        lines = (source / "queries.jsonl").read_text("utf-8").splitlines()
        (folder / "queries.jsonl").write_text(
            "\n".join(line for line in lines if json.loads(line)["_id"] in ids) + "\n", "utf-8"
        )
        head, *rows = (source / "qrels" / "test.tsv").read_text("utf-8").splitlines()
        kept = [head, *(row for row in rows if row.split("\t")[0] in ids)]
        (folder / "qrels" / "test.tsv").write_text("\n".join(kept) + "\n", "utf-8")
        return BeirLoader(str(folder))

    def _sweep(self, name: str, queries: Mapping[str, str], on: Fitter, fold: int | None = None) -> Figures:
        """Run the sweep with weights that the queries had no part in: those of their fold, or those of all HotpotQA."""
        config = self._configured(name, queries, on, {key: _weights(report, fold) for key, report in self.fits.items()})
        shuffled = {key: [_shuffled(_weights(self.fits[fit], fold))] for key, fit in
                    ((_SHUFFLED, _FULL), (f"{_SHUFFLED}, refitted", f"{_SHUFFLED}, refitted"))}  # fmt: skip
        searchers = {**config.searchers, **{key: Searcher(made) for key, made in shuffled.items()}}
        return run(replace(config, searchers=searchers), self.work / name)

    def _configured(
        self, name: str, queries: Mapping[str, str], on: Fitter, weights: Mapping[str, Mapping[str, float]]
    ) -> BenchmarkConfig:
        places = {"corpus": str(on.corpus.path), "index": str(on.index)}
        settings = read_sweep(_SWEEP, queries=queries, **places)
        for key, searcher in settings["searchers"].items():
            graph: Any = searcher["retrievers"][0]
            if isinstance(graph, dict) and graph["name"] == "link_graph" and key != _DEFAULT and weights:
                graph["weights"] = {**weights.get(key, weights[_FULL]), **graph.get("weights", {})}
        return configured(settings, self.work / name)

    def _one_fold_after_the_other(self) -> dict[str, Figures]:
        hotpotqa = {"loader": "beir", "path": str(self.work / "questions" / "all")}
        for name, searcher in self._configured("fitted", hotpotqa, self.wiki, {}).searchers.items():
            if name == _FULL or name.endswith("refitted"):
                self.fits[name] = self.wiki.fit(_graph_of(searcher))
        self.fits[f"{_SHUFFLED}, refitted"] = self.wiki.fit(_shuffled(None))
        figures: dict[str, Figures] = {}
        hover = self._sweep("hover", {"loader": "hover", "path": str(self.data.claims)}, self.wiki)
        figures |= {f"hover{hops}": hover.group(f"hops={hops}") for hops in (2, 3)}
        figures["hotpotqa"] = self._in_folds(lambda name, part, fold: self._sweep(name, part, self.wiki, fold))
        found = self._sweep("musique", {"loader": "beir", "path": str(self.data.root / "musique")}, self.musique)
        graph = LinkGraphRetriever([Bm25sRetriever(), FaissRetriever()])
        own = self.musique.fit(graph)
        figures["musique"] = replace(found, values=found.values | {_OWN_FOLDS: own.out_of_fold.per_query})
        for name, judged in self.sets.items():
            self.reached[_FULL, name] = (self.musique if name == "musique" else self.wiki).reached(graph, judged)
        self.graphs["1x"] = graph_facts(self.wiki.index, graph)
        return figures

    def _in_folds(self, sweep: Any) -> Figures:
        """Judge each fold of HotpotQA by itself, and put the folds together."""
        queries = self.sets["hotpotqa"][0]
        together: Figures | None = None
        for fold in range(len(self.full.fold_weights)):
            ids = {query.query_id for query, of in zip(queries, self.full.folds.tolist(), strict=True) if of == fold}
            self._part(self.work / "questions" / "all", f"fold-{fold}", ids)
            found = sweep(f"hotpotqa-{fold}", {"loader": "beir", "path": str(self.work / "questions" / f"fold-{fold}")}, fold)
            together = found if together is None else together.then(found)
        assert together is not None
        return together

    def _crowded(self) -> None:
        """The same queries over ten times as many passages, whose names are their own or shared."""
        for size, naming in _HAYSTACKS.items():
            path, dense = haystack_index(self.data, SentenceTransformerEncoder(), naming)
            graph = LinkGraphRetriever([Bm25sRetriever(), dense])
            large = Fitter(path, HaystackLoader(str(self.data.corpus), naming), self.sets["hotpotqa"])
            refitted = large.fit(graph)

            def sweep(
                name: str, queries: Mapping[str, str], fold: int | None, now: Any = (size, large, dense, refitted)
            ) -> Figures:
                size, on, dense, refitted = now
                config = self._configured(f"{name}, {size}", queries, self.wiki, {})
                lexical = Bm25sRetriever(k1=0.9, b=0.4)
                made: dict[str, list[BaseRetriever]] = {"BM25": [lexical], "dense": [dense], _FUSED: [lexical, dense]}
                for key, report in ((_FULL, self.full), (_REFITTED, refitted)):
                    made[key] = [LinkGraphRetriever([Bm25sRetriever(), dense], weights=_weights(report, fold))]
                searchers: dict[str, Entry] = {key: Searcher(retrievers) for key, retrievers in made.items()}
                changed = replace(config, corpus=on.corpus, index=on.index, searchers=searchers)
                return run(changed, self.work / f"{name}, {size}")

            hover = sweep("hover", {"loader": "hover", "path": str(self.data.claims)}, None)
            found = {f"hover{hops}": hover.group(f"hops={hops}") for hops in (2, 3)} | {"hotpotqa": self._in_folds(sweep)}
            for name, figures in found.items():
                self.figures[name] = self.figures[name].beside(figures.named(f"{{}}, {size}"))
                self.reached[f"{_FULL}, {size}", name] = large.reached(graph, self.sets[name])
            self.graphs[size] = graph_facts(path, graph)


def _weights(report: TuningReport, fold: int | None) -> dict[str, float]:
    return report.weights if fold is None else report.fold_weights[fold]


def _graph_of(searcher: Any) -> LinkGraphRetriever:
    (graph,) = searcher.retrievers.values()
    assert isinstance(graph, LinkGraphRetriever)
    return graph


def _shuffled(weights: Mapping[str, float] | None) -> LinkGraphRetriever:
    """The link graph with links that mean nothing."""
    links = [Shuffled(TitleMentions()), Shuffled(SharedEntities(weight=0.1))]
    return LinkGraphRetriever([Bm25sRetriever(), FaissRetriever()], links, weights=weights)


def graph_facts(index: Path, retriever: LinkGraphRetriever) -> dict[str, float]:
    """What the link graph of an index is like."""
    _, folder = record_of(index, retriever)
    graph, carriers = LinkGraph.open(folder), np.diff(np.load(folder / "title_offsets.npy"))
    facts = {"passages": graph.n_nodes} | {f"links, {kind}": count for kind, count in graph.n_links.items()}
    return facts | {
        "links per passage, median of both directions": float(np.median(np.diff(graph.offsets))),
        "passages that carry a name, mean": float(carriers.mean()),
        "most passages that carry one name (above 100, max_shared, it links nothing)": int(carriers.max()),
    }


def report(study: Study) -> str:
    """The whole document."""
    figures = study.figures
    counts = {name: len(queries) for name, (queries, _) in study.sets.items()}
    sizes = list(study.graphs)
    systems = ["BM25", "dense", _FUSED, _FULL, _DEFAULT]
    quality = {name: [(name, measure) for measure in measures] for name, measures in _MEASURES.items()}
    shuffled = [_FULL, _SHUFFLED, f"{_SHUFFLED}, refitted"]
    parts = [name for name in figures["hover3"].values if "10x" not in name and name not in (*systems, *shuffled)]
    controls = dict(zip(("full", "shuffled", "shuffled_refitted"), shuffled, strict=True))
    controls |= {"no_links": "no links, refitted", "fused": _FUSED}
    crowd = [f"{name}{size}" for name in systems[:4] for size in ("", *(f", {one}" for one in _HAYSTACKS))]
    crowd += [f"{_REFITTED}, {size}" for size in _HAYSTACKS]

    def over_sizes(system: str, judged: str, name: str) -> str:
        names = [system] * (system != _REFITTED) + [f"{system}, {size}" for size in _HAYSTACKS]
        return ", ".join(f"{figures[judged].mean(one, name):.2f}" for one in names)

    reading = {}
    for key, system in (("fused", _FUSED), ("full", _FULL), ("refitted", _REFITTED)):
        reading[f"{key}_deep"] = over_sizes(system, "hover3", "perfect_recall@5")
        reading[f"{key}_wide"] = over_sizes(system, "hotpotqa", "recall@5")
    return page(
        (_SWEEP.parent / "page.md").read_text("utf-8"),
        minutes=f"{(time.perf_counter() - study.begin) / 60:.0f}",
        sets=_sets(study),
        n_deeper=study.n_claims - counts["hover2"] - counts["hover3"],
        n_left=study.n_questions - counts["hotpotqa"],
        n_questions=f"{study.n_questions:,}",
        n_hotpotqa=f"{counts['hotpotqa']:,}",
        weights=", ".join(f"{kind} {weight:.2f}" for kind, weight in study.full.weights.items()),
        **{name: _table(study, systems, columns) for name, columns in quality.items() if name != "musique"},
        musique=_table(study, [*systems[:4], _OWN_FOLDS, _DEFAULT], quality["musique"]),
        reached=", ".join(f"{study.reached[_FULL, name]:.1%} on {shown}" for name, shown in _NAMES.items()),
        differences=_differences(study),
        ablations=_table(study, [*shuffled, *parts], _ABLATED, _FULL),
        **{key: f"{figures['hover3'].mean(system, 'perfect_recall@5'):.2f}" for key, system in controls.items()},
        n_crowd=f"{study.graphs[sizes[1]]['passages']:,.0f}",
        copies=COPIES,
        crowded=_table(
            study, crowd, [("hover2", _HOVER[0]), *_ABLATED[:2], ("hotpotqa", "recall@2"), ("hotpotqa", "recall@5")]
        ),
        graphs=_graphs(study),
        **reading,
    )


def _sets(study: Study) -> str:
    n_musique = sum(1 for _ in study.musique.corpus.stream())
    where = {"hover2": f"{study.graphs['1x']['passages']:,.0f} Wikipedia introductions", "musique": f"{n_musique:,} paragraphs"}
    gold = {"hotpotqa": "supporting passages", "musique": "supporting paragraphs"}
    rows = {}
    for name, (queries, _) in study.sets.items():
        n_families = int(family_numbers([query.family for query in queries]).max()) + 1
        sizes = [f"{len(queries):,}", f"{n_families:,}"]
        rows[_NAMES[name]] = [*sizes, where.get(name, "the same"), gold.get(name, "supporting titles")]
    return table(["set", "queries", "families", "passages", "gold"], rows)


def _differences(study: Study) -> str:
    others = (_FUSED, "no links, refitted", f"{_SHUFFLED}, refitted")
    rows = {
        f"{_NAMES[judged]}, {words(name)}": [study.figures[judged].gain(_FULL, other, name, bold=False) for other in others]
        for judged, measures in _MEASURES.items()
        for name in measures
    }
    return table(["", "minus RRF", "minus no links, refitted", "minus shuffled links, refitted"], rows)


def _graphs(study: Study) -> str:
    rows = {what: [_number(facts[what]) for facts in study.graphs.values()] for what in study.graphs["1x"]}
    for name in ("hover2", "hover3", "hotpotqa"):
        reached = [study.reached[_FULL if size == "1x" else f"{_FULL}, {size}", name] for size in study.graphs]
        rows[f"gold in the pool of 60, {_NAMES[name]}"] = [f"{share:.1%}" for share in reached]
    return table(["graph", *study.graphs], rows)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _table(study: Study, systems: Sequence[str], columns: Sequence[tuple[str, str]], against: str | None = None) -> str:
    several = len({judged for judged, _ in columns}) > 1
    heads = [f"{_NAMES[judged]}, {words(name)}" if several else words(name) for judged, name in columns]
    rows = {one: [study.figures[judged].cell(one, name, against) for judged, name in columns] for one in systems}
    return table(["", *heads], rows)


def measure(data: Data) -> list[Row]:
    """Measure all of it, write ``bench/MULTIHOP.md``, and return what stands out as rows."""
    study = Study(data)
    (Path(__file__).parents[1] / "MULTIHOP.md").write_text(report(study))
    rows = []
    for judged, name in (*_ABLATED[:1], *_ABLATED[2:]):
        figures = study.figures[judged]
        for other in (_FUSED, f"{_SHUFFLED}, refitted"):
            sign = figures.difference(_FULL, other, name)[3]
            means = f"{figures.mean(_FULL, name):.3f}; {other} {figures.mean(other, name):.3f}"
            measured = f"{means}; difference {figures.gain(_FULL, other, name, bold=False)}"
            rows.append(Row(f"{_NAMES[judged]}, {words(name)}, link graph out of fold", f"above {other}", measured, sign > 0))
    return rows


def main(arguments: list[str]) -> int:
    """Measure and write."""
    if len(arguments) != 1 or not (data := Data.of(arguments[0])).corpus.is_file() or not (data.root / "musique").is_dir():
        print("usage: python -m bench.multihop DATA   (DATA holds wiki/ and musique/)")
        return 2
    warnings.simplefilter("ignore")
    measure(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
