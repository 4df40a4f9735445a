"""The part of the report that shows by which links hits were reached."""

from __future__ import annotations

from html import escape

from nlp_retrieval.benchmarks.results import BenchmarkReport, ExplainedHit, ExplainedQuery
from nlp_retrieval.core.explanation import Explanation, Step, name_of
from nlp_retrieval.text.printable import printable


def explained_section(report: BenchmarkReport) -> str:
    """Return the section; empty where nothing was explained.

    Args:
        report: a finished benchmark.
    """
    if not report.explained:
        return ""
    found = "\n".join(_query(one, report.baseline) for one in report.explained)
    return f"""<section aria-labelledby="explained"><h2 id="explained">How hits were reached</h2>
<p class="note">The queries at which a configuration that follows links gains most over the baseline, with its first
{report.k_values[0]} hits. A chain begins where the search began; each further line is a link, with the sentence that
shows it.</p>
{found}</section>"""


def _query(one: ExplainedQuery, baseline: str) -> str:
    recall = f"{one.recall:.0%} of the gold found, {_bdi(baseline)}: {one.baseline_recall:.0%}"
    hits = "\n".join(map(_hit, one.hits))
    return (
        f'<details class="explained"><summary>{_bdi(one.query)} <small class="tag">{_bdi(one.configuration)}: {recall}</small>'
        f"</summary><ol>{hits}</ol></details>"
    )


def _hit(hit: ExplainedHit) -> str:
    gold = ' <small class="tag">gold</small>' if hit.relevant else ""
    return f"<li><strong>{_bdi(name_of(hit.item))}</strong>{gold}{''.join(map(_chain, hit.explanations))}</li>"


def _chain(explanation: Explanation) -> str:
    steps = "".join(map(_step, explanation.steps))
    return f'<ul class="chain"><li>{_bdi(name_of(explanation.first))}: {_text(explanation.origin)}</li>{steps}</ul>'


def _step(step: Step) -> str:
    told = f"→ {_bdi(name_of(step.target))} by {_text(step.kind.replace('_', ' '))}"
    if not step.sentence:
        return f"<li>{told}</li>"
    whose = "" if step.along else f", from the text of {_bdi(name_of(step.target))}"
    before, mention, after = step.sentence[: step.start], step.sentence[step.start : step.end], step.sentence[step.end :]
    return f"<li>{told}{whose}: <q>{_text(before)}<mark>{_text(mention)}</mark>{_text(after)}</q></li>"


def _text(text: str) -> str:
    return escape(printable(text))


def _bdi(text: str) -> str:
    return f"<bdi>{_text(text)}</bdi>"
