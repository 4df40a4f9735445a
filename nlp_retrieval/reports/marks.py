"""Marks of figures that are better or worse than the baseline's, and the accompanying explanations.

A mark is the verdict of the corrected test alone; being the best value measured is not a verdict. The
terminal, the page and the tables in files all take their marks and explanations from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import Comparison, limits, verdict
from nlp_retrieval.evaluation.resampling import holm

ALPHA = 0.05
UNTESTED = "Differences are not tested for significance; any of them may be chance."
NOTHING_TO_FIND = "no difference could have been borne out"
NO_VERDICT = "Bold is the best value measured, significant or not."


@dataclass(frozen=True)
class Marks:
    """Symbols for the two verdicts; ``none`` is used for neither."""

    better: str
    worse: str
    none: str = ""

    def of(self, comparison: Comparison | None) -> str:
        """Return the mark of a figure; ``none`` for one that was not compared."""
        if comparison is None:
            return self.none
        return {"better": self.better, "worse": self.worse}.get(verdict(comparison, ALPHA), self.none)


TRIANGLES = Marks("\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}")
SIGNS = Marks("+", "-")
DAGGERS = Marks("\N{DAGGER}", "\N{DOUBLE DAGGER}")


def by_figure(report: BenchmarkReport) -> dict[tuple[str, str, str], Comparison]:
    """Return the comparisons with the baseline by group, measure and configuration.

    Args:
        report: a finished benchmark.
    """
    return {
        (group, one.measure, one.system): one
        for group, comparisons in report.comparisons.items()
        for one in comparisons
        if one.baseline == report.baseline
    }


def unit(comparison: Comparison) -> str:
    """Return the test's independent units, with their number: ``"1,000 queries"``, ``"812 families of queries"``."""
    return f"{comparison.families:,} {'queries' if comparison.families == comparison.queries else 'families of queries'}"


def legend(report: BenchmarkReport, marks: Marks) -> str:
    """Return the meaning of the marks and their test, or a note that nothing was tested.

    Args:
        report: a finished benchmark.
        marks: the marks shown.
    """
    compared = [one for comparisons in report.comparisons.values() for one in comparisons]
    if not compared:
        return UNTESTED if len(report.configurations) > 1 else ""
    first = compared[0]
    found = {verdict(one, ALPHA) for one in compared}
    better, worse = f"{marks.better} better", f"{marks.worse} worse"
    if found == {"not distinguishable"}:
        said = "No measure is distinguishable from the baseline's"
    else:
        said = ", ".join([better] * ("better" in found) + [worse] * ("worse" in found)) + " than the baseline"
    many = first.comparisons
    each = "each measure and group" if len(report.comparisons) > 1 else "each measure"
    corrected = f", Holm's correction for {many} comparisons in {each}" if many > 1 else ""
    return (
        f"{said} at level {ALPHA:g}: paired randomisation test over {unit(first)}{corrected}. What is not marked may be chance."
    )


def by_chance(report: BenchmarkReport) -> str:
    """Return the expected number of false marks if more is compared than is corrected together; otherwise ``""``.

    Holm's method limits the chance of any wrong mark in one measure and one group; a reader who looks at many of them
    sees more. The expected number of those with a wrong mark is at most the sum of these chances, however they depend on one
    another.

    Args:
        report: a finished benchmark.
    """
    compared = list(by_figure(report).items())
    together = {(group, measure) for group, measure, _ in dict(compared)}
    if len(together) < 2:
        return ""
    marked = [verdict(one, ALPHA) != "not distinguishable" for _, one in compared]
    stand = sum(p <= ALPHA and mark for p, mark in zip(holm([one.p for _, one in compared]), marked, strict=True))
    said = (
        f"In all there are {len(compared):,} comparisons with the baseline, in {len(together):,} pairs of a measure and a "
        f"group, each corrected for itself: if nothing differed, chance alone would still mark something in up to "
        f"{ALPHA * len(together):.3g} of these."
    )
    if not any(marked):
        return said
    if min(one.least_p for _, one in compared) * len(compared) > ALPHA:
        return (
            f"{said} {max(one.resamples for _, one in compared):,} resamples are too few to correct for all "
            f"{len(compared):,} together: draw at least {math.ceil(len(compared) / ALPHA):,} to see which of the "
            f"{sum(marked):,} marked differences stand."
        )
    return f"{said} Corrected for all {len(compared):,} together, {stand:,} of the {sum(marked):,} marked differences stand."


def out_of_reach(report: BenchmarkReport) -> dict[str, list[str]]:
    """Return why no difference in a group could have been significant, with the groups concerned.

    Args:
        report: a finished benchmark.
    """
    groups_by_reason: dict[str, list[str]] = {}
    for group, comparisons in report.comparisons.items():
        if reason := shared_reason(comparisons):
            groups_by_reason.setdefault(reason, []).append(group)
    return groups_by_reason


def shared_reason(comparisons: Sequence[Comparison]) -> str:
    """Return why none of some differences could have been significant; ``""`` if one could, or there is none.

    Args:
        comparisons: the comparisons shown together.
    """
    reasons = [limits(one, ALPHA) for one in comparisons]
    if not all(reasons):
        return ""
    differing = [reason for reason, one in zip(reasons, comparisons, strict=True) if one.differing]
    return next(iter([*differing, *reasons]), "")


def p_text(p: float) -> str:
    """Return a formatted p-value: three decimals, and a fourth if they would round it to the level."""
    return "<0.001" if p < 0.0005 else f"{p:.4f}" if abs(p - ALPHA) < 0.0005 else f"{p:.3f}"
