"""HippoRAG 2 on MuSiQue: ``python -m bench.hipporag DATA MODEL`` writes ``bench/HIPPORAG.md``.

DATA holds ``musique/`` with its published triples (``openie.jsonl``), MODEL is an encoder: a hub name or a folder. No language
model is asked. Whatever is fitted or chosen is judged by other questions; each graph is judged beside the same graph in which
passages say what others say.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from bench.common import Data, arguments
from bench.hipporag.control import means_something, shuffled
from bench.multihop.fitting import CUTOFFS, Blinded, Fitter
from bench.sweeps import Figures, Values
from bench.writing import page, table, words
from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    LinkGraphRetriever,
    ReciprocalRankFusion,
    Searcher,
)
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.evaluation.tuning import TuningReport
from nlp_retrieval.retrievers import SharedEntities, TitleMentions
from nlp_retrieval.retrievers.link_graph.tuning import tune
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.systems.hipporag.shared_knowledge import SharedKnowledge

_HERE = Path(__file__).parent
_PUBLISHED, _DENSE, _LINKS = "HippoRAG 2", "dense", "link graph"
_CHOSEN = "link graph, seeds and links chosen within the folds"
_FITTED, _OTHER = ", fitted in 5 folds", ", passages shuffled"
_K = 10


def measures(lists: Sequence[Rows], golden: Sequence[Rows]) -> Values:
    """Return recall at 2 and 5 and perfect recall at 5, ``[questions]`` each."""
    values = {}
    for k in (2, 5):
        values[f"recall@{k}"] = np.array([np.isin(gold, rows[:k]).mean() for rows, gold in zip(lists, golden, strict=True)])
    values["perfect_recall@5"] = (values["recall@5"] == 1).astype(np.float64)
    return values


@dataclass(frozen=True)
class Systems:
    """What is compared.

    Args:
        model: the encoder.
        knowledge: the file of triples.
    """

    model: str
    knowledge: str

    @cached_property
    def dense(self) -> FaissRetriever:
        return FaissRetriever(self.model)

    @cached_property
    def published(self) -> HippoRagRetriever:
        return HippoRagRetriever(self.model, self.knowledge)

    @cached_property
    def graphs(self) -> dict[str, LinkGraphRetriever]:
        """Link graphs of three kinds of seeds, each with and without links by shared knowledge."""
        seeds: dict[str, list[BaseRetriever]] = {
            "": [Bm25Retriever(), self.dense],
            ", seed dense": [self.dense],
            ", seeds dense and HippoRAG 2": [self.dense, self.published],
        }
        known = [TitleMentions(), SharedEntities(weight=0.1), SharedKnowledge(self.knowledge)]
        return {
            f"{_LINKS}{of}{more}": LinkGraphRetriever(retrievers, links=links)
            for of, retrievers in seeds.items()
            for more, links in (("", None), (", with shared knowledge", known))
        }

    @property
    def unfitted(self) -> dict[str, list[BaseRetriever]]:
        """Retrievers by system; several are fused by reciprocal ranks."""
        return {
            "BM25": [Bm25Retriever(k1=0.9, b=0.4)],
            _DENSE: [self.dense],
            "RRF of both": [Bm25Retriever(), self.dense],
            _PUBLISHED: [self.published],
            "no passage nodes": [HippoRagRetriever(self.model, self.knowledge, passage_weight=0.0)],
            "three stages": [HippoRagRetriever(self.model, self.knowledge, linking="entities")],
            "RRF of HippoRAG 2 and BM25": [self.published, Bm25Retriever()],
            "RRF of HippoRAG 2 and link graph": [self.published, self.graphs[_LINKS]],
            **{name: [graph] for name, graph in self.graphs.items()},
        }


class Study:
    """All measurements, over one index."""

    def __init__(self, data: Data, model: str) -> None:
        self.corpus = BeirLoader(str(data.root / "musique"))
        self.index = data.work / "hipporag-index"
        self.systems = Systems(model, str(data.root / "musique" / "openie.jsonl"))
        self.milliseconds: dict[str, float] = {}
        values: dict[str, Values] = {}
        for name, retrievers in self.systems.unfitted.items():
            values[name] = self._found(name, retrievers)
            if any(map(means_something, retrievers)):
                values[f"{name}{_OTHER}"] = self._found(f"{name}{_OTHER}", [shuffled(one) for one in retrievers])
        self.chosen: dict[str, list[str]] = {}
        for other in ("", _OTHER):
            graphs = {
                name: cast(LinkGraphRetriever, shuffled(one) if other else one) for name, one in self.systems.graphs.items()
            }
            fits = {name: Fitter(self.index, self.corpus, self.corpus).fit(graph) for name, graph in graphs.items()}
            values |= {f"{name}{other}{_FITTED}": dict(fit.out_of_fold.per_query) for name, fit in fits.items()}
            values[f"{_CHOSEN}{other}"], self.chosen[other] = self._chosen(graphs, fits[_LINKS].folds)
        families: list[str | None] = [query.family for query in self.corpus.queries()]
        self.figures = Figures(values, families, families)

    def _chosen(self, graphs: Mapping[str, LinkGraphRetriever], folds: Rows) -> tuple[Values, list[str]]:
        """Choose in each fold by cross-validation within the others; return the measures, and what each fold chose."""
        judged = list(zip(self.corpus.queries(), self.corpus.gold(), strict=True))
        values, chosen = {name: np.zeros(len(judged)) for name in measures([], [])}, []
        for fold in range(folds.max() + 1):
            learned = [pair for pair, own in zip(judged, folds, strict=True) if own != fold]
            queries, gold = zip(*learned, strict=True)
            fits: dict[str, TuningReport] = {
                name: tune(cast(LinkGraphRetriever, Blinded(graph)), self.index, queries, gold, CUTOFFS)
                for name, graph in graphs.items()
            }
            best = max(fits, key=lambda name: fits[name].out_of_fold.means()["recall@5"])
            graph = LinkGraphRetriever(**graphs[best]._arguments | {"weights": fits[best].weights})
            found = self._found(f"fold {fold}: {best}", [graph])
            for name, column in values.items():
                column[folds == fold] = found[name][folds == fold]
            chosen.append(best)
        return values, chosen

    def _found(self, name: str, retrievers: Sequence[BaseRetriever]) -> Values:
        """Index, and ask one question after another."""
        searcher = Searcher(list(retrievers), fusion=ReciprocalRankFusion() if len(retrievers) > 1 else None)
        searcher.index(self.corpus, self.index)
        items = open_generation(self.index).items
        queries = [query.text for query in self.corpus.queries()]
        searcher.search(queries[:1], _K)
        lists, seconds = [], []
        for query in queries:
            begin = time.perf_counter()
            (hits,) = searcher.search([query], _K)
            seconds.append(time.perf_counter() - begin)
            lists.append(items.rows_of([hit.item.item_id for hit in hits]))
        self.milliseconds[name] = 1000 * float(np.median(seconds))
        gold = [items.rows_of([key for key, grade in one.relevance.items() if grade > 0]) for one in self.corpus.gold()]
        print(name, {key: round(float(column.mean()), 3) for key, column in measures(lists, gold).items()}, flush=True)
        return measures(lists, gold)

    def rows(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Measures of systems, what their controls reach, and the cost of a query."""
        rows = {}
        for name in names:
            control = f"{name.removesuffix(_FITTED)}{_OTHER}{_FITTED}" if name.endswith(_FITTED) else f"{name}{_OTHER}"
            cells = [self.figures.cell(name, measure) for measure in measures([], [])]
            if control in self.figures.values:
                cells += [f"{self.figures.mean(control, 'recall@5'):.3f}", self.figures.gain(name, control, "recall@5")]
            else:
                cells += ["-", "-"]
            rows[name] = [*cells, f"{self.milliseconds[name]:.0f}" if name in self.milliseconds else "-"]
        return rows


