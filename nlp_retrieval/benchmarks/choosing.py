"""The best of several configurations, judged on queries that had no part in choosing it.

The best of many on some queries is better there than elsewhere, because chance also chose it. So each fold of the queries is
ranked by the configuration that is best on the other folds, and this is compared with the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.measures import measure_among
from nlp_retrieval.evaluation.resampling import bootstrap_interval
from nlp_retrieval.evaluation.tuning import best_row, fitted_by_fold, folds_of


@dataclass(frozen=True, eq=False)
class BestByFolds:
    """The best configuration of a run by a measure, and what choosing the best gains on other queries.

    ``chosen`` is the best on all folds but one, by fold; ``in_sample`` the mean of the best on the queries that chose it.
    ``out_of_fold`` has each query by what was chosen without its fold, ``of_baseline`` by the baseline; ``gain`` is the mean
    difference of the two, and its 95% interval over families.
    """

    measure: str
    best: str
    baseline: str
    chosen: list[str]
    in_sample: float
    out_of_fold: Scores
    of_baseline: Scores
    gain: tuple[float, float, float]

    def __str__(self) -> str:
        gain, low, high = self.gain
        same = self.chosen.count(self.best)
        return (
            f"best by {self.measure}: {self.best} ({self.in_sample:.3f} on the queries that chose it, chosen in {same} of "
            f"{len(self.chosen)} folds). Chosen without the queries that it ranks: {self.out_of_fold.mean():.3f}, "
            f"{gain:+.3f} [{low:+.3f}, {high:+.3f}] over {self.baseline}"
        )


def best_by_folds(run: BenchmarkRun, measure: str | None = None, *, folds: int = 5, seed: int = 0) -> BestByFolds:
    """Choose the best configuration of a run by cross-validation over families of queries.

    Args:
        run: finished, with at least two configurations, such as those of a grid.
        measure: that decides; by default the main measure of the run.
        folds: at least 2, and at most as many as there are families.
        seed: of the assignment of families to folds.

    Raises:
        ConfigurationError: the run does not have the measure.
        GoldError: there are too few families.

    Examples:
        >>> corpus = {"d1": "a red fox", "d2": "a blue whale", "d3": "a fox and a whale"}
        >>> systems = Benchmarker.grid(Searcher(["bm25"]), {"retrievers.bm25.b": [0.4, 1.0]})
        >>> queries, gold = {"q1": "red fox", "q2": "blue whale"}, {"q1": ["d1"], "q2": ["d2"]}
        >>> best = best_by_folds(compare_systems(systems, queries, gold, corpus, measures=["RR@10"]), folds=2)
        >>> best.best, best.gain[0]
        ('b=0.4', 0.0)
    """
    values, names = run.per_query, list(run.per_query)
    main = run.report.main_measure if measure is None else measure_among(measure, list(values[names[0]]), "best_by_folds")
    table = np.stack([values[name][main] for name in names])
    fold_of = folds_of(run.families, folds, seed)
    chosen = fitted_by_fold(partial(best_row, table), fold_of)
    out_of_fold = table[np.array(chosen)[fold_of], np.arange(table.shape[1])]
    of_baseline = values[run.report.baseline][main]
    difference = out_of_fold - of_baseline
    best = best_row(table, np.arange(table.shape[1]))
    return BestByFolds(
        measure=main,
        best=names[best],
        baseline=run.report.baseline,
        chosen=[names[number] for number in chosen],
        in_sample=float(table[best].mean()),
        out_of_fold=out_of_fold,
        of_baseline=of_baseline,
        gain=(float(difference.mean()), *bootstrap_interval(difference, run.families, bounds=(-1, 1))),
    )
