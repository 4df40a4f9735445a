"""The verdict of a gate for every measure and group: no worse, worse, fell, or cannot tell.

A measure is *no worse* if the lower end of the one-sided 95% interval of its mean difference, over families of queries, is
above minus the margin. It is *worse* if it fell by the paired randomisation test, corrected for all measures and groups
together (Holm), and is not shown to be within the margin. Otherwise there are too few queries to tell: it *fell* if the mean is
below that of the baseline by more than the margin.

One baseline judges many commits of a branch, so each is tested at the level divided by their number: by Bonferroni's inequality
all together keep the level, however they depend on one another. The same results give the same verdict: the seed is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.evaluation.comparison import MOST_RESAMPLES, RESAMPLES
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.resampling import bootstrap_interval, family_numbers, family_sums, holm, refined_test
from nlp_retrieval.text.printing import visible

Verdict = Literal["no worse", "worse", "fell", "cannot tell"]
_WORST_FIRST: tuple[Verdict, ...] = ("worse", "fell", "cannot tell", "no worse")

_SURE, _POWER = 0.95, 0.8
_UNSEEN = -math.log(1 - _SURE)
"""Families of which none was seen, although they may be one in as many as there are, with 95%: the rule of three."""
_MOST_LOOKS, _QUERIES_OF_LOOK = 100, 10


@dataclass(frozen=True)
class MeasureVerdict:
    """The verdict on one measure in one group (empty for all), with its means, and the corrected one-sided p of a loss."""

    measure: str
    group: str
    queries: int
    before: float
    now: float
    low: float
    margin: float
    p: float
    more: int
    verdict: Verdict

    @property
    def label(self) -> str:
        """Return the measure, and the group if it is one: ``"nDCG@10, hops=3"``."""
        return ", ".join(filter(None, [Measure.parse(self.measure).label, visible(self.group)]))

    @property
    def difference(self) -> float:
        """Return the mean of the searcher minus that of the baseline."""
        return self.now - self.before


def looks_of(queries: int) -> int:
    """Return how many changes one baseline judges, unless the settings say it: one for ten queries, 1 to 100."""
    return min(_MOST_LOOKS, max(1, queries // _QUERIES_OF_LOOK))


def judge(
    before: Mapping[str, Scores],
    now: Mapping[str, Scores],
    margins: Mapping[str, float],
    families: Sequence[str | None],
    groups: Mapping[str, Mask],
    *,
    level: float,
    looks: int,
) -> list[MeasureVerdict]:
    """Return the verdict on each measure in each group; ``level`` is the chance of a false alarm over all ``looks``."""
    rows = []
    for measure, margin in margins.items():
        for group, mask in groups.items():
            own = [family for family, inside in zip(families, mask.tolist(), strict=True) if inside]
            old, differences = before[measure][mask], now[measure][mask] - before[measure][mask]
            low, p = 0.0, 1.0  # the same figures for every query: nothing was lost, whatever other queries would say
            if differences.any():
                low, _ = bootstrap_interval(differences, own, RESAMPLES, 2 * _SURE - 1, 0, bounds=(-1.0, 1.0))
                most = min(MOST_RESAMPLES, max(RESAMPLES, 400 * looks))
                two_sided = float(refined_test(differences[None], own, RESAMPLES, most, 0).p[0])
                p = two_sided / 2 if differences.sum() < 0 else 1 - two_sided / 2
            more = max(1, _needed(margin, _spread(differences, own)) - len(old))
            means = float(old.mean()), float(now[measure][mask].mean())
            rows.append(MeasureVerdict(measure, group, len(old), *means, low, margin, p, more, "no worse"))
    return [_decided(replace(each, p=p), level / looks) for each, p in zip(rows, holm([each.p for each in rows]), strict=True)]


def _decided(each: MeasureVerdict, level: float) -> MeasureVerdict:
    if each.low > -each.margin:
        return replace(each, more=0)
    if each.p <= level:
        return replace(each, more=0, verdict="worse")
    return replace(each, verdict="fell" if each.difference < -each.margin else "cannot tell")


def overall(verdicts: Sequence[MeasureVerdict]) -> Verdict:
    """Return the verdict on all together: the worst."""
    return min((each.verdict for each in verdicts), key=_WORST_FIRST.index)


def queries_needed(before: Scores, margin: float) -> int:
    """Return about how many queries can show that nothing beyond a margin was lost, by the baseline's own variance.

    Two versions of one searcher are taken to agree on most of it: the variance of a difference is half of that of the measure.
    """
    return _needed(margin, float(before.std()) * math.sqrt(0.5))


def _spread(differences: Scores, families: Sequence[str | None]) -> float:
    """Return the standard deviation of a mean over families, times the root of the number of queries."""
    numbers = family_numbers(families)
    sums = family_sums(differences[None], numbers)[0] - np.bincount(numbers) * differences.mean()
    return math.sqrt(float((sums**2).sum()) / len(differences))


def _needed(margin: float, spread: float) -> int:
    """Return the number of queries with which an interval excludes a loss of the margin, with a chance of 80%."""
    z = (NormalDist().inv_cdf(_SURE) + NormalDist().inv_cdf(_POWER)) * spread
    root = (z + math.sqrt(z * z + 4 * margin * _UNSEEN)) / (2 * margin)  # of margin = z / sqrt(n) + unseen / n
    return math.ceil(root * root)
