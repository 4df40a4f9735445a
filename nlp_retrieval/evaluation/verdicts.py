"""Comparisons in words.

A system is called better or worse only if the corrected test is significant: an interval without 0 or a large
effect is not enough.
"""

from __future__ import annotations

import math
from typing import Literal

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.comparison import Comparison

__all__ = ["Verdict", "limits", "sentence", "verdict"]

Verdict = Literal["better", "worse", "not distinguishable"]


def verdict(comparison: Comparison, alpha: float = 0.05) -> Verdict:
    """Return whether the system is better or worse than the baseline, if the corrected test is significant.

    Args:
        comparison: the comparison of the two.
        alpha: the chance, between 0 and 1, of calling any of the measure's differences real if none is.

    Raises:
        ConfigurationError: ``alpha`` is not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha={alpha}; take a level between 0 and 1, such as 0.05")
    if comparison.p_holm > alpha:
        return "not distinguishable"
    return "better" if comparison.difference > 0 else "worse"


def limits(comparison: Comparison, alpha: float = 0.05) -> str:
    """Return why the test could not have found any difference significant, however clear; an empty string if it could.

    Args:
        comparison: comparison of two systems.
        alpha: as in :func:`verdict`.
    """
    one, many = comparison, comparison.comparisons
    unit = "queries" if one.families == one.queries else "families of queries"
    least = 2.0 ** (1 - one.families)
    if one.differing == 0:
        return f"the two are equal in all {unit}"
    if least * many > alpha:
        needed = f"{many} comparisons need one of {alpha / many:.3g}" if many > 1 else f"{alpha:g} is needed"
        return f"{one.families} {unit} are too few: no p-value can be below {least:.3g}, and {needed}"
    if one.least_p > alpha:
        singular = {"queries": "query", "families of queries": "family of queries"}[unit]
        differing = f"{one.differing} {singular if one.differing == 1 else unit}"
        return f"the two differ in {differing} only, where p cannot be below {one.least_p:.3g}"
    if many / (one.resamples + 1) > alpha:
        return (
            f"{one.resamples:,} resamples are too few: no p-value can be below {1 / (one.resamples + 1):.3g}; "
            f"draw at least {math.ceil(many / alpha):,}"
        )
    return ""


def sentence(comparison: Comparison, alpha: float = 0.05) -> str:
    """Return the comparison in words, with its numbers; p is the corrected one.

    Args:
        comparison: comparison of two systems.
        alpha: as in :func:`verdict`.
    """
    one, found = comparison, verdict(comparison, alpha)
    if found == "not distinguishable":
        text = f"{one.system} and {one.baseline} are not distinguishable in {one.measure}"
    else:
        text = f"{one.system} is {found} than {one.baseline} in {one.measure}"
    low, high = one.interval
    text += f": {one.difference:+z.4f} ({one.level * 100:g}% interval {low:+z.4f} to {high:+z.4f}), p = {one.p_holm:.3g}"
    if one.comparisons > 1:
        text += f" corrected for {one.comparisons} comparisons"
    if one.effect_size is not None:
        text += f", d_z = {one.effect_size:z.2f}"
    text += f"; {one.wins} queries won, {one.ties} tied, {one.losses} lost"
    reason = limits(one, alpha) if found == "not distinguishable" else ""
    return f"{text} ({reason})." if reason else f"{text}."
