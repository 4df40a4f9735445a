"""Results for a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from textwrap import wrap

from rich.box import ASCII2, SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from nlp_retrieval.benchmarks.results import ConfigurationResult
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.ranking_difference import (
    ChangedQuery,
    HitDifference,
    MissedGold,
    QueryDifference,
    Seen,
    SignalMove,
)
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.figures import (
    ABSENT,
    ALPHA,
    BETTER,
    MARK,
    WORSE,
    Column,
    best_first,
    family_label,
    grid_axes,
    mark_of,
)
from nlp_retrieval.reports.findings import headline
from nlp_retrieval.reports.view import Cell, ReportView
from nlp_retrieval.text.printing import counted, printable

_MISSING: dict[Seen, str] = {"unseen": "not found by it", "absent": "no such signal", "unlisted": "not in the list", "seen": ""}
_STYLES = {"entered": "green", "left": "red", "up": "green", "down": "red", "same": "dim"}


def difference_view(difference: QueryDifference) -> RenderableType:
    """Return two lists side by side, then missed gold and the signals that moved with each hit, for ``rich``."""
    heading = [Text(f"{printable(difference.query_id)}: ", "bold").append(printable(difference.text), "not bold")]
    if difference.group is not None:
        heading.append(Text(printable(difference.group), "dim"))
    return Group(
        *heading,
        Text(""),
        _lists(difference),
        *_missed(difference),
        *_moved(difference),
    )


def queries_view(
    lists: RunLists, one: str, other: str, changed: Sequence[ChangedQuery], measure: str, total: int
) -> RenderableType:
    """Return the queries that change most, in the order given, as a table for ``rich``; ``total`` queries are in the runs."""
    table = _difference_table()
    table.add_column("query", overflow="fold", ratio=1)
    for heading in ("from", "to", "change", "entered"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in changed:
        text = printable(lists.texts[lists.number_of(row.query_id)])
        table.add_row(
            Text(printable(row.query_id), "bold").append(f" {text}" if text else "", "not bold"),
            f"{row.one:.3f}",
            f"{row.other:.3f}",
            Text(f"{row.gain:+z.3f}", "green" if row.gain > 0 else "red" if row.gain < 0 else "dim"),
            str(row.entered),
        )
    heading = f"{measure} from {printable(one)} to {printable(other)}: the {len(changed)} of {total:,} queries that change most"
    if same := sum(row.gain == 0 for row in changed):
        heading += f"; in {same:,} of them {measure} stays the same"
    return Group(Text(heading), table, Text("Name one with --query to see both lists.", "dim"))


def _difference_table() -> Table:
    return Table(box=ASCII2, expand=True, show_edge=False, pad_edge=False, padding=(0, 1))


def _lists(difference: QueryDifference) -> Table:
    table = _difference_table()
    table.add_column("", justify="right", no_wrap=True, width=len(str(difference.k)))
    for name, recall in ((difference.one, difference.one_recall), (difference.other, difference.other_recall)):
        heading = Text(printable(name), "bold")
        if recall is not None:
            heading.append(f"\nrecall@{difference.k} {recall:.3f}", "not bold")
        table.add_column(heading, ratio=1, overflow="fold")
    for rank, (mine, theirs) in enumerate(zip_longest(difference.one_list, difference.other_list), start=1):
        table.add_row(str(rank), _cell(mine, difference.other), _cell(theirs, None))
    if not difference.hits:
        table.add_row("", "nothing found", "nothing found")
    return table


def _cell(hit: HitDifference | None, other: str | None) -> Text:
    """A hit of the first list if ``other`` names the second; otherwise one of the second."""
    if hit is None:
        return Text("")
    text = Text(printable(hit.title or hit.item_id))
    if hit.grade:
        text.append(" [gold]", "bold yellow")
    style = _STYLES[hit.movement]
    if other is not None:
        beyond = f", rank {hit.other_rank} there" if hit.other_rank is not None else ""
        return text.append(f" left{beyond}", style) if hit.movement == "left" else text
    if hit.movement == "entered":
        return text.append(f" entered{_from(hit.one_rank)}", style)
    if hit.movement == "same":
        return text
    return text.append(f" {hit.movement} {abs(hit.up or 0)}{_from(hit.one_rank)}", style)


def _from(rank: int | None) -> str:
    return "" if rank is None else f", from {rank}"


def _missed(difference: QueryDifference) -> Iterator[Text]:
    if difference.missed:
        yield Text(f"\nGold that neither has in its first {difference.k}:", "bold")
    for gold in difference.missed:
        yield Text(f"  {_named(gold)}").append(_where(gold, difference), "dim")


def _where(gold: MissedGold, difference: QueryDifference) -> str:
    ranks = ((gold.one_rank, difference.one), (gold.other_rank, difference.other))
    return "".join(f", rank {rank} in {printable(name)}" for rank, name in ranks if rank is not None)


def _moved(difference: QueryDifference) -> Iterator[RenderableType]:
    moved = [hit for hit in difference.hits if hit.moved_by]
    if not moved:
        return
    yield Text(f"\nSignals of what moved, {printable(difference.one)} to {printable(difference.other)}:", "bold")
    for hit in moved:
        gold = " [gold]" if hit.grade else ""
        yield Text(f"{_named(hit)}{gold}: {_rank(hit.one_rank, difference.k)} to {_rank(hit.other_rank, difference.k)}")
        for signal in hit.moved_by:
            yield Text(f"    {_signal_text(signal)}", "dim")


def _named(hit: HitDifference | MissedGold) -> str:
    return f"{printable(hit.title)} ({printable(hit.item_id)})" if hit.title else printable(hit.item_id)


def _rank(rank: int | None, k: int) -> str:
    return "not in the list" if rank is None else f"rank {rank}" + (f" (beyond {k})" if rank > k else "")


def _signal_text(signal: SignalMove) -> str:
    sides = [(signal.one, signal.one_rank, signal.one_seen), (signal.other, signal.other_rank, signal.other_seen)]
    before, after = (f"{value:.4g}, rank {rank}" if value is not None else _MISSING[seen] for value, rank, seen in sides)
    return f"{printable(signal.name)}: {before} -> {after}"


_SHORT = {"perfect_recall": "perfect", "recall": "recall", "ndcg": "nDCG"}
_NARROWEST_NAME, _WIDEST_AXIS, _WIDEST_HEADING, _FEWEST_BESIDE_AXES = 13, 16, 10, 3
_IN_ASCII = str.maketrans({"\N{MINUS SIGN}": "-", "\N{PLUS-MINUS SIGN}": " ", ABSENT: "-", BETTER: "+", WORSE: "-", MARK: "#"})
_STYLE_OF = {"better": "green", "worse": "red", "": ""}

_Shown = tuple[Column, str]
"""A column of figures, and the group of queries that they are of."""


@dataclass(frozen=True)
class SummaryTable:
    """The comparison for a terminal, best first; columns that do not fit are left out, and every warning stands below."""

    view: ReportView
    whole: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(Group(*self._parts(console, options)), options):
            yield segment._replace(text=segment.text.translate(_IN_ASCII)) if options.ascii_only else segment

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        view, dim, bold = self.view, *(("dim", "bold") if console.is_terminal else ("", ""))
        if sentence := headline(view.report):
            yield Text(sentence, bold)
        results, columns = best_first(view.report), self._columns()
        for axes in (grid_axes(view.report), {}):
            table, shown = self._fitted(results, columns, axes, self._left_out_first(columns), options)
            if self._fits(table, options):
                break
        yield from (Text(""), table, Text(""))
        yield from (Text(note, dim) for note in self._notes(shown))
        yield from map(Text, self._warnings())
        if view.model_columns:
            of_models = [(column, "") for column in view.model_columns]
            results = [result for result in results if any(column.value(result) is not None for column in view.model_columns)]
            table, shown = self._fitted(results, of_models, {}, [[column] for column in of_models], options)
            yield from (Text(""), table)
            yield from (Text(note, dim) for note in _left_out(len(view.model_columns) - len(shown)))
            for name in (result.name for result in view.report.configurations):
                noted = (view.degraded, view.latency, view.unpriced)
                yield from (Text(printable(f"{name}: {notes[name]}")) for notes in noted if name in notes)

    def _columns(self) -> list[_Shown]:
        view = self.view
        main = [column for column in view.summary if column.key == view.main_measure]
        others = [column for column in view.summary if column not in main]
        return [(column, group.name) for column in main for group in view.groups] + [(column, "") for column in others]

    def _left_out_first(self, columns: Sequence[_Shown]) -> list[list[_Shown]]:
        """The columns to leave out, those of equal importance together; the main measure never."""
        last = {column.family: column.key for column in self.view.summary if column.cost is None}

        def importance(shown: _Shown) -> tuple[int, float]:
            column, group = shown
            if group:
                return 3, 0
            if column.cost is not None:
                return {"latency_ms": 0, "price_per_1000_queries": 2}.get(column.key, 4), columns.index(shown)
            if column.key == last[column.family]:
                return 1, columns.index(shown)
            return 5, 1 / (Measure.parse(column.key).cutoff or 1)

        rest = [shown for shown in columns if shown[1] or shown[0].key != self.view.main_measure]
        return [list(equal) for _, equal in groupby(sorted(rest, key=importance, reverse=True), importance)]

    def _fits(self, table: Table, options: ConsoleOptions) -> bool:
        widths = [column.width or 0 for column in table.columns]  # every column has one, with a space between two
        return self.whole or sum(widths) + len(widths) - 1 <= options.max_width

    def _fitted(
        self,
        results: Sequence[ConfigurationResult],
        columns: Sequence[_Shown],
        axes: Mapping[str, Mapping[str, str]],
        left_out_first: Sequence[Sequence[_Shown]],
        options: ConsoleOptions,
    ) -> tuple[Table, list[_Shown]]:
        """Draw as many columns as fit the terminal, and return them."""
        shown = list(columns)
        table = self._table(results, shown, axes, options)
        for left_out in left_out_first:
            if self._fits(table, options) or (axes and len(shown) <= _FEWEST_BESIDE_AXES):
                break
            shown = [column for column in shown if column not in left_out]
            table = self._table(results, shown, axes, options)
        return table, shown

    def _table(
        self,
        results: Sequence[ConfigurationResult],
        shown: Sequence[_Shown],
        axes: Mapping[str, Mapping[str, str]],
        options: ConsoleOptions,
    ) -> Table:
        rows = {(group.name, row.result.name): row for group in self.view.groups for row in group.rows}
        table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
        labels = self._add_labels(table, results, axes, options)
        columns = []
        for column, group in shown:
            cells = [rows[group, result.name].cells[column.key] for result in results]
            columns.append(_add_figures(table, self._heading(column, group, shown), cells))
        for own, *cells_of_row in zip(labels, *columns, strict=True):
            table.add_row(*own, *cells_of_row)
        return table

    def _add_labels(
        self,
        table: Table,
        results: Sequence[ConfigurationResult],
        axes: Mapping[str, Mapping[str, str]],
        options: ConsoleOptions,
    ) -> list[list[Text]]:
        """Add columns for names and axes, and return their texts by row; axes replace the names of a grid's configurations."""
        inside = {name for of_axis in axes.values() for name in of_axis}
        names = ["" if result.name in inside else printable(result.name) for result in results]
        columns = [[printable(of_axis.get(result.name, "")) for result in results] for of_axis in axes.values()]
        headings = list(map(printable, axes))
        if any(names):
            columns, headings = [names, *columns], ["configuration", *headings]
        for position, result in enumerate(results):
            if result.name == self.view.report.baseline:
                next(column for column in columns if column[position])[position] += " *"
        widths = [
            min(_WIDEST_AXIS, max(min(_WIDEST_HEADING, cell_len(heading)), *map(cell_len, column)))
            for heading, column in zip(headings, columns, strict=True)
        ]
        if any(names):
            room = max(_NARROWEST_NAME, options.max_width // (5 if axes else 3))
            widths[0] = min(max(map(cell_len, [*names, "configuration"])), room)
        for heading, width in zip(headings, widths, strict=True):
            table.add_column(Text(heading), width=width + 1, overflow="fold")
        return [[Text(text) for text in row] for row in zip(*columns, strict=True)]

    def _heading(self, column: Column, group: str, shown: Sequence[_Shown]) -> list[str]:
        if column.key == "latency_ms":
            return ["ms per", "query"]
        if not column.label.startswith("@"):
            lines = column.label.split(" ")
        else:
            lines = [_SHORT.get(column.family, family_label(column.family)), column.label]
        if column.key == self.view.main_measure:
            (own,) = (one for one in self.view.groups if one.name == group)
            if any(other for _, other in shown):
                lines += wrap(printable(group) or "all", _WIDEST_HEADING)
            lines += [] if own.count is None else [f"n={own.count:,}"]
        return lines

    def _notes(self, shown: Sequence[_Shown]) -> Iterator[str]:
        """What the marks mean, and what is not shown."""
        view, rows_of = self.view, {group.name: group.rows for group in self.view.groups}
        cells = [row.cells[column.key] for column, group in shown for row in rows_of[group]]
        verdicts, said, untested = {cell.verdict for cell in cells}, ["* baseline"], ""
        if view.comparisons:
            said += [f"{BETTER} better"] * ("better" in verdicts) + [f"{WORSE} worse"] * ("worse" in verdicts)
            others = " in these columns" if BETTER in view.legend or WORSE in view.legend else ""
            said[1:] = said[1:] or [f"nothing significant{others}"]
            said[-1] += f" (corrected p < {ALPHA:g})".replace("0.", ".")
        elif len(view.report.configurations) > 1:
            untested = "; differences are not tested for significance"
        said += [f"{MARK} Pareto front"] * any(cell.on_front for cell in cells)
        yield ", ".join(said) + untested
        yield from _left_out(len(self._columns()) - len(shown))

    def _warnings(self) -> Iterator[str]:
        """Whatever a reader of the figures must know."""
        view, counts = self.view, self.view.report.counted
        plain = "" if counts is None else f"Counted: {counted(counts.queries, 'query', 'queries')}."
        yield from [view.counted] if view.counted not in ("", plain) else []
        yield from map(printable, view.cautions)
        yield from view.failures


def _left_out(columns: int) -> list[str]:
    return [f"{counted(columns, 'column')} left out: this terminal is too narrow."] if columns else []


def _add_figures(table: Table, heading: Sequence[str], cells: Sequence[Cell]) -> list[Text]:
    """Add a column whose marks have a place of their own, so that figures are aligned; return its texts."""
    figures = [Text(cell.text, "bold" if cell.best else "") for cell in cells]
    marks = [Text(MARK) if cell.on_front else Text(mark_of(cell.comparison), _STYLE_OF[cell.verdict]) for cell in cells]
    width = max(cell_len(text) for text in [*heading, *(figure.plain for figure in figures)])
    slot = max((mark.cell_len for mark in marks), default=0)
    lines = [f"{' ' * (width - cell_len(line))}{line}" for line in heading]
    table.add_column("\n".join(lines), width=width + slot, no_wrap=True)
    return [Text.assemble(" " * (width - figure.cell_len), figure, mark) for figure, mark in zip(figures, marks, strict=True)]
