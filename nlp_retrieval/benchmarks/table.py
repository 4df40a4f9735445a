"""The one table of quality and cost: which columns it has, what counts as best, and how a terminal shows it.

The page takes its columns from here too, so that a figure reads the same wherever it stands. No difference is called
real anywhere: "best" is the best value measured, and every value that prints the same shares it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult, Cost

COST = "cost"
ABSENT = "\N{EN DASH}"
UNTESTED = "Differences are not tested for significance; any of them may be chance."

_MEASURES = {
    "perfect_recall": "Perfect recall",
    "recall": "Recall",
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "precision": "Precision",
    "f1": "F1",
}
_SHORT = {"perfect_recall": "perfect", "recall": "recall", "ndcg": "nDCG"}
_WIDEST_NAME = 28
_NARROWEST_NAME = 12


@dataclass(frozen=True)
class Column:
    """One column of figures.

    Args:
        key: the name of a measure (``"recall@5"``) or the field of a cost.
        family: what is shown and hidden together: a measure without its cutoff, or ``"cost"``.
        label: the heading under that of its family.
        lower_is_better: true of times and sizes.
        cost: how to read it from a cost; None for a measure.
    """

    key: str
    family: str
    label: str
    lower_is_better: bool = False
    cost: Callable[[Cost], float] | None = None

    def value(self, result: ConfigurationResult, group: str = "") -> float | None:
        """Return the figure for a group of queries, or None where it was not measured. Cost is that of all queries."""
        if self.cost is not None:
            value: float | None = self.cost(result.cost)
        else:
            measures = result.groups.get(group, {}) if group else result.measures
            value = measures.get(self.key)
        return value if value is not None and math.isfinite(value) else None

    def text(self, value: float | None) -> str:
        """Return the figure as it is printed: three decimals for measures, about three digits for costs."""
        if value is None:
            return ABSENT
        return f"{value:.3f}" if self.cost is None else amount(value)

    def difference(self, value: float | None, baseline: float | None) -> str:
        """Return how far a figure is from the baseline's: the difference of measures, the ratio of costs."""
        if value is None or baseline is None:
            return ""
        if self.cost is not None:
            return f"\N{MULTIPLICATION SIGN}{amount(value / baseline)}" if baseline > 0 else ""
        moved = f"{value - baseline:+.3f}".replace("-", "\N{MINUS SIGN}")
        return "±0.000" if moved[1:] == "0.000" else moved

    def best(self, values: Sequence[float | None]) -> set[int]:
        """Return the places of the best value, with all that print the same; none where all of them do."""
        measured = [value for value in values if value is not None]
        printed = {self.text(value) for value in measured}
        if len(printed) < 2:
            return set()
        top = self.text(min(measured) if self.lower_is_better else max(measured))
        return {place for place, value in enumerate(values) if self.text(value) == top}


COST_COLUMNS = [
    Column("latency_ms", COST, "median ms", True, lambda cost: cost.latency_ms),
    Column("latency_p95_ms", COST, "p95 ms", True, lambda cost: cost.latency_p95_ms),
    Column("queries_per_second", COST, "queries/s", False, lambda cost: cost.queries_per_second),
    Column("index_seconds", COST, "index s", True, lambda cost: cost.index_seconds),
    Column("index_bytes", COST, "index MB", True, lambda cost: cost.index_bytes / 1e6),
    Column("index_peak_bytes", COST, "peak MB indexing", True, lambda cost: cost.index_peak_bytes / 1e6),
    Column("search_peak_bytes", COST, "peak MB searching", True, lambda cost: cost.search_peak_bytes / 1e6),
]


def amount(value: float) -> str:
    """Return a cost with about three digits: 0.52, 3.10, 24.6, 1,250."""
    if value < 0.005 and value > 0:
        return "<0.01"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def family_label(family: str) -> str:
    """Return the heading of a measure or of the costs."""
    return "Cost" if family == COST else _MEASURES.get(family, family)


def query_groups(report: BenchmarkReport) -> list[str]:
    """Return the groups of queries in their order, ``""`` (all queries) first."""
    named = [*report.query_counts, *(group for result in report.configurations for group in result.groups)]
    return list(dict.fromkeys(["", *named]))


def measure_columns(report: BenchmarkReport) -> list[Column]:
    """Return a column for every measure that any configuration has, by measure and then by cutoff."""
    keys = {
        key for result in report.configurations for measures in (result.measures, *result.groups.values()) for key in measures
    }
    return [
        Column(key, family, f"@{cutoff}" if cutoff else family_label(family))
        for family, cutoff, key in sorted(((*split_measure(key), key) for key in keys), key=_measure_order)
    ]


