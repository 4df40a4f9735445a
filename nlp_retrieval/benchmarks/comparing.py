"""Comparison of finished runs, judged again over the same queries without searching; and the choice of the best by folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.results import BenchmarkReport, BenchmarkRun, Counted, judged, masks_of
from nlp_retrieval.benchmarks.runs import SavedRun, Sources, corpora_record, depth_of
from nlp_retrieval.core.candidates import Scores, offsets_of
from nlp_retrieval.core.models import SYNTHETIC
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, nearest
from nlp_retrieval.evaluation.comparison import MOST_RESAMPLES
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.measures import (
    OF_ANSWERS,
    Measure,
    check_relevant_from,
    cutoffs_of,
    measure_among,
    measures_at,
    read_measures,
    usual_main,
)
from nlp_retrieval.evaluation.resampling import bootstrap_interval
from nlp_retrieval.evaluation.tuning import best_row, fitted_by_fold, folds_of


def compare_runs(
    sources: Sources,
    baseline: str | None = None,
    *,
    measures: Sequence[str] | None = None,
    main: str | None = None,
    relevant_from: int | None = None,
) -> BenchmarkRun:
    r"""Judge runs over the same queries.

    Gold is looked up by item id. Costs are left out if the runs used different machines.

    Args:
        sources: the runs.
        baseline: by default the first run, or the baseline of the only folder.
        measures: names of measures; by default those of the first folder, or seven at each of 5, 10 and 20.
        main: the measure to sort, test pairs and draw by; by default that of the first folder, or the first of ``measures``.
        relevant_from: the lowest grade of a relevant document; by default that of the first folder, or 1.

    Raises:
        ConfigurationError: fewer than two runs, or an unknown baseline.

    Examples:
        >>> from pathlib import Path
        >>> from nlp_retrieval.benchmarks import read_sources
        >>> _ = Path("other.trec").write_text("q1 Q0 whale 1 2.0 other\nq2 Q0 fox 1 2.0 other\n")
        >>> run = compare_runs(read_sources(["bm25.trec", "other.trec"], "qrels.txt"), measures=["recall@1"])
        >>> [(result.name, result.measures["recall@1"]) for result in run.report.configurations]
        [('bm25', 0.5), ('other', 1.0)]
    """
    lists = sources.lists
    names = list(lists.listings)
    if len(names) < 2:
        raise ConfigurationError(f"there is one run, {names[0]!r}; name another one to compare it with")
    saved = sources.saved
    own = _whole(sources)
    recorded = own.manifest if own is not None else {}
    if baseline is None:
        baseline = own.baseline if own is not None and own.baseline in names else names[0]
    if baseline not in names:
        raise ConfigurationError(f"there is no run {baseline!r} to be the baseline; {nearest(baseline, names)}")
    wanted = _measures_of(saved, measures)
    lowest = sources.relevant_from if relevant_from is None else check_relevant_from(relevant_from)
    left_out = own.counted.own_ids if own is not None and own.counted is not None else 0
    same = measures is None and lowest == sources.relevant_from and bool(sources.own_ids) == bool(left_out)
    if own is not None and same:
        wanted = [Measure.parse(name) for name in own.configurations[0].measures]  # also those of answers
        evaluations, cautions = {name: saved[0].evaluations[name] for name in names}, list[str]()
    else:
        evaluations, cautions = evaluated(sources, wanted, lowest)
    chosen_measures = measures is not None or (bool(saved) and bool(saved[0].report.manifest.get("measures")))
    hardware = [run.report.manifest.get("hardware") for run in saved]
    alike = all(machine == hardware[0] for machine in hardware)
    entrants = {name: entrant if alike else replace(entrant, cost=None) for name, entrant in sources.entrants.items()}
    order = list(saved[0].report.query_counts) if saved else []
    counts = [run.report.manifest.get("synthetic") for run in saved]
    by_id = sum(query_id.startswith(SYNTHETIC) for query_id in lists.query_ids)
    synthetic = max([by_id, *(count for count in counts if isinstance(count, int))])
    report = BenchmarkReport(
        configurations=[],
        baseline=baseline,
        k_values=cutoffs_of(wanted, min(sources.depths.values())),
        query_counts={},
        n_items=max((run.report.n_items for run in saved), default=len(lists.item_ids)),
        manifest={
            "compared": {str(run.folder): run.report.manifest for run in saved},
            "cautions": [*sources.cautions, *cautions],
            "depth": min(sources.depths.values()),
            "ignore_identical_ids": sources.own_ids > 0,
            "main": _main_of(saved, list(map(str, wanted)), main, chosen=measures is not None),
            "relevant_from": lowest,
            "measures": None if not chosen_measures else list(map(str, wanted)),
        }
        | corpora_record(sources.corpora)
        | describe_environment()
        | ({"hardware": hardware[0]} if saved and alike else {})
        | ({"synthetic": synthetic} if synthetic else {})
        | {key: recorded[key] for key in ("grid", "latency", "resamples") if key in recorded},
        failed=own.failed if own is not None else [],
        counted=_counted(sources, lowest),
        prices=saved[0].report.prices if saved and all(run.report.prices == saved[0].report.prices for run in saved) else None,
    )
    seed = int((recorded.get("significance") or {}).get("seed", 0))
    asked = recorded.get("resamples")
    resamples = asked if isinstance(asked, int) and 1 <= asked <= MOST_RESAMPLES else None
    report = judged(report, entrants, evaluations, lists.families, masks_of(lists.groups, order), seed, resamples)
    return BenchmarkRun(report, lists, {name: evaluation.per_query for name, evaluation in evaluations.items()})


def _whole(sources: Sources) -> BenchmarkReport | None:
    """Return the report of the folder that all runs are of; None if they are not all of one folder."""
    results = sources.saved[0].report.configurations if len(sources.saved) == 1 else []
    theirs = {(result.name, result.fingerprint) for result in results}
    ours = {(name, one.fingerprint) for name, one in sources.entrants.items()}
    return sources.saved[0].report if ours <= theirs else None


def evaluated(sources: Sources, measures: Sequence[Measure], relevant_from: int) -> tuple[dict[str, Evaluation], list[str]]:
    """Return the measures of every run, and what to say about their lists, in sentences."""
    lists, shortest = sources.lists, min(sources.depths.values())
    evaluator = RetrievalEvaluator(
        lists.gold, lists.item_ids, lists.titles, gold_missing="count", measures=measures, relevant_from=relevant_from
    )
    all_hits = {str(measure) for measure in measures if measure.counts_all}
    ends = ", ".join(name for name, depth in sources.depths.items() if depth == shortest)
    cautions = []
    if all_hits and max(sources.depths.values()) > shortest:
        cautions.append(f"{', '.join(sorted(all_hits))}: over the first {shortest} hits, where the lists of {ends} end.")
    beyond = [str(measure) for measure in measures if (measure.cutoff or 0) > shortest]
    if beyond and any(depth_of(run.report) == shortest for run in sources.saved):
        cautions.append(f"{', '.join(beyond)}: what lies beyond {shortest}, where the lists of {ends} end, is not found.")
    evaluations = {}
    for name, listing in lists.listings.items():
        whole = evaluator.evaluate_ragged(listing.offsets, listing.items)
        owner = np.repeat(np.arange(len(lists.query_ids)), np.diff(listing.offsets))
        near = np.arange(len(owner)) - listing.offsets[owner] < shortest
        offsets = offsets_of(np.bincount(owner[near], minlength=len(lists.query_ids)))
        cut = whole if near.all() or not all_hits else evaluator.evaluate_ragged(offsets, listing.items[near])
        per_query = {key: (cut if key in all_hits else whole).per_query[key] for key in whole.per_query}
        evaluations[name] = replace(whole, per_query=per_query)
        if sources.corpora[name] is None and not (lists.grades(name) >= relevant_from).any():
            cautions.append(f"No result of {name} is relevant to its query: is it of this collection?")
    for caution in cautions:
        warnings.warn(caution, RetrievalWarning, stacklevel=3)
    return evaluations, cautions


def _measures_of(saved: Sequence[SavedRun], measures: Sequence[str] | None) -> list[Measure]:
    """Return the measures that were asked for; by default those of the first folder that all lists are long enough for."""
    if measures is not None:
        return read_measures(measures)
    if not saved:
        return measures_at([5, 10, 20])
    reach = min(depth_of(run.report) for run in saved)
    first = [Measure.parse(name) for name in saved[0].report.configurations[0].measures]
    own = [measure for measure in first if measure.family not in OF_ANSWERS and (measure.cutoff or reach) <= reach]
    return own or measures_at([reach])


def _main_of(saved: Sequence[SavedRun], measured: list[str], main: str | None, *, chosen: bool) -> str:
    """Return the main measure: the chosen one, that of the first folder, or the first measure that was chosen."""
    if main is not None:
        return measure_among(main, measured, "main")
    if chosen:
        return measured[0]
    if saved and saved[0].report.main_measure in measured:
        return saved[0].report.main_measure
    return usual_main(measured, cutoffs_of(map(Measure.parse, measured)))


def _counted(sources: Sources, relevant_from: int) -> Counted:
    """Return the queries behind the figures; the first folder's own record is included."""
    lists = sources.lists
    hopeless = [gold.query_id for gold in lists.gold if max(gold.relevance.values(), default=0) < relevant_from]
    before = next((run.report.counted for run in sources.saved if run.report.counted is not None), Counted(0))
    ids = {"without_relevant": hopeless, "unjudged": sources.unjudged}
    return replace(
        before,
        queries=len(lists.query_ids),
        without_relevant=len(hopeless),
        unjudged=len(sources.unjudged) or before.unjudged,
        own_ids=sources.own_ids or before.own_ids,
        first=before.first | {what: several[0] for what, several in ids.items() if several},
    )


# The best of several configurations, judged on queries that had no part in choosing it: the best of many on some queries is
# better there than elsewhere, because chance also chose it. So each fold of the queries is ranked by the configuration that is
# best on the other folds, and this is compared with the baseline.


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
            f"{gain:+z.3f} [{low:+z.3f}, {high:+z.3f}] over {self.baseline}"
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