def written(data: Data, model: str) -> str:
    """Return the page."""
    begin = time.perf_counter()
    study = Study(data, model)
    figures = study.figures
    unfitted = list(study.systems.unfitted)
    fitted = [*(f"{name}{_FITTED}" for name in study.systems.graphs), _CHOSEN]
    names = [words(name) for name in measures([], [])]
    heads = ["", *names, "shuffled, recall@5", "minus shuffled"]
    pairs = [
        (_PUBLISHED, _DENSE),
        *((_PUBLISHED, name) for name in ("no passage nodes", "three stages")),
        (_CHOSEN, f"{_LINKS}{_FITTED}"),
        (_CHOSEN, _PUBLISHED),
    ]
    gains = {f"{one} minus {other}": [figures.gain(one, other, name) for name in measures([], [])] for one, other in pairs}
    return page(
        (_HERE / "page.md").read_text("utf-8"),
        minutes=f"{(time.perf_counter() - begin) / 60:.0f}",
        model=Path(model).name,
        n_passages=f"{sum(1 for _ in study.corpus.stream()):,}",
        n_questions=len(study.corpus.queries()),
        unfitted=table([*heads, "ms a query"], study.rows(unfitted)),
        fitted=table(heads, {name: row[:-1] for name, row in study.rows(fitted).items()}),
        gains=table(["", *names], gains),
        chosen=_counted(study.chosen[""]),
    )


def _counted(chosen: Sequence[str]) -> str:
    return ", ".join(f'"{name}" in {count} of {len(chosen)} folds' for name, count in Counter(chosen).most_common())


if __name__ == "__main__":
    asked, encoder = arguments(__doc__, 2)
    warnings.simplefilter("ignore")
    (_HERE.parent / "HIPPORAG.md").write_text(written(Data.of(asked), encoder), "utf-8")
