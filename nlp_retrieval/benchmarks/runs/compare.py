"""Comparison of finished runs: judged again over the same queries, without an index and without searching."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.judging import Entrant, judged, masks_of
from nlp_retrieval.benchmarks.results import BenchmarkReport, BenchmarkRun, Counted, Measures
from nlp_retrieval.benchmarks.runs.comparable import corpora_record
from nlp_retrieval.benchmarks.runs.folder import SavedRun
from nlp_retrieval.benchmarks.runs.sources import Sources
from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, nearest
from nlp_retrieval.evaluation.by_group import LEVEL, RESAMPLES
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator

_CUTOFFS = (5, 10, 20)
_ROUNDING = 1e-9


def compare_runs(
    sources: Sources, k_values: Sequence[int] | None = None, baseline: str | None = None, seed: int = 0
) -> BenchmarkRun:
    """Judge runs over the same queries.

    Gold is looked up by item id. Costs are those measured during the runs; if these used different
    machines, they are left out.

    Args:
        sources: the runs.
        k_values: the cutoffs; by default those of the first folder, or 5, 10 and 20. Lists are used as they are: a cutoff
            beyond a list's end uses the whole list.
        baseline: by default the first run.
        seed: seed of tests and intervals.

    Raises:
        ConfigurationError: fewer than two runs, or an unknown baseline.
        QueryError: a cutoff that is not a positive integer.
    """
    lists = sources.judged
    names = list(lists.listings)
    if len(names) < 2:
        raise ConfigurationError(f"there is one run, {names[0]!r}; name another one to compare it with")
    chosen = _baseline(names, baseline)
    saved = sources.saved
    cutoffs = list(k_values or _CUTOFFS)
    reach = max(cutoffs)
    if saved:
        reach = min(one.report.k_values[-1] for one in saved)
        cutoffs = list(k_values or [k for k in saved[0].report.k_values if k <= reach] or [reach])
    if max(cutoffs) > reach:
        warnings.warn(
            f"the lists of a run end at {reach}: a cutoff of {max(cutoffs)} counts what lies beyond as not found",
            RetrievalWarning,
            stacklevel=2,
        )
    gold = [Gold(query_id=query_id, relevance=grades) for query_id, grades in lists.qrels().items()]
    evaluator = RetrievalEvaluator(gold, lists.item_ids, None, cutoffs)
    evaluations = {name: evaluator.evaluate_ragged(one.offsets, one.items) for name, one in lists.listings.items()}
    _warn_of_other_gold(sources, {name: one.means() for name, one in evaluations.items()})
    hardware = [one.report.manifest.get("hardware") for one in saved]
    alike = all(one == hardware[0] for one in hardware)
    entrants = {name: one if alike else replace(one, cost=None) for name, one in sources.entrants.items()}
    order = list(saved[0].report.query_counts) if saved else []
    chosen_on = [f"{one.folder}: {note}" for one in saved if (note := one.report.selection_note)]
    report = BenchmarkReport(
        configurations=[],
        baseline=chosen,
        k_values=evaluator.k_values,
        query_counts={},
        n_items=max((one.report.n_items for one in saved), default=len(lists.item_ids)),
        manifest={
            "compared": {str(one.folder): one.report.manifest for one in saved},
            "cautions": sources.cautions,
            "significance": {"resamples": RESAMPLES, "level": LEVEL, "seed": seed},
        }
        | corpora_record(sources.corpora)
        | describe_environment()
        | ({"hardware": hardware[0]} if saved and alike else {})
        | ({"halving": {"note": " ".join(chosen_on)}} if chosen_on else {}),
        counted=_counted(sources),
        prices=saved[0].report.prices if saved and all(one.report.prices == saved[0].report.prices for one in saved) else None,
    )
    report = judged(report, entrants, evaluations, lists.families, masks_of(lists.groups, order), seed)
    return BenchmarkRun(report, lists, {name: one.per_query for name, one in evaluations.items()})


def _counted(sources: Sources) -> Counted:
    """Return the queries behind the figures; the first folder's own record is included."""
    lists = sources.judged
    hopeless = [query_id for query_id, grades in lists.qrels().items() if not grades]
    before = next((one.report.counted for one in sources.saved if one.report.counted is not None), Counted(0))
    labels = [query_id for query_id, label in zip(lists.query_ids, lists.groups, strict=True) if label is None]
    ungrouped = labels if len(labels) < len(lists.query_ids) else []
    ids = {"without_relevant": hopeless, "unjudged": sources.unjudged, "ungrouped": ungrouped}
    return replace(
        before,
        queries=len(lists.query_ids),
        without_relevant=len(hopeless),
        unjudged=len(sources.unjudged) or before.unjudged,
        own_ids=sources.own.ignored or before.own_ids,
        own_gold=sources.own.gold or before.own_gold,
        same_ids=sources.own.alike or before.same_ids,
        ungrouped=len(ungrouped),
        first=before.first | {what: several[0] for what, several in ids.items() if several},
    )


def _warn_of_other_gold(sources: Sources, means: Mapping[str, Measures]) -> None:
    """Warn if gold names titles that several items share: a benchmark counts each title once, here each item counts."""
    off = [
        name
        for name, own in sources.measured.items()
        if any(abs(own[measure] - value) > _ROUNDING for measure, value in means[name].items() if measure in own)
    ]
    if off:
        warnings.warn(
            f"figures of {', '.join(off)} differ from those of their own report: gold there is titles that several items "
            "carry, and here every item counts",
            RetrievalWarning,
            stacklevel=3,
        )


def judged_again(saved: SavedRun, only: Sequence[str] = (), baseline: str | None = None) -> BenchmarkRun:
    """Judge a finished run against another baseline, or only some of its configurations.

    Args:
        saved: the run.
        only: configurations, in display order; all if empty.
        baseline: by default the run's own, or the first one shown if that is left out.

    Raises:
        ConfigurationError: an unknown configuration.
    """
    report = saved.report
    results = {result.name: result for result in report.configurations}
    names = list(dict.fromkeys(only)) or list(results)
    for name in names:
        if name not in results:
            raise ConfigurationError(f"{saved.folder} has no configuration {name!r}; {nearest(name, list(results))}")
    default = report.baseline if report.baseline in names else names[0]
    chosen = _baseline(names, baseline or default)
    entrants = {name: Entrant(results[name].config, results[name].fingerprint, results[name].cost) for name in names}
    seed = int((report.manifest.get("significance") or {}).get("seed", 0))
    lists = replace(saved.lists, listings={name: saved.lists.listings[name] for name in names})
    explained = [one for one in report.explained if one.configuration in names] if chosen == report.baseline else []
    again = judged(
        replace(report, baseline=chosen, explained=explained),
        entrants,
        saved.evaluations,
        lists.families,
        masks_of(lists.groups, list(report.query_counts)),
        seed,
    )
    retrievers = saved.retrievers if len(names) == len(results) else {}
    return BenchmarkRun(again, lists, {name: saved.evaluations[name].per_query for name in names}, retrievers)


def _baseline(names: list[str], wanted: str | None) -> str:
    if wanted is not None and wanted not in names:
        raise ConfigurationError(f"there is no run {wanted!r} to be the baseline; {nearest(wanted, names)}")
    return wanted or names[0]
