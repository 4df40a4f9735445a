"""Configurations that could not be run: what the tables and the page say of them.

They have no figures, and no other configuration's figures depend on them.
"""

from __future__ import annotations

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.page.text import escaped, isolated
from nlp_retrieval.text.printable import printable


def failure_notes(report: BenchmarkReport) -> list[str]:
    """Return a sentence for each configuration that failed, and one where the baseline is among them."""
    notes = [f"{printable(one.name)} failed: {printable(one.reason)}" for one in report.failed]
    if any(one.name == report.manifest.get("baseline") for one in report.failed):
        wanted = printable(str(report.manifest["baseline"]))
        notes.append(f"{wanted} was to be the baseline; the others are compared with {printable(report.baseline)} instead.")
    return notes


def failed_section(report: BenchmarkReport) -> str:
    """Return the part of the page that says what failed and why; empty where nothing did."""
    if not report.failed:
        return ""
    rows = "".join(
        f"<li>{isolated(one.name)}: <strong>failed</strong>: {escaped(one.reason)}"
        + (f"<details><summary>Where</summary><pre>{escaped(one.traceback)}</pre></details>" if one.traceback else "")
        + "</li>"
        for one in report.failed
    )
    instead = failure_notes(report)[len(report.failed) :]
    return (
        f'<section aria-labelledby="failed"><h2 id="failed">Failed</h2>\n<ul class="cautions">{rows}</ul>'
        + "".join(f'<p class="note">{escaped(note)}</p>' for note in instead)
        + "</section>"
    )
