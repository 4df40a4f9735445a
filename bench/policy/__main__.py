"""Questions about climate policy: ``python -m bench.policy DATA MODEL`` writes ``bench/POLICY.md``.

DATA holds the folders ``policy`` and ``wiki``; MODEL is a sentence-transformers model. Whatever is fitted is judged on
countries that had no part in the fit. Intervals are those of countries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data, arguments
from bench.policy import changes, silence
from bench.policy.searchers import FEEDBACK, Parts
from bench.policy.values import judged_values
from bench.sweeps import Figures
from bench.writing import page, table
from nlp_retrieval import BeirLoader, Benchmarker, Gold, Query, Searcher, tune_signals
from nlp_retrieval.rerankers import SignalTuningReport
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS

_FILTER = {"country": "country"}
_FOLDS = 5
_SINGLE = ("BM25", "dense")
_FITTED, _SUM_FITTED = "feedback, settings by folds", "signals, weights by folds"


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
        return Figures(run.per_query, [query.family for query in queries], list(groups))


@dataclass(frozen=True)
class Measured:
    """What was measured of a collection: with the country as a filter, and where it is named and there is no filter."""

    collection: Collection
    found: Figures
    named: Figures
    tuned: SignalTuningReport

    @classmethod
    def of(cls, data: Data, one: Collection, model: str) -> Measured:
        """Measure a collection; with the rows of what is fitted by folds."""
        parts = Parts.of(one.loader, data.work / f"policy-words-{one.name}", model)
        found = one.ran(parts.single() | parts.feedback() | parts.signals() | parts.hops())
        named = one.ran(parts.single() | parts.feedback(), filtered=False, only="named")
        opened = parts.scored()
        opened.index(one.loader, one.index)
        tuned = tune_signals(opened, one.queries, one.gold, (3, 10), "country", _FOLDS, where_from=_FILTER)
        fitted = {_FITTED: _folded(one.ran(parts.grid()), one.measure), _SUM_FITTED: tuned.out_of_fold.per_query}
        return cls(one, replace(found, values=found.values | fitted), named, tuned)

    @property
    def best(self) -> str:
        """The better of the single retrievers."""
        return _best(self.found, self.collection.measure)

    def tables(self) -> dict[str, str]:
        """As the page has them."""
        measure, tuned = self.collection.measure, self.tuned
        worth = {
            signal: ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*tuned.worth(signal, measure)), f"{tuned.weights[signal]:.1f}"]
            for signal in SIGNALS
        }
        return {
            f"{self.collection.name}_table": _table(self.found, measure),
            f"{self.collection.name}_named": _table(self.named, measure),
            f"{self.collection.name}_worth": table(["signal", f"what {measure} loses without it", "fitted weight"], worth),
        }


def _goals(done: Mapping[str, Measured], changed: float) -> str:
    """Each goal, what was measured, and whether that reaches it."""
    cat = done["cat"]
    reached = [
        (cat.collection.title, 0.70, cat.found.mean(_FITTED, "recall@10"), _FITTED),
        (f"{cat.collection.title}, paraphrases", 0.58, cat.found.group("paraphrase").mean(_FITTED, "recall@10"), _FITTED),
        (f"{cat.collection.title}, country named, no filter", 0.62, cat.named.mean(FEEDBACK, "recall@10"), FEEDBACK),
        ("What changed between editions", 0.70, changed, changes.OWN),
    ]
    rows = {
        title: [f"recall@10 of {least:.2f}", f"{value:.3f}", by, "reached" if value >= least else "**missed**"]
        for title, least, value, by in reached
    }
    for one in (done["ndc"], done["ndc_actions"]):
        measure = one.collection.measure
        for title, by in ((one.collection.title, _FITTED), (f"{one.collection.title}, by the defaults", FEEDBACK)):
            sign = one.found.difference(by, one.best, measure)[3]
            rows[title] = [
                f"{measure} above {one.best}, interval without 0",
                one.found.gain(by, one.best, measure, bold=False),
                by,
                "reached" if sign > 0 else "**missed**",
            ]
    return table(["", "goal", "measured", "by", ""], rows)


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


def _best(found: Figures, measure: str) -> str:
    return max(_SINGLE, key=lambda name: found.mean(name, measure))


def _table(found: Figures, measure: str) -> str:
    best = _best(found, measure)
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


def main(data: Data, model: str) -> None:
    """Measure, and write the page."""
    sets = [
        Collection.of(data, "cat", "Climate Action Tracker, newest edition", "recall@10"),
        Collection.of(data, "ndc", "National contributions, long answers", "recall@3"),
        Collection.of(data, "ndc_actions", "National contributions, single measures", "recall@3"),
    ]
    done = {one.name: Measured.of(data, one, model) for one in sets}
    changed, recall = changes.measured(data, model)
    tables = {name: text for one in done.values() for name, text in one.tables().items()}
    tables |= {"goals": _goals(done, recall[changes.OWN]), "changes": changed}
    tables |= {"silence": silence.written(silence.measured(data)), "values": judged_values(data)}
    text = page((Path(__file__).parent / "page.md").read_text("utf-8"), **tables)
    (Path(__file__).parents[1] / "POLICY.md").write_text(text, "utf-8")


if __name__ == "__main__":
    asked, of_model = arguments(__doc__, 2)
    main(Data.of(asked), of_model)
