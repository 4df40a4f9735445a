"""The audit of a report's citations as a table for a terminal of any width.

Invisible characters in a claim are named, and nothing in it reaches the terminal as a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from nlp_retrieval.systems.evidence.citations.citation import CitedReport
from nlp_retrieval.systems.evidence.citations.rows import AuditRow, AuditStatus
from nlp_retrieval.systems.evidence.citations.summary import summary_of
from nlp_retrieval.systems.evidence.report.words import STATUSES, said
from nlp_retrieval.text import visible

__all__ = ["AuditTable", "audit_table"]

_STYLES: dict[AuditStatus, str] = {"PASS": "green", "REVIEW": "yellow", "SOURCE_NOT_INDEXED": "dim"}
_NARROW = 80
_WIDE = 110
"""Fewest columns with room for the source; a shorter piece of an address would be useless."""

_LONGEST = 400


@dataclass(frozen=True)
class AuditTable:
    """The rows of an audit for a terminal, printed with ``rich``; claims and addresses are cut to the width."""

    rows: Sequence[AuditRow]
    report: CitedReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        dim = "dim" if console.is_terminal else ""
        if self.rows:
            yield self._table(options)
        yield Text(said(summary_of(self.rows)), style="bold" if console.is_terminal else "")
        report = self.report
        found: dict[str, Sequence[object]] = {
            "facts without a citation": report.uncited,
            "marks without a reference": report.missing,
            "references never cited": report.unused,
            "references with the number of an earlier one": report.duplicates,
        }
        told = [f"{what}: {len(ones):,}" for what, ones in found.items() if ones]
        if told:
            yield Text("; ".join(told).capitalize() + ".", style=dim)

    def _table(self, options: ConsoleOptions) -> Table:
        narrow, wide = options.max_width < _NARROW, options.max_width >= _WIDE
        table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, expand=True)
        table.add_column("line", justify="right", no_wrap=True)
        table.add_column("status", no_wrap=True)
        table.add_column("claim", no_wrap=True, overflow="crop" if options.ascii_only else "ellipsis", ratio=3)
        if wide:
            table.add_column("source", no_wrap=True, overflow="crop" if options.ascii_only else "ellipsis", ratio=2)
        if not narrow:
            table.add_column("support", justify="right", no_wrap=True)
        table.add_column("reason", no_wrap=True)
        for row in self.rows:
            score = f"{row.support_score:.2f}" if row.status != "SOURCE_NOT_INDEXED" else ""
            address = row.citation.url.removeprefix("https://").removeprefix("http://") or row.citation.title
            more = ([_text(address)] if wide else []) + ([] if narrow else [Text(score)])
            status = Text(STATUSES[row.status], style=_STYLES[row.status])
            table.add_row(str(row.citation.line), status, _text(row.citation.sentence), *more, Text(row.reason))
        return table


def _text(text: str) -> Text:
    return Text(visible(text[:_LONGEST]))


def audit_table(rows: Sequence[AuditRow], report: CitedReport) -> AuditTable:
    """Return an audit that ``rich`` prints, fitted to the width of the console.

    Args:
        rows: one for each citation.
        report: that was audited.
    """
    return AuditTable(rows, report)
