"""HippoRAG 2 on MuSiQue: ``python -m bench.hipporag DATA MODEL`` writes ``bench/HIPPORAG.md``.

DATA holds ``musique/`` with its published triples (``openie.jsonl``), MODEL is an encoder: a hub name or a folder. No language
model is asked. Whatever is fitted is fitted to other questions than those it is judged by; each graph is judged beside the
same graph in which passages say what others say.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.common import Data, median_ms, record_of
from bench.hipporag.control import means_something, shuffled
from bench.multihop.fitting import CUTOFFS, Fitter
from bench.sweeps import Figures, run
from bench.writing import page, table, words
from nlp_retrieval import (
    BaseRetriever,
    BeirLoader,
    Bm25sRetriever,
    FaissRetriever,
    HippoRagRetriever,
    LinkGraphRetriever,
    ReciprocalRankFusion,
    RetrievalError,
    Searcher,
)
from nlp_retrieval.benchmarks.benchmarkable import Entry
from nlp_retrieval.benchmarks.config import BenchmarkConfig
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.graph.store.link_graph import LinkGraph

_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "HIPPORAG.md"
_MEASURES = ("recall@2", "recall@5", "perfect_recall@5")
_PUBLISHED, _LINKS, _SEEDED = "HippoRAG 2", "link graph", "link graph, HippoRAG 2 among its seeds"
_FITTED = "fitted to MuSiQue in 5 folds"
_OTHER = ", passages shuffled"


@dataclass(frozen=True)
class Study:
    """What is compared.

    Args:
        index: the index directory.
        corpus: passages, questions and gold.
        systems: retrievers by system; several are fused by reciprocal ranks.
        figures: what they reached.
        milliseconds: of a query, by system.
        fitted: which systems are fitted.
    """

    index: Path
    corpus: BeirLoader
    systems: Mapping[str, list[BaseRetriever]]
    figures: Figures
    milliseconds: Mapping[str, float]
    fitted: list[str]

    @classmethod
    def of(cls, data: Data, model: str) -> Study:
        """Index, fit and search."""
        corpus = BeirLoader(str(data.root / "musique"))
        index = data.work / "hipporag-index"
        systems = _systems(model, str(data.root / "musique" / "openie.jsonl"))
        searchers = {name: Searcher(list(of), fusion=_fusion(of)) for name, of in systems.items()}
        for searcher in searchers.values():
            searcher.index(corpus, index)
        controls = {
            f"{name}{_OTHER}": [shuffled(one) for one in of] for name, of in systems.items() if any(map(means_something, of))
        }
        all_of: dict[str, Entry] = dict(searchers)
        all_of |= {name: Searcher(list(of), fusion=_fusion(of)) for name, of in controls.items()}
        config = BenchmarkConfig(
            corpus, corpus, all_of, index, data.work, None, None, {"k_values": CUTOFFS, "latency_queries": 1}
        )
        figures = run(config, data.work / "hipporag")
        fitter = Fitter(index, corpus, corpus)
        graphs = {
            name: of[0] for name, of in (systems | controls).items() if isinstance(of[0], LinkGraphRetriever) and len(of) == 1
        }
        fits = {
            f"{name}, {_FITTED}": fitter.fit(graph) for name, graph in graphs.items() if isinstance(graph, LinkGraphRetriever)
        }
        values = figures.values | {name: report.out_of_fold.per_query for name, report in fits.items()}
        questions = [query.text for query in corpus.queries()]
        milliseconds = {
            name: median_ms(lambda text, one=searcher: one.search([text], 5), questions[:50])  # type: ignore[misc]
            for name, searcher in searchers.items()
        }
        return cls(index, corpus, systems, replace(figures, values=values), milliseconds, list(fits))

    def row(self, name: str) -> list[str]:
        """Measures, what the control loses, and the cost of a query."""
        control = name.replace(f", {_FITTED}", f"{_OTHER}, {_FITTED}") if name in self.fitted else f"{name}{_OTHER}"
        cells = [self.figures.cell(name, measure) for measure in _MEASURES]
        has_control = control in self.figures.values
        cells.append(f"{self.figures.mean(control, 'recall@5'):.3f}" if has_control else "-")
        cells.append(self.figures.gain(name, control, "recall@5") if has_control else "-")
        return [*cells, f"{self.milliseconds[name]:.0f}" if name in self.milliseconds else "-"]


def _systems(model: str, knowledge: str) -> dict[str, list[BaseRetriever]]:
    lexical, dense = Bm25sRetriever(), FaissRetriever(model)
    published = HippoRagRetriever(model, knowledge)
    links = LinkGraphRetriever([lexical, dense])
    return {
        "BM25": [Bm25sRetriever(k1=0.9, b=0.4)],
        "dense": [dense],
        "RRF of both": [lexical, dense],
        _PUBLISHED: [published],
        "no passage nodes": [HippoRagRetriever(model, knowledge, passage_weight=0.0)],
        "query to node": [HippoRagRetriever(model, knowledge, linking="nodes")],
        "three stages": [HippoRagRetriever(model, knowledge, linking="entities")],
        "three stages, 1 hop": [HippoRagRetriever(model, knowledge, linking="entities", hops=1)],
        "local walk": [HippoRagRetriever(model, knowledge, pagerank="local")],
        _LINKS: [links],
        "RRF of HippoRAG 2 and BM25": [published, lexical],
        "RRF of HippoRAG 2 and link graph": [published, links],
        "link graph, HippoRAG 2 as only seed": [LinkGraphRetriever([published], encoder=dense.encoder)],
        "link graph, seeds BM25 and HippoRAG 2": [LinkGraphRetriever([lexical, published], encoder=dense.encoder)],
        _SEEDED: [LinkGraphRetriever([lexical, dense, published])],
    }


def _fusion(of: list[BaseRetriever]) -> ReciprocalRankFusion | None:
    return ReciprocalRankFusion() if len(of) > 1 else None


def written(data: Data, model: str) -> str:
    """Return the page."""
    begin = time.perf_counter()
    study = Study.of(data, model)
    figures = study.figures
    plain = list(study.systems)
    fitted = [name for name in study.fitted if _OTHER not in name]
    heads = ["", *map(words, _MEASURES), "shuffled, recall@5", "minus shuffled", "ms a query"]
    best = max([*plain, *fitted], key=lambda name: figures.mean(name, "recall@5"))
    pairs = [(_PUBLISHED, "dense"), (_SEEDED, _LINKS), (f"{_SEEDED}, {_FITTED}", f"{_LINKS}, {_FITTED}"), (best, _LINKS)]
    gains = {f"{one} minus {other}": [figures.gain(one, other, name) for name in _MEASURES] for one, other in pairs}
    return page(
        (_HERE / "page.md").read_text("utf-8"),
        minutes=f"{(time.perf_counter() - begin) / 60:.0f}",
        model=model if not Path(model).exists() else Path(model).name,
        n_passages=f"{sum(1 for _ in study.corpus.stream()):,}",
        n_questions=len(study.corpus.queries()),
        systems=table(heads, {name: study.row(name) for name in [*plain, *fitted]}),
        gains=table(["", *map(words, _MEASURES)], gains),
        best=best,
        best_recall=f"{figures.mean(best, 'recall@5'):.3f}",
        costs=_costs(study),
    )


def _costs(study: Study) -> str:
    """Seconds and bytes of each index, and what the knowledge graph holds."""
    (published,) = study.systems[_PUBLISHED]
    (links,) = study.systems[_LINKS]
    heads = ["index", "seconds", "MB", "holds"]
    record, folder = record_of(study.index, published)
    graph = LinkGraph.open(folder)
    facts = ", ".join(f"{count:,} {kind}" for kind, count in graph.n_links.items())
    n_rows = len(open_generation(study.index).items)
    rows = {"hipporag": [*_cost(study.index, record), f"{graph.n_nodes - n_rows:,} entities, {facts}"]}
    for retriever in (study.systems["dense"][0], study.systems["RRF of both"][0], links):
        record, _ = record_of(study.index, retriever)
        rows[retriever.name] = [*_cost(study.index, record), ""]
    return table(heads, rows)


def _cost(index: Path, record: RetrieverRecord) -> list[str]:
    size = sum(file.stat().st_size for part in record.segments for file in (index / part.folder).iterdir())
    return [f"{record.cost.seconds:.0f}", f"{size / 1e6:.1f}"]


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 2 or not (Path(arguments[0]) / "musique" / "openie.jsonl").is_file():
        print("usage: python -m bench.hipporag DATA MODEL   (DATA holds musique/)")
        return 2
    warnings.simplefilter("ignore")
    try:
        _PAGE.write_text(written(Data.of(arguments[0]), arguments[1]), "utf-8")
    except RetrievalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
