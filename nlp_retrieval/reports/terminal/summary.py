"""The comparison as a table for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.reports.columns import (
    LANGUAGE_MODEL_COLUMNS,
    Column,
    language_model_of,
    price_columns,
    query_groups,
    summary_columns,
)
from nlp_retrieval.reports.failures import failure_notes
from nlp_retrieval.reports.marks import (
    NO_VERDICT,
    NOTHING_TO_FIND,
    SIGNS,
    TRIANGLES,
    Marks,
    by_chance,
    by_figure,
    legend,
    out_of_reach,
)
from nlp_retrieval.reports.notes import (
    CALLS_AND_TOKENS,
    comparison_notes,
    degraded_note,
    latency_note,
    price_note,
    prices_legend,
)
from nlp_retrieval.reports.pareto import ASCII_MARK, MARK, Front, front_legend, fronts
from nlp_retrieval.text.printable import printable

_SHORT = {"perfect_recall": "perfect", "recall": "recall", "ndcg": "nDCG"}
_WIDEST_NAME = 28
_NARROWEST_NAME = 13
_LEFT_OUT_FIRST = "cache_hits tokens_in tokens_out failures query_tokens_out query_tokens_in calls price_spent degraded".split()


@dataclass(frozen=True)
class SummaryTable:
    """The comparison for a terminal: prints with ``rich``, and leaves columns out where the terminal is narrow."""

    report: BenchmarkReport

    @cached_property
    def _comparisons(self) -> dict[tuple[str, str, str], Comparison]:
        return by_figure(self.report)

    @cached_property
    def _fronts(self) -> dict[str, Front]:
        return fronts(self.report)

    @cached_property
    def _marked_columns(self) -> set[str]:
        return {key for (_, key, _), one in self._comparisons.items() if TRIANGLES.of(one)}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        dim = "dim" if console.is_terminal else ""
        columns = summary_columns(self.report)
        table, shown = _fitted(console, options, columns, self._table, self._least_important)
        yield table
        marks = SIGNS if options.ascii_only else TRIANGLES
        bold = f" {NO_VERDICT}" if console.is_terminal else ""
        yield Text(f"* baseline. {_left_out(columns, shown)}{legend(self.report, marks)}{bold}".strip(), style=dim)
        if chance := by_chance(self.report):
            yield Text(chance, style=dim)
        if any(column.key in self._fronts for column in shown):
            yield Text(front_legend(self.report, ASCII_MARK if options.ascii_only else MARK), style=dim)
        for reason, groups in out_of_reach(self.report).items():
            yield Text(f"{', '.join(map(self._group_title, groups))}: {NOTHING_TO_FIND}: {reason}.")
        for note in (*map(printable, comparison_notes(self.report)), *failure_notes(self.report)):
            yield Text(note)
        if any(language_model_of(result) is not None for result in self.report.configurations):
            columns = [*LANGUAGE_MODEL_COLUMNS, *price_columns(self.report)[1:]]
            table, shown = _fitted(console, options, columns, self._language_model_table, _first_left_out)
            yield Text("")
            yield table
            said = f"{_left_out(columns, shown)}{CALLS_AND_TOKENS} {printable(prices_legend(self.report))}"
            yield Text(said.strip(), style=dim)
            for result in self.report.configurations:
                for note in (degraded_note(self.report, result), latency_note(result), price_note(self.report, result)):
                    if note:
                        yield Text(printable(f"{result.name}: {note}"))

    def _least_important(self, shown: list[Column]) -> Column:
        """Return what to leave out next: small cutoffs first, then nDCG, index size, price, latency, recall."""
        curves = [[column for column in shown if column.family == name] for name in ("recall", "perfect_recall")]
        longer = max(curves, key=len)
        if len(longer) > 1:
            return longer[0]
        order = ["perfect_recall", "recall", "latency_ms", "price_per_1000_queries", "index_bytes", "ndcg"]
        return max(shown, key=lambda column: order.index(column.key if column.cost else column.family))

    def _table(self, columns: list[Column], width: int, options: ConsoleOptions) -> Table:
        groups = query_groups(self.report)
        titles = [self._group_title(group) for group in groups] if len(groups) > 1 else []
        names = [_marked(printable(result.name)) for result in self.report.configurations]
        table = _empty_table([*names, *titles], width, options)
        for column in columns:
            head = "ms per\nquery" if column.key == "latency_ms" else column.label.replace(" ", "\n")
            heading = head if column.cost else f"{_SHORT[column.family]}\n{column.label}"
            table.add_column(heading, justify="right", no_wrap=True)
        for group in groups:
            if len(groups) > 1:
                table.add_section()
                table.add_row(Text(self._group_title(group), style="italic"))
            self._add_rows(table, columns, group, SIGNS if options.ascii_only else TRIANGLES)
        return table

    def _language_model_table(self, columns: list[Column], width: int, options: ConsoleOptions) -> Table:
        asked = [result for result in self.report.configurations if language_model_of(result) is not None]
        names = [printable(result.name) for result in asked]
        table = _empty_table(names, width, options)
        for column in columns:
            table.add_column(column.label.replace(" ", "\n"), justify="right", no_wrap=True)
        for name, result in zip(names, asked, strict=True):
            table.add_row(Text(name), *(Text(column.text(column.value(result))) for column in columns))
        return table

    def _group_title(self, group: str) -> str:
        count = self.report.query_counts.get(group)
        return printable(group or "all queries") + (f" ({count:,})" if count is not None else "")

    def _mark(self, column: Column, result: ConfigurationResult, group: str, marks: Marks) -> str:
        """Return what stands after a figure: in a column with marks, a space where there is none."""
        if front := self._fronts.get(column.key):
            return (ASCII_MARK if marks is SIGNS else MARK) if result.name in front.names else " "
        if column.cost or column.key not in self._marked_columns:
            return ""
        return marks.of(self._comparisons.get((group, column.key, result.name))) or " "

    def _add_rows(self, table: Table, columns: list[Column], group: str, marks: Marks) -> None:
        # cost is measured over all queries: repeating it under each group would suggest otherwise
        measured = [column for column in columns if not (group and column.cost)]
        values = {column: [column.value(result, group) for result in self.report.configurations] for column in measured}
        best = {column: column.best(values[column]) for column in measured}
        for place, result in enumerate(self.report.configurations):
            name = printable(result.name)
            figures = [
                Text(column.text(values[column][place]), style="bold" if place in best[column] else "").append(
                    self._mark(column, result, group, marks), style="not bold"
                )
                if column in values
                else Text("")
                for column in columns
            ]
            table.add_row(Text(_marked(name) if result.name == self.report.baseline else name), *figures)


def _fitted(
    console: Console,
    options: ConsoleOptions,
    columns: list[Column],
    draw: Callable[[list[Column], int, ConsoleOptions], Table],
    least_important: Callable[[list[Column]], Column],
) -> tuple[Table, list[Column]]:
    """Draw as many columns as the terminal is wide enough for, and tell which they are."""
    shown = list(columns)
    unlimited, width = options.update(width=10_000), options.max_width
    table = draw(shown, width, options)
    while len(shown) > 1 and Measurement.get(console, unlimited, table).maximum > width:
        shown.remove(least_important(shown))
        table = draw(shown, width, options)
    return table, shown


def _left_out(columns: list[Column], shown: list[Column]) -> str:
    missing = len(columns) - len(shown)
    return f"Columns left out, because the terminal is narrow: {missing}. " if missing else ""


def _first_left_out(shown: list[Column]) -> Column:
    return min(shown, key=lambda column: _LEFT_OUT_FIRST.index(column.key))


def _empty_table(names: list[str], width: int, options: ConsoleOptions) -> Table:
    """Begin a table; a long name folds over several lines before figures are left out for it."""
    widest = max([_NARROWEST_NAME, *map(len, names)])
    table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    name_width = min(widest, max(_NARROWEST_NAME, min(_WIDEST_NAME, width // 3)))
    table.add_column("configuration", width=name_width, overflow="fold")
    return table


def _marked(name: str) -> str:
    return f"{name} *"


def summary_table(report: BenchmarkReport) -> SummaryTable:
    """Return the comparison as something that ``rich`` prints, fitted to the width of the console.

    Args:
        report: a finished benchmark.
    """
    return SummaryTable(report)
