"""Successive halving over queries: a large grid is judged on few queries, and the worst are dropped before more follow.

After Jamieson and Talwalkar (AISTATS 2016), with queries as the resource. Each rung uses a larger sample that contains the
previous one; families of queries stay together. The baseline and runs of other tools, which cost nothing, stay. A
configuration that cannot be judged (it failed) stays, so that the run over all queries reports it. Survivors are chosen on
queries that they are then reported on, and the record says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nlp_retrieval.benchmarks.benchmarker import run_searchers
from nlp_retrieval.benchmarks.entrants import Entry, TrecRun
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.benchmarks.settings import BenchmarkSettings, Halving
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.models import Query
from nlp_retrieval.errors import IndexConflictError
from nlp_retrieval.evaluation.measures import OF_ANSWERS
from nlp_retrieval.evaluation.resampling import family_numbers

_LATENCY_QUERIES = 1


@dataclass(frozen=True)
class Rung:
    """One rung.

    Args:
        query_ids: ids of its queries, in the order of the benchmark.
        values: the measure of each configuration that was judged, in their order.
        left_out: those that were dropped.
        tied: those of them that scored the same as the last survivor and came after it.
    """

    query_ids: list[str]
    values: dict[str, float]
    left_out: list[str]
    tied: list[str]


@dataclass(frozen=True)
class Halved:
    """Result of halving, with its history.

    Args:
        halving: the settings.
        settings: settings of the benchmark of the survivors: on all queries, over the corpus that all rungs
            were searched on; another corpus is refused.
        rungs: in order.
    """

    halving: Halving
    settings: BenchmarkSettings
    rungs: list[Rung]

    @property
    def note(self) -> str:
        """Return a note for readers of the survivors' figures, in a sentence or two."""
        left_out = sum(len(rung.left_out) for rung in self.rungs)
        if not left_out:
            return "Halving left no configuration out."
        kept = sum(not isinstance(searcher, TrecRun) for searcher in self.settings.searchers.values())
        tied = sum(len(rung.tied) for rung in self.rungs)
        ties = f" {tied} that were left out did as well as the last that stayed in their round." if tied else ""
        asked = ", then ".join(f"{len(rung.query_ids):,}" for rung in self.rungs)
        return (
            f"{kept} of {kept + left_out} configurations were chosen by {self.halving.measure} on {asked} of these "
            f"{len(self.settings.queries):,} queries, so their figures are likely to be too good and a difference too sure; "
            f"confirm them on other queries.{ties}"
        )

    def record(self) -> Config:
        """All of it as plain values, for the manifest of the run."""
        return {
            "measure": self.halving.measure,
            "factor": self.halving.factor,
            "seed": self.settings.seed,
            "rungs": [
                {"queries": len(rung.query_ids), "measures": rung.values, "left_out": rung.left_out, "tied": rung.tied}
                for rung in self.rungs
            ],
            "survivors": list(self.settings.searchers),
            "note": self.note,
        }


def halve(settings: BenchmarkSettings, halving: Halving, on_progress: Callable[[str], None] | None = None) -> Halved:
    """Search with all configurations on few queries, drop the worst, and repeat with more queries.

    Each rung is a run of the benchmark on a seeded sample of its queries, over the same index and with the same stage
    folder. Apart from the baseline, the best 1/factor of the configurations stays, rounded up; ties go to the first. It ends
    when the next rung would use all queries, or when there is nothing left to choose.

    Args:
        settings: settings of the whole benchmark.
        halving: the settings.
        on_progress: called with progress messages for every rung.

    Raises:
        ConfigurationError: the measure is not among the benchmark's, or it has too few queries.
        Exception: the error of the first configuration, if none could be run.
        IndexConflictError: the corpus changed between two rungs.
    """
    halving = halving.checked(settings)
    measure = str(halving.measure)
    say = on_progress or (lambda _: None)
    baseline = settings.baseline_among(settings.searchers)
    remaining = _searched(settings)
    rungs: list[Rung] = []
    whole = settings
    for size in _sizes(settings, halving):
        if len(remaining.keys() - {baseline}) <= 1:
            break
        positions = sample_of(settings.queries, size, settings.seed)
        say(f"halving: {len(remaining):,} configurations on {len(positions):,} of {len(settings.queries):,} queries")
        report = run_searchers(_rung(whole, remaining, positions, measure), on_progress).report
        whole = replace(whole, corpus_fingerprint=report.manifest["corpus"]["fingerprint"])
        values = {result.name: result.measures[measure] for result in report.configurations}
        left_out = _worst(values, baseline, halving.factor)
        last = min((value for name, value in values.items() if name not in {baseline, *left_out}), default=math.nan)
        tied = [name for name in left_out if values[name] == last]
        remaining = {name: searcher for name, searcher in remaining.items() if name not in left_out}
        rungs.append(Rung([settings.queries[position].query_id for position in positions], values, left_out, tied))
        say(f"halving: {len(remaining):,} stay{_range_of(values, remaining, measure)}, {len(left_out):,} are left out")
    eliminated = {name for rung in rungs for name in rung.left_out}
    survivors = {name: searcher for name, searcher in settings.searchers.items() if name not in eliminated}
    halved = Halved(halving, replace(whole, searchers=survivors), rungs)
    say(f"halving: {halved.note}")
    return halved


