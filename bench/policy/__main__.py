"""Questions about climate policy: ``python -m bench.policy DATA MODEL`` writes ``bench/POLICY.md``.

DATA holds the folder ``policy`` with its collections, MODEL is a sentence-transformers model. Whatever is fitted is judged on
countries that had no part in the fit. Intervals are those of countries.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.policy import changes
from bench.policy.remembering import RememberingEncoder
from bench.sweeps import Figures
from bench.writing import page, table
from nlp_retrieval import (
    BeirLoader,
    Benchmarker,
    Bm25sRetriever,
    FaissRetriever,
    FeedbackRetriever,
    Gold,
    HopRetriever,
    LinkGraphRetriever,
    MultiSignalReranker,
    Query,
    Searcher,
    WordVectorEncoder,
    train_word_vectors,
    tune_signals,
)
from nlp_retrieval.rerankers.multi_signal.signals import SIGNALS
from nlp_retrieval.retrievers.hop.settings import RELATION_WEIGHTS

_FILTER = {"country": "country"}
_FOLDS = 5
_GRID = [
    dict(zip(("lexical_too", "vector_weight", "term_weight", "neighbour_weight"), values, strict=True))
    for values in product((True, False), (1.0, 2.0), (0.5, 1.0, 2.0), (0.15, 0.3))
]
_SINGLE = ("BM25", "dense")
_FEEDBACK, _FITTED = "feedback", "feedback, settings by folds"
_SUM, _SUM_FITTED = "signals, weights as described", "signals, weights by folds"


class ShuffledFeedback(FeedbackRetriever):
    """The control: each query of a call gets what is fed back for another."""

    name = "shuffled_feedback"

    def _asked(self, queries: list[str]) -> list:  # type: ignore[type-arg]
        asked = super()._asked(queries)
        half = len(asked) // 2  # neighbours are two wordings of one question
        return [replace(one, feedback=other.feedback) for one, other in zip(asked, asked[half:] + asked[:half], strict=True)]


@dataclass(frozen=True)
class Collection:
    """A collection, its questions with the country as their family, and the measure that it is judged by."""

    name: str
    title: str
    measure: str
    loader: BeirLoader
    index: Path
    queries: list[Query]
    gold: list[Gold]

    @classmethod
    def of(cls, data: Data, name: str, title: str, measure: str) -> Collection:
        loader = BeirLoader(str(data.root / "policy" / name))
        queries = [query.model_copy(update={"family": str(query.metadata["country"])}) for query in loader.queries()]
        return cls(name, title, measure, loader, data.work / f"policy-{name}", queries, loader.gold())

    def ran(self, searchers: Mapping[str, Searcher], *, filtered: bool = True, only: str | None = None) -> Figures:
        """Run searchers over the questions, each with its country as a filter, or over those of one variant without."""
        chosen = [number for number, query in enumerate(self.queries) if only in (None, query.metadata["variant"])]
        queries, gold = [self.queries[one] for one in chosen], {one.query_id: one for one in self.gold}
        run = Benchmarker(
            searchers,
            self.loader,
            queries,
            [gold[query.query_id] for query in queries],
            [3, 10],
            index_path=self.index,
            latency_queries=1,
            where_from=_FILTER if filtered else None,
        ).run()
        groups = [str(query.metadata["style"]) for query in queries]
        return Figures(run.per_query, [query.family for query in queries], list(groups), {})


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 2 or not (Path(arguments[0]) / "policy").is_dir():
        sys.stdout.write("usage: python -m bench.policy DATA MODEL   (DATA holds the folder policy)\n")
        return 2
    data, model = Data.of(arguments[0]), arguments[1]
    sets = [
        Collection.of(data, "cat", "Climate Action Tracker, newest edition", "recall@10"),
        Collection.of(data, "ndc", "national contributions, long answers", "recall@3"),
        Collection.of(data, "ndc_actions", "national contributions, single measures", "recall@3"),
    ]
    values: dict[str, object] = {}
    for one in sets:
        values |= {f"{one.name}_{key}": text for key, text in _measured(data, one, model).items()}
    printed = io.StringIO()
    with redirect_stdout(printed):
        changes.main(arguments)
    values["changes"] = _block(printed.getvalue())
    text = (Path(__file__).parent / "page.md").read_text("utf-8")
    Path("bench/POLICY.md").write_text(page(text, **values), "utf-8")
    return 0


def _measured(data: Data, one: Collection, model: str) -> dict[str, str]:
    words = data.work / f"policy-words-{one.name}"
    if not words.exists():
        train_word_vectors(one.loader.stream(), words)
    vectors = WordVectorEncoder(words)
    encoder = RememberingEncoder(model)
    lexical, dense = Bm25sRetriever(), FaissRetriever(encoder)

    def scored(**weights: float) -> Searcher:
        reranker = MultiSignalReranker("climate", word_vectors=vectors, min_similarity=0.0, **weights)  # type: ignore[arg-type]
        return Searcher([dense], reranker=reranker, depth="all")

    def fed(*, lexical_too: bool = True, **settings: float) -> FeedbackRetriever:
        seeds = [dense, lexical] if lexical_too else [dense]
        return FeedbackRetriever(seeds, subject="country", **settings)  # type: ignore[arg-type]

    nothing = {f"{signal}_weight": 0.0 for signal in SIGNALS}
    hop = HopRetriever(dense, changes="none")
    plain = {"BM25": Searcher([lexical]), "dense": Searcher([dense]), "RRF of both": Searcher([lexical, dense])}
    plain["link graph"] = Searcher([LinkGraphRetriever([lexical, dense])])
    feedback = {
        _FEEDBACK: Searcher([fed()]),
        "feedback without vectors": Searcher([fed(vector_weight=0.0)]),
        "feedback without terms": Searcher([fed(term_weight=0.0)]),
        "feedback without neighbours": Searcher([fed(neighbour_weight=0.0)]),
        "neighbours alone": Searcher([fed(vector_weight=0.0, term_weight=0.0)]),
        "names of countries compared": Searcher([FeedbackRetriever([dense, lexical])]),
        "feedback of another question": Searcher([ShuffledFeedback([dense, lexical], subject="country")]),
    }
    summed = {signal: scored(**(nothing | {f"{signal}_weight": 1.0})) for signal in SIGNALS} | {_SUM: scored()}
    hops = {"hop": Searcher([hop])} | {
        f"hop without {kind}": Searcher([HopRetriever(dense, changes="none", relation_weights={kind: 0.0})])
        for kind in RELATION_WEIGHTS
    }
    hops["hop over feedback"] = Searcher([HopRetriever(fed(), encoder, changes="none")])
    found = one.ran(plain | feedback | summed | hops)
    grid = one.ran({str(number): Searcher([fed(**settings)]) for number, settings in enumerate(_GRID)})
    opened = summed[_SUM]
    opened.index(one.loader, one.index)
    tuned = tune_signals(opened, one.queries, one.gold, (3, 10), "country", _FOLDS, where_from=_FILTER)
    fitted = {_FITTED: _folded(grid, one.measure), _SUM_FITTED: tuned.out_of_fold.per_query}
    found = replace(found, values=found.values | fitted)
    named = one.ran(plain | feedback, filtered=False, only="named")
    best = max(_SINGLE, key=lambda name: found.mean(name, one.measure))
    worth = {
        signal: ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*tuned.worth(signal, one.measure)), f"{tuned.weights[signal]:.1f}"]
        for signal in SIGNALS
    }
    return {
        "table": _table(found, one.measure, best),
        "named": _table(named, one.measure, max(_SINGLE, key=lambda name: named.mean(name, one.measure))),
        "worth": table(["signal", f"what {one.measure} loses without it", "fitted weight"], worth),
        "best": best,
    }


def _folded(grid: Figures, measure: str) -> dict[str, NDArray[np.float64]]:
    """Each country by the settings that are best on the countries of the other folds."""
    names = sorted({str(family) for family in grid.families})
    fold = np.array([names.index(str(family)) % _FOLDS for family in grid.families])
    chosen = {key: np.zeros(len(fold)) for key in next(iter(grid.values.values()))}
    for number in range(_FOLDS):
        here = fold == number
        best = max(grid.values, key=lambda name: float(grid.values[name][measure][~here].mean()))
        for key, column in chosen.items():
            column[here] = grid.values[best][key][here]
    return chosen


def _table(found: Figures, measure: str, best: str) -> str:
    heads = ["", measure, f"against {best}", "plain words", "paraphrases", "nDCG@10"]
    plain, paraphrased = found.group("plain"), found.group("paraphrase")
    rows = {
        name: [
            found.cell(name, measure),
            "" if name == best else found.gain(name, best, measure),
            f"{plain.mean(name, measure):.3f}",
            f"{paraphrased.mean(name, measure):.3f}",
            f"{found.mean(name, 'ndcg@10'):.3f}",
        ]
        for name in found.values
    }
    return table(heads, rows)


def _block(text: str) -> str:
    return "| |\n|---|\n" + "\n".join(f"| `{line}` |" for line in text.rstrip().splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