def split_measure(key: str) -> tuple[str, str]:
    """Return a measure's name without its cutoff, and the cutoff; ``""`` where it has none."""
    family, at, cutoff = key.rpartition("@")
    return (family, cutoff) if at else (key, "")


def _measure_order(measure: tuple[str, str, str]) -> tuple[int, str, int, str]:
    family, cutoff, _ = measure
    known = list(_MEASURES)
    rank = known.index(family) if family in _MEASURES else len(known)
    return rank, family, int(cutoff) if cutoff.isdecimal() else 0, cutoff


def printable(text: str) -> str:
    """Replace what neither a terminal nor a page should get: control characters and halves of surrogate pairs."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(char) in ("Cc", "Cs") else char for char in text)


@dataclass(frozen=True)
class SummaryTable:
    """The comparison for a terminal: prints with ``rich``, and leaves columns out where the terminal is narrow."""

    report: BenchmarkReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self._columns()
        shown = list(columns)
        unlimited, width = options.update(width=10_000), options.max_width
        table = self._table(shown, width, options)
        while len(shown) > 1 and Measurement.get(console, unlimited, table).maximum > width:
            shown.remove(self._least_important(shown))
            table = self._table(shown, width, options)
        yield table
        missing = len(columns) - len(shown)
        left_out = f"Columns left out, because the terminal is narrow: {missing}. " if missing else ""
        yield Text(f"* baseline. {left_out}{UNTESTED}", style="dim" if console.is_terminal else "")

    def _columns(self) -> list[Column]:
        """Return perfect recall and recall at every cutoff, nDCG at 10 or below, latency and index size."""
        measures = measure_columns(self.report)
        kept = [column for column in measures if column.family in ("perfect_recall", "recall")]
        ndcg = [column for column in measures if column.family == "ndcg"]
        small = [column for column in ndcg if split_measure(column.key)[1] in map(str, range(1, 11))]
        costs = [column for column in COST_COLUMNS if column.key in ("latency_ms", "index_bytes")]
        return kept + (small[-1:] or ndcg[:1]) + costs

    def _least_important(self, shown: list[Column]) -> Column:
        """Return what to leave out next: small cutoffs first, then nDCG, index size, latency, recall."""
        curves = [[column for column in shown if column.family == name] for name in ("recall", "perfect_recall")]
        longer = max(curves, key=len)
        if len(longer) > 1:
            return longer[0]
        order = ["perfect_recall", "recall", "latency_ms", "index_bytes", "ndcg"]
        return max(shown, key=lambda column: order.index(column.key if column.cost else column.family))

    def _table(self, columns: list[Column], width: int, options: ConsoleOptions) -> Table:
        names = [printable(result.name) for result in self.report.configurations]
        groups = query_groups(self.report)
        titles = [self._group_title(group) for group in groups] if len(groups) > 1 else []
        widest = max([_NARROWEST_NAME, *(len(_marked(name)) for name in names), *map(len, titles)])
        # a long name folds over several lines before figures are left out for it
        name_width = min(widest, max(_NARROWEST_NAME, min(_WIDEST_NAME, width // 3)))
        table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("configuration", width=name_width, overflow="fold")
        for column in columns:
            head = "ms per\nquery" if column.key == "latency_ms" else column.label.replace(" ", "\n")
            heading = head if column.cost else f"{_SHORT[column.family]}\n{column.label}"
            table.add_column(heading, justify="right", no_wrap=True)
        for group in groups:
            if len(groups) > 1:
                table.add_section()
                table.add_row(Text(self._group_title(group), style="italic"))
            self._add_rows(table, columns, group)
        return table

    def _group_title(self, group: str) -> str:
        count = self.report.query_counts.get(group)
        return printable(group or "all queries") + (f" ({count:,})" if count is not None else "")

    def _add_rows(self, table: Table, columns: list[Column], group: str) -> None:
        # cost is measured over all queries: repeating it under each group would suggest otherwise
        measured = [column for column in columns if not (group and column.cost)]
        values = {column: [column.value(result, group) for result in self.report.configurations] for column in measured}
        best = {column: column.best(values[column]) for column in measured}
        for place, result in enumerate(self.report.configurations):
            name = printable(result.name)
            figures = [
                Text(column.text(values[column][place]), style="bold" if place in best[column] else "")
                if column in values
                else Text("")
                for column in columns
            ]
            table.add_row(Text(_marked(name) if result.name == self.report.baseline else name), *figures)


def _marked(name: str) -> str:
    return f"{name} *"


def summary_table(report: BenchmarkReport) -> SummaryTable:
    """Return the comparison as something that ``rich`` prints, fitted to the width of the console.

    Args:
        report: a finished benchmark.
    """
    return SummaryTable(report)
