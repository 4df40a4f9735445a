"""The part of the report that compares every two configurations."""

from __future__ import annotations

from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.evaluation.pairwise import Pairwise
from nlp_retrieval.evaluation.verdict import limits, verdict
from nlp_retrieval.reports.columns import family_label, signed, split_measure
from nlp_retrieval.reports.marks import ALPHA, NOTHING_TO_FIND, TRIANGLES, p_text, unit
from nlp_retrieval.reports.page.significance import CLASSES
from nlp_retrieval.reports.page.text import counted, escaped, isolated

_SAME = "\N{EM DASH}"


def pairwise_section(pairwise: Pairwise | None) -> str:
    """Return the section; empty where there are fewer than three configurations: two are compared above it.

    Args:
        pairwise: all pairs; None where there are none.
    """
    if pairwise is None or len(pairwise.systems) < 3:
        return ""
    both = pairwise.both_ways()
    family, cutoff = split_measure(pairwise.measure)
    title = escaped(f"{family_label(family)} @{cutoff}" if cutoff else family_label(family))
    heads = "".join(
        f'<th scope="col" title="{escaped(name)}"><span aria-hidden="true">{number}</span>'
        f'<span class="spoken">{isolated(name)}</span></th>'
        for number, name in enumerate(pairwise.systems, start=1)
    )
    rows = "\n".join(
        f'<tr><th scope="row" class="name"><span class="number" aria-hidden="true">{number}</span> {isolated(name)}</th>'
        + "".join(_cell(None if name == other else both[name, other]) for other in pairwise.systems)
        + "</tr>"
        for number, name in enumerate(pairwise.systems, start=1)
    )
    first = pairwise.comparisons[0]
    tested = f"paired randomisation test over {unit(first)}, Holm's correction for {counted(first.comparisons, 'comparison')}"
    return f"""<section aria-labelledby="pairs"><h2 id="pairs">Every two configurations: {title}</h2>
<div class="scroll" role="region" aria-labelledby="pairs" tabindex="0"><table class="pairs">
<thead><tr><th scope="col" class="name">Configuration</th>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="note">The difference of the row to the column, over all queries. {TRIANGLES.better} the row is better,
{TRIANGLES.worse} it is worse, at level {ALPHA:g}: {escaped(tested)}, one of every
two configurations. That is more than with the baseline alone, so a verdict may stand there and not here. What is not
marked may be chance.{_out_of_reach(pairwise)}</p></section>"""


def _cell(one: Comparison | None) -> str:
    if one is None:
        return f'<td class="chance"><span aria-hidden="true">{_SAME}</span></td>'
    found = verdict(one, ALPHA)
    mark = TRIANGLES.of(one)
    said = escaped(f"{found}, p {p_text(one.p_holm)}; {one.wins:,} won, {one.ties:,} tied, {one.losses:,} lost")
    glyph = f'<span class="mark" aria-hidden="true">{mark}</span>' if mark else ""
    shown = f'{signed(one.difference)}{glyph}<span class="spoken"> {said}</span>'
    return f'<td class="{CLASSES[found]}" title="{said}">{shown}</td>'


def _out_of_reach(pairwise: Pairwise) -> str:
    reasons = [limits(one, ALPHA) for one in pairwise.comparisons]
    if not all(reasons):
        return ""
    differing = [reason for reason, one in zip(reasons, pairwise.comparisons, strict=True) if one.differing]
    return f" Here {NOTHING_TO_FIND}: {escaped([*differing, *reasons][0])}."