def planned_rungs(settings: BenchmarkSettings, halving: Halving) -> list[tuple[int, int]]:
    """Return how many configurations are searched on how many queries, rung by rung; the last pair is the final run.

    Raises:
        ConfigurationError: as :func:`halve`.
    """
    halving = halving.checked(settings)
    searched = _searched(settings)
    protected = int(settings.baseline_among(settings.searchers) in searched)
    others = len(searched) - protected
    rungs = []
    for size in _sizes(settings, halving):
        if others <= 1:
            break
        rungs.append((others + protected, len(sample_of(settings.queries, size, settings.seed))))
        others = math.ceil(others / halving.factor)
    n_others = len(settings.searchers) - len(searched)
    return [*rungs, (others + protected + n_others, len(settings.queries))]


def sample_of(queries: Sequence[Query], size: int, seed: int) -> list[int]:
    """Return the positions of a sample of queries, ascending; with the same seed, a larger sample contains a smaller one.

    Args:
        queries: to draw from; a family is drawn as a whole.
        size: minimum number of queries drawn, with no more families than needed.
        seed: seed of the sample.
    """
    numbers = family_numbers([query.family for query in queries])
    sizes = np.bincount(numbers)
    order = np.random.default_rng(seed).permutation(len(sizes))
    count = int(np.searchsorted(np.cumsum(sizes[order]), size)) + 1
    positions: list[int] = np.flatnonzero(np.isin(numbers, order[:count])).tolist()
    return positions


def with_record(run: BenchmarkRun, halved: Halved) -> BenchmarkRun:
    """Return a run whose manifest records how its configurations were chosen.

    Raises:
        IndexConflictError: they were chosen on a different corpus from the one they were run on.
    """
    chosen_on, ran_on = halved.settings.corpus_fingerprint, run.report.manifest["corpus"]["fingerprint"]
    if chosen_on not in (None, ran_on):
        conflict = f"halving chose on another corpus ({chosen_on[:12]}) than what it left ran on ({ran_on[:12]})"
        raise IndexConflictError(f"{conflict}; halve again")
    return replace(run, report=replace(run.report, manifest=run.report.manifest | {"halving": halved.record()}))


def _searched(settings: BenchmarkSettings) -> dict[str, Entry]:
    return {name: searcher for name, searcher in settings.searchers.items() if not isinstance(searcher, TrecRun)}


def _sizes(settings: BenchmarkSettings, halving: Halving) -> list[int]:
    """The queries of each rung whose sample is not yet all of them."""
    sizes = []
    size, n_queries = halving.queries, len(settings.queries)
    while size < n_queries and len(sample_of(settings.queries, size, settings.seed)) < n_queries:
        sizes.append(size)
        size *= halving.factor
    return sizes


def _rung(
    settings: BenchmarkSettings, searchers: Mapping[str, Entry], positions: Sequence[int], measure: str
) -> BenchmarkSettings:
    """The same benchmark with fewer searchers and queries; its latency is not used.

    Questions are not answered if answers are not used for the decision.
    """
    return replace(
        settings,
        searchers=searchers,
        queries=[settings.queries[position] for position in positions],
        gold=[settings.gold[position] for position in positions],
        baseline=settings.baseline if settings.baseline in searchers else None,
        latency_queries=_LATENCY_QUERIES,
        answerer=settings.answerer if measure in OF_ANSWERS else None,
        main=measure,
    )


def _worst(values: Mapping[str, float], baseline: str, factor: int) -> list[str]:
    judged = [name for name in values if name != baseline]
    stay = sorted(judged, key=lambda name: -values[name])[: math.ceil(len(judged) / factor)]
    return [name for name in judged if name not in stay]


def _range_of(values: Mapping[str, float], remaining: Mapping[str, Entry], measure: str) -> str:
    stayed = [values[name] for name in remaining if name in values]
    return f" ({measure} from {min(stayed):.3f} to {max(stayed):.3f})" if stayed else ""
