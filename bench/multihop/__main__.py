"""Multi-hop retrieval on public collections: ``python -m bench.multihop DATA`` writes ``bench/MULTIHOP.md``.

Whatever is fitted is fitted to other queries than those it is judged by, and starts from weights that know nothing: all
zero, but for PageRank's. Ablations are judged twice: with the weights of the full system, and with weights that were
fitted to what is left. The controls are links that mean nothing, and none.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from bench.common import Data, Row, arguments
from bench.multihop.fitting import Fitter, shuffled
from bench.sweeps import Figures, configured, read_sweep, run
from bench.writing import page, table, words, write_page
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, HoverLoader, LinkGraphRetriever, Searcher
from nlp_retrieval.core import BaseQueryLoader
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.evaluation.tuning import TuningReport

_SWEEP = Path(__file__).parent / "systems.yaml"
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
_CLAUSES = "the same, questions split by their clauses"
_SHUFFLED = "links shuffled"


class Study:
    """All measurements: the figures by set of queries."""

    def __init__(self, data: Data) -> None:
        self.data, self.begin = data, time.perf_counter()
        self.work = data.work / "multihop"
        self.hover, musique = HoverLoader(data.claims), BeirLoader(str(data.root / "musique"))
        self.all_questions = BeirLoader(str(data.root / "wiki" / "hotpotqa"))
        sources = {claim.family for claim in self.hover.queries()}
        questions = self._part("all", {query.query_id for query in self.all_questions.queries()} - sources)
        self.sets: dict[str, BaseQueryLoader] = {f"hover{hops}": HoverLoader(data.claims, hops=[hops]) for hops in (2, 3)}
        self.sets |= {"hotpotqa": questions, "musique": musique}
        self.wiki = Fitter(data.work / "wiki-index", BeirLoader(str(data.corpus)), questions)
        self.musique = Fitter(data.work / "musique-index", musique, musique)
        fitted = configured(self._settings(self.wiki, questions), self.work / "fitted").searchers
        graphs = {name: _graph_of(one) for name, one in fitted.items() if name == _FULL or name.endswith("refitted")}
        graphs[f"{_SHUFFLED}, refitted"] = shuffled(None)
        self.fits = {name: self.wiki.fit(graph) for name, graph in graphs.items()}
        self.full = self.fits[_FULL]
        self.figures = self._judged()
        self.reached = {name: self.wiki.reached(graphs[_FULL], self.sets[name]) for name in ("hover2", "hover3", "hotpotqa")}
        own = self.musique.fit(graphs[_FULL]).out_of_fold.per_query
        found = self._sweep("musique", musique, self.musique)
        self.figures["musique"] = replace(found, values=found.values | {_OWN_FOLDS: own})
        self.reached["musique"] = self.musique.reached(graphs[_FULL], musique)

    def _part(self, name: str, ids: set[str]) -> BeirLoader:
        """Write some of the HotpotQA questions as a collection of their own."""
        source, folder = Path(self.all_questions.path), self.work / "questions" / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        lines = (source / "queries.jsonl").read_text("utf-8").splitlines(keepends=True)
        (folder / "queries.jsonl").write_text("".join(line for line in lines if json.loads(line)["_id"] in ids), "utf-8")
        head, *rows = (source / "qrels" / "test.tsv").read_text("utf-8").splitlines(keepends=True)
        kept = [row for row in rows if row.split("\t")[0] in ids]
        (folder / "qrels" / "test.tsv").write_text("".join([head, *kept]), "utf-8")
        return BeirLoader(str(folder))

    def _settings(self, on: Fitter, queries: BaseQueryLoader) -> Config:
        return read_sweep(_SWEEP, queries=queries.config, corpus=str(on.corpus.path), index=str(on.index))

    def _sweep(self, name: str, queries: BaseQueryLoader, on: Fitter, fold: int | None = None) -> Figures:
        """Run the sweep with weights that the queries had no part in: those of their fold, or those of all HotpotQA."""
        settings = self._settings(on, queries)
        for key, searcher in settings["searchers"].items():
            graph: Any = searcher["retrievers"][0]
            if isinstance(graph, dict) and graph["name"] == "link_graph" and key != _DEFAULT:
                graph["weights"] = {**_weights(self.fits.get(key, self.full), fold), **graph.get("weights", {})}
        config = configured(settings, self.work / name)
        keys = (_SHUFFLED, f"{_SHUFFLED}, refitted")
        others = {key: Searcher([shuffled(_weights(self.fits.get(key, self.full), fold))]) for key in keys}
        if name == "musique":
            others[_CLAUSES] = Searcher([LinkGraphRetriever([Bm25Retriever(), FaissRetriever()], clauses=True)])
        return run(replace(config, searchers={**config.searchers, **others}), self.work / name)

    def _judged(self) -> dict[str, Figures]:
        """Judge claims at once, and each fold of HotpotQA by itself."""
        claims = self._sweep("hover", self.hover, self.wiki)
        ids: list[set[str]] = [set() for _ in self.full.fold_weights]
        for query, fold in zip(self.sets["hotpotqa"].queries(), self.full.folds.tolist(), strict=True):
            ids[fold].add(query.query_id)
        folds = [
            self._sweep(f"hotpotqa-{fold}", self._part(f"fold-{fold}", of), self.wiki, fold) for fold, of in enumerate(ids)
        ]
        return {f"hover{hops}": claims.group(f"hops={hops}") for hops in (2, 3)} | {"hotpotqa": reduce(Figures.then, folds)}


def _weights(report: TuningReport, fold: int | None) -> dict[str, float]:
    return report.weights if fold is None else report.fold_weights[fold]


def _graph_of(searcher: Any) -> LinkGraphRetriever:
    (graph,) = searcher.retrievers.values()
    assert isinstance(graph, LinkGraphRetriever)
    return graph


def report(study: Study) -> str:
    """The whole document."""
    figures = study.figures
    counts = {name: len(loader.queries()) for name, loader in study.sets.items()}
    n_questions = len(study.all_questions.queries())
    systems = ["BM25", "dense", _FUSED, _FULL, _DEFAULT]
    quality = {name: [(name, measure) for measure in measures] for name, measures in _MEASURES.items()}
    shuffled = [_FULL, _SHUFFLED, f"{_SHUFFLED}, refitted"]
    parts = [name for name in figures["hover3"].values if name not in (*systems, *shuffled)]
    controls = dict(zip(("full", "shuffled", "shuffled_refitted"), shuffled, strict=True))
    controls |= {"no_links": "no links, refitted", "fused": _FUSED}
    return page(
        (_SWEEP.parent / "page.md").read_text("utf-8"),
        minutes=f"{(time.perf_counter() - study.begin) / 60:.0f}",
        sets=_sets(study),
        n_deeper=len(study.hover.queries()) - counts["hover2"] - counts["hover3"],
        n_left=n_questions - counts["hotpotqa"],
        n_questions=f"{n_questions:,}",
        n_hotpotqa=f"{counts['hotpotqa']:,}",
        weights=", ".join(f"{kind} {weight:.2f}" for kind, weight in study.full.weights.items()),
        **{name: _table(study, systems, columns) for name, columns in quality.items() if name != "musique"},
        musique=_table(study, [*systems[:4], _OWN_FOLDS, _DEFAULT, _CLAUSES], quality["musique"]),
        reached=", ".join(f"{study.reached[name]:.1%} on {shown}" for name, shown in _NAMES.items()),
        differences=_differences(study),
        ablations=_table(study, [*shuffled, *parts], _ABLATED, _FULL),
        **{key: f"{figures['hover3'].mean(system, 'perfect_recall@5'):.2f}" for key, system in controls.items()},
    )


def _sets(study: Study) -> str:
    n_musique = sum(1 for _ in study.musique.corpus.stream())
    n_wiki = sum(1 for _ in study.wiki.corpus.stream())
    where = {"hover2": f"{n_wiki:,} Wikipedia introductions", "musique": f"{n_musique:,} paragraphs"}
    gold = {"hotpotqa": "supporting passages", "musique": "supporting paragraphs"}
    rows = {}
    for name, loader in study.sets.items():
        numbers = family_numbers([query.family for query in loader.queries()])
        sizes = [f"{len(numbers):,}", f"{int(numbers.max()) + 1:,}"]
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


def _table(study: Study, systems: Sequence[str], columns: Sequence[tuple[str, str]], against: str | None = None) -> str:
    several = len({judged for judged, _ in columns}) > 1
    heads = [f"{_NAMES[judged]}, {words(name)}" if several else words(name) for judged, name in columns]
    rows = {one: [study.figures[judged].cell(one, name, against) for judged, name in columns] for one in systems}
    return table(["", *heads], rows)


def measure(data: Data) -> list[Row]:
    """Measure all of it, write ``bench/MULTIHOP.md``, and return what stands out as rows."""
    study = Study(data)
    kept = ["Questions split by their clauses", "The relation that is asked for"]
    write_page(Path(__file__).parents[1] / "MULTIHOP.md", report(study), kept)
    rows = []
    for judged, name in (*_ABLATED[:1], *_ABLATED[2:]):
        figures = study.figures[judged]
        for other in (_FUSED, f"{_SHUFFLED}, refitted"):
            sign = figures.difference(_FULL, other, name)[3]
            means = f"{figures.mean(_FULL, name):.3f}; {other} {figures.mean(other, name):.3f}"
            measured = f"{means}; difference {figures.gain(_FULL, other, name, bold=False)}"
            rows.append(Row(f"{_NAMES[judged]}, {words(name)}, link graph out of fold", f"above {other}", measured, sign > 0))
    return rows


if __name__ == "__main__":
    (asked,) = arguments(__doc__, 1)
    warnings.simplefilter("ignore")
    measure(Data.of(asked))
