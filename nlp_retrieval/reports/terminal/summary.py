"""The comparison as a table for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from nlp_retrieval.reports.columns import ABSENT, Column, family_label
from nlp_retrieval.reports.marks import NO_VERDICT, NOTHING_TO_FIND, SIGNS, TRIANGLES
from nlp_retrieval.reports.notes import CALLS_AND_TOKENS
from nlp_retrieval.reports.pareto import ASCII_MARK, ASCII_TIE, MARK, TIE
from nlp_retrieval.reports.view import Cell, ReportView
from nlp_retrieval.text.printing import printable

_SHORT = {"perfect_recall": "perfect", "recall": "recall", "ndcg": "nDCG"}
_WIDEST_NAME = 28
_NARROWEST_NAME = 13
_UNLIMITED = 10_000
_LEFT_OUT_FIRST = (
    "cache_hits tokens_in tokens_out failures answer_seconds query_tokens_out query_tokens_in calls price_spent unanswered "
    "dropped_citations failed_answers degraded"
).split()


@dataclass(frozen=True)
class SummaryTable:
    """The comparison for a terminal: prints with ``rich``, and leaves columns out where the terminal is narrow.

    Args:
        view: of a finished benchmark.
        whole: leave none out, however narrow it is.
    """

    view: ReportView
    whole: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        view, dim = self.view, "dim" if console.is_terminal else ""
        table, shown = self._fitted(console, options, view.summary, self._table, _least_important)
        yield table
        marks = SIGNS if options.ascii_only else TRIANGLES
        bold = f" {NO_VERDICT}" if console.is_terminal else ""
        yield Text(f"* baseline. {_left_out(view.summary, shown)}{view.legends[marks]}{bold}".strip(), style=dim)
        if view.chance:
            yield Text(view.chance, style=dim)
        if any(column.key in view.fronts for column in shown):
            yield Text(view.front_legends[ASCII_MARK if options.ascii_only else MARK], style=dim)
        for reason, groups in view.out_of_reach.items():
            yield Text(f"{', '.join(printable(str(group)) for group in groups)}: {NOTHING_TO_FIND}: {reason}.")
        for note in (
            *filter(None, [view.counted, view.small_sample, view.timing]),
            *map(printable, view.cautions),
            *view.failures,
        ):
            yield Text(note)
        if view.model_columns:
            table, shown = self._fitted(console, options, view.model_columns, self._language_model_table, _first_left_out)
            yield Text("")
            yield table
            legend = f"{_left_out(view.model_columns, shown)}{CALLS_AND_TOKENS} {printable(view.prices)}"
            yield Text(legend.strip(), style=dim)
            for result in view.report.configurations:
                for notes in (view.degraded, view.latency, view.unpriced):
                    if result.name in notes:
                        yield Text(printable(f"{result.name}: {notes[result.name]}"))

    def _fitted(
        self,
        console: Console,
        options: ConsoleOptions,
        columns: Sequence[Column],
        draw: Callable[[Sequence[Column], int, ConsoleOptions], Table],
        least_important: Callable[[list[Column]], Column],
    ) -> tuple[Table, list[Column]]:
        """Draw as many columns as the terminal is wide enough for, and tell which they are."""
        shown = list(columns)
        unlimited, width = options.update(width=_UNLIMITED), options.max_width
        table = draw(shown, width, options)
        while not self.whole and len(shown) > 1 and Measurement.get(console, unlimited, table).maximum > width:
            shown.remove(least_important(shown))
            table = draw(shown, width, options)
        return table, shown

    def _table(self, columns: Sequence[Column], width: int, options: ConsoleOptions) -> Table:
        groups = self.view.groups
        titles = [printable(str(group)) for group in groups] if len(groups) > 1 else []
        names = [_starred(printable(result.name)) for result in self.view.report.configurations]
        table = _empty_table([*names, *titles], width, options)
        for column in columns:
            head = "ms per\nquery" if column.key == "latency_ms" else column.label.replace(" ", "\n")
            family = _SHORT.get(column.family, family_label(column.family))
            heading = f"{family}\n{column.label}" if column.label.startswith("@") else head
            table.add_column(heading, justify="right", no_wrap=True)
        marked = {cell.column for group in groups for row in group.rows for cell in row.cells.values() if cell.verdict}
        for group in groups:
            if len(groups) > 1:
                table.add_section()
                table.add_row(Text(printable(str(group)), style="italic"))
            for row in group.rows:
                name = printable(row.result.name)
                figures = (self._figure(row.cells[column.key], column in marked, options) for column in columns)
                table.add_row(Text(_starred(name) if row.is_baseline else name), *figures)
        return table

    def _figure(self, cell: Cell, in_marked: bool, options: ConsoleOptions) -> Text:
        """Return a figure and its mark: in a column with marks, a space where there is none."""
        if cell.repeated:  # a cost under each group would suggest that it was measured there
            return Text("")
        ascii_only = options.ascii_only
        mark = (SIGNS if ascii_only else TRIANGLES).of(cell.comparison) or (" " if in_marked else "")
        if cell.column.key in self.view.fronts:
            front, tie = (ASCII_MARK, ASCII_TIE) if ascii_only else (MARK, TIE)
            mark = front if cell.on_front else tie if cell.tied else " "
        return Text(_printed(cell, options), style="bold" if cell.best else "").append(mark, style="not bold")

    def _language_model_table(self, columns: Sequence[Column], width: int, options: ConsoleOptions) -> Table:
        rows = [row for row in self.view.groups[0].rows if any(row.cells[one.key].value is not None for one in columns)]
        names = [printable(row.result.name) for row in rows]
        table = _empty_table(names, width, options)
        for column in columns:
            table.add_column(column.label.replace(" ", "\n"), justify="right", no_wrap=True)
        for name, row in zip(names, rows, strict=True):
            table.add_row(Text(name), *(Text(_printed(row.cells[column.key], options)) for column in columns))
        return table


def _least_important(shown: list[Column]) -> Column:
    """Return what to leave out next: small cutoffs first, then nDCG, index size, price, latency, recall."""
    curves = [[column for column in shown if column.family == name] for name in ("recall", "perfect_recall")]
    longer = max(curves, key=len)
    if len(longer) > 1:
        return longer[0]
    order = [
        "answer_f1",
        "answer_em",
        "joint_f1",
        "perfect_recall",
        "recall",
        "latency_ms",
        "price_per_1000_queries",
        "index_bytes",
        "ndcg",
    ]
    return max(shown, key=lambda column: order.index(column.key if column.cost else column.family))


def _left_out(columns: Sequence[Column], shown: Sequence[Column]) -> str:
    missing = len(columns) - len(shown)
    return f"Columns left out, because the terminal is narrow: {missing}. " if missing else ""


def _first_left_out(shown: list[Column]) -> Column:
    return min(shown, key=lambda column: _LEFT_OUT_FIRST.index(column.key))


def _empty_table(names: list[str], width: int, options: ConsoleOptions) -> Table:
    """Begin a table; a long name folds over several lines before figures are left out for it."""
    widest = max([_NARROWEST_NAME, *map(len, names)])
    table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    name_width = widest if width >= _UNLIMITED else min(widest, max(_NARROWEST_NAME, min(_WIDEST_NAME, width // 3)))
    table.add_column("configuration", width=name_width, overflow="fold")
    return table


def _printed(cell: Cell, options: ConsoleOptions) -> str:
    return cell.text.replace(ABSENT, "-") if options.ascii_only else cell.text


def _starred(name: str) -> str:
    return f"{name} *"
