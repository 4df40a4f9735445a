"""The part of the page that compares all pairs of configurations."""

from __future__ import annotations

from markupsafe import Markup

from nlp_retrieval.evaluation.comparison import Pairwise
from nlp_retrieval.reports.marks import shared_reason
from nlp_retrieval.reports.page.templating import rendered


def pairwise_section(pairwise: Pairwise | None) -> Markup:
    """Return the section; empty for fewer than three configurations: two are already compared above it.

    Args:
        pairwise: all pairs; None if there are none.
    """
    if pairwise is None or len(pairwise.systems) < 3:
        return Markup()
    return rendered(
        "pairwise.html",
        pairwise=pairwise,
        both=pairwise.both_ways(),
        first=pairwise.comparisons[0],
        hopeless=shared_reason(pairwise.comparisons),
    )
