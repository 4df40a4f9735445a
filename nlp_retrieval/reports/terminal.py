"""Results for a terminal of any width."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from rich.box import ASCII2, SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from nlp_retrieval.benchmarks.plans import Plan
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
    ASCII_MARK,
    ASCII_TIE,
    MARK,
    NO_VERDICT,
    NOTHING_TO_FIND,
    SIGNS,
    TIE,
    TRIANGLES,
    Column,
    best_first,
    family_label,
    grid_axes,
)
from nlp_retrieval.reports.findings import headline, tied_with_best
from nlp_retrieval.reports.snippets import pieces, shared_spans, snippet
from nlp_retrieval.reports.view import CALLS_AND_TOKENS, Cell, ReportView, counted
from nlp_retrieval.text.printing import printable

# A plan for a terminal: what it adds up to, then shared parts first, no line too wide.


@dataclass(frozen=True)
class PlanTables:
    """A plan, to be printed to a rich console, in reading order.

    Args:
        plan: the plan to print.
        whole: whether to print stages, indexes, models and configurations too, and not only what they add up to.
    """

    plan: Plan
    whole: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield Text("\n".join(_summary(self.plan)))
        if self.whole:
            yield from _parts(self.plan, options)


def _parts(plan: Plan, options: ConsoleOptions) -> Iterator[RenderableType]:
    yield from _table(options, ("computed once for all", "", "configurations"), _stages(plan))
    yield from _table(options, ("index", "", "configurations"), _indexes(plan))
    yield from _table(options, ("model", "where", "configurations"), _models(plan))
    yield from _table(options, ("language-model calls", "at most", "configurations"), _calls(plan))
    yield Text("configurations")
    for name in plan.configurations:
        yield Text(f"  {printable(f'{name} *' if name == plan.baseline else name)}", overflow="fold")


def _summary(plan: Plan) -> list[str]:
    total = len(plan.configurations)
    queries = counted(plan.n_queries, "query", "queries")
    lines = [f"plan: {counted(total, 'configuration')}, {queries}, by {_listed(plan)}, baseline {plan.baseline}"]
    if plan.filters:
        lines.append(f"filters: {counted(plan.filters, 'different one')}; queries of one filter are searched together")
    if plan.combinations is not None:
        drawn = f", {plan.drawn:,} of them drawn" if plan.drawn < plan.combinations else ""
        equal = f", {plan.equal:,} duplicates removed" if plan.equal else ""
        lines.append(f"grid: {counted(plan.combinations, 'combination')}{drawn}{equal}")
    states = [index.state for index in plan.indexes]
    counts = [f"{states.count(state):,} {state}" for state in ("found", "to build", "not known") if state in states]
    lines.append(f"indexes in {plan.index_path}: {', '.join(counts) or 'none'}")
    if plan.calls:
        known = sum(calls.calls for calls in plan.calls if calls.calls is not None)
        more = "" if plan.language_model_calls is not None else ", and an unknown number more"
        lines.append(f"language models: at most {known:,} calls{more}; answers on disk make it fewer, retries more")
    missing = [model.name for model in plan.models if model.source is None]
    if missing:
        lines.append(f"not on this machine: {', '.join(missing)}")
    return [printable(line) for line in lines]


def _stages(plan: Plan) -> list[tuple[str, str, str]]:
    by_use = sorted(plan.stages, key=lambda stage: -len(stage.used_by))
    return [(stage.name, stage.kind, _share(stage.used_by, plan)) for stage in by_use]


def _indexes(plan: Plan) -> list[tuple[str, str, str]]:
    return [(index.name, index.state, _share(index.used_by, plan)) for index in plan.indexes]


def _models(plan: Plan) -> list[tuple[str, str, str]]:
    return [
        (f"{model.name} ({model.kind})", model.source or "not on this machine", _share(model.used_by, plan))
        for model in plan.models
    ]


def _calls(plan: Plan) -> list[tuple[str, str, str]]:
    counts = ["not known" if call.calls is None else f"{call.calls:,}" for call in plan.calls]
    return [(call.name, calls, _share(call.used_by, plan)) for call, calls in zip(plan.calls, counts, strict=True)]


def _share(used_by: Sequence[str], plan: Plan) -> str:
    return f"{len(used_by):,} of {len(plan.configurations):,}"


def _table(options: ConsoleOptions, heads: tuple[str, str, str], rows: Sequence[tuple[str, str, str]]) -> Iterator[Table]:
    if not rows:
        return
    table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(heads[0], overflow="fold", ratio=3)
    table.add_column(heads[1], overflow="fold", ratio=1)
    table.add_column(heads[2], justify="right", no_wrap=True)
    for cells in rows:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    yield table


def _listed(plan: Plan) -> str:
    """The main measure, and the others or the cutoffs."""
    others = [measure for measure in plan.measures if measure != plan.main]
    return f"{plan.main} ({', '.join(others) or 'k = ' + ', '.join(map(str, plan.k_values))})"


# Two rankings of a query side by side, and the queries that change most, for a terminal of any width.
#
# Words, not only colours, show which hits entered, left, moved or are gold.

_MISSING: dict[Seen, str] = {"unseen": "not found by it", "absent": "no such signal", "unlisted": "not in the list", "seen": ""}
_STYLES = {"entered": "green", "left": "red", "up": "green", "down": "red", "same": "dim"}


def difference_view(
    difference: QueryDifference, passages: Mapping[str, str] | None = None, common: Collection[str] = (), *, whole: bool = False
) -> RenderableType:
    """Return two lists side by side, then the documents found and the signals that moved with each hit, for ``rich`` to print.

    Args:
        difference: of a query.
        passages: texts by item id; items without one are shown without.
        common: words not to highlight.
        whole: whether to show a whole text instead of the part relevant to the query.
    """
    heading = [Text(f"{printable(difference.query_id)}: ", "bold").append(printable(difference.text), "not bold")]
    if difference.group is not None:
        heading.append(Text(printable(difference.group), "dim"))
    return Group(
        *heading,
        Text(""),
        _lists(difference),
        *_missed(difference),
        *_texts(difference, passages or {}, common, whole),
        *_moved(difference),
    )


def queries_view(
    lists: RunLists, one: str, other: str, changed: Sequence[ChangedQuery], measure: str, total: int
) -> RenderableType:
    """Return the queries that change most as a table for ``rich`` to print.

    Args:
        lists: lists of the two runs.
        one: the first run.
        other: the second.
        changed: queries, in display order.
        measure: the measure of change, such as ``"recall@10"``.
        total: number of queries in the runs.
    """
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
            Text(f"{row.gain:+.3f}", "green" if row.gain > 0 else "red" if row.gain < 0 else "dim"),
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


def _texts(difference: QueryDifference, passages: Mapping[str, str], common: Collection[str], whole: bool) -> Iterator[Text]:
    """The text of each hit and of missed gold, once, with the words shared with the query in bold."""
    every: list[HitDifference | MissedGold] = [*difference.hits, *difference.missed]
    shown = [hit for hit in every if passages.get(hit.item_id)]
    if shown:
        yield Text("\nWhat they say:" if whole else "\nWhat they say about it:", "bold")
    for hit in shown:
        text = printable(" ".join(passages[hit.item_id].split()))
        spans = shared_spans(text, difference.text, common)
        part = (0, len(text)) if whole else snippet(text, spans)
        line = (
            Text(f"  {_named(hit)}", "bold" if hit.grade else "")
            .append(" [gold]" if hit.grade else "", "bold yellow")
            .append(": ")
        )
        line.append("... " if part[0] else "")
        for piece, is_shared in pieces(text, part, spans):
            line.append(piece, "bold" if is_shared else "dim")
        yield line.append(" ..." if part[1] < len(text) else "")


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


# The comparison as a table for a terminal: what was found, then the configurations by the main measure, best first.

_SHORT = {"perfect_recall": "perfect", "recall": "recall", "ndcg": "nDCG"}
_NARROWEST_NAME, _WIDEST_AXIS, _WIDEST_HEADING = 13, 16, 10
_FEWEST_BESIDE_AXES = 3
_PARTS = (r"(?<=\s)", r"(?<=>)", r"(?<=\+)", r"(?<=/)", r"(?<=[-_=.:@])")
"""Where a name may be broken, the best places first."""
_IN_ASCII = str.maketrans({"\N{MINUS SIGN}": "-", "\N{PLUS-MINUS SIGN}": None, ABSENT: "-"})
_VERDICTS = {"better": "green", "worse": "red", "": ""}
_MODEL_COLUMNS_LEFT_OUT = (
    "cache_hits tokens_in tokens_out failures answer_seconds query_tokens_out query_tokens_in calls price_spent unanswered "
    "dropped_citations failed_answers degraded"
).split()


@dataclass(frozen=True)
class _Figures:
    """A column of figures over all queries, or over those of a group."""

    column: Column
    group: str = ""


@dataclass(frozen=True)
class SummaryTable:
    """The comparison for a terminal: prints with ``rich``, and leaves columns out if the terminal is narrow.

    It begins with what was found. The main measure is the first column, and is followed by its values in each group of queries;
    configurations are sorted by it. Axes of a grid are columns instead of long names. Two lines of notes follow, and every
    warning about a figure.

    Args:
        view: view of a finished benchmark.
        whole: whether to keep all columns, however narrow the terminal is.
        verbose: whether to show every measure in every group, and all notes.
    """

    view: ReportView
    whole: bool = False
    verbose: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        view, dim = self.view, "dim" if console.is_terminal else ""
        if found := headline(view.report):
            yield Text(found.translate(_IN_ASCII) if options.ascii_only else found, "bold" if console.is_terminal else "")
        columns = self._columns()
        table, shown = self._fitted(options, columns, self._left_out_first(columns), self._table)
        yield from (Text(""), table, Text(""))
        left_out = len(view.summary) - sum(not figures.group for figures in shown)
        notes = self._two_notes(shown, left_out, options)
        if self.verbose:
            notes = self._every_note(shown, left_out, options, bold=console.is_terminal)
        yield from (Text(note, style=dim) for note in notes)
        yield from map(Text, self._warnings())
        if view.model_columns:
            of_models = [_Figures(column) for column in view.model_columns]
            last = sorted(of_models, key=lambda figures: _MODEL_COLUMNS_LEFT_OUT.index(figures.column.key))
            table, shown = self._fitted(options, of_models, [[one] for one in last], self._table_of_models)
            yield Text("")
            yield table
            note = f"{_left_out(len(of_models) - len(shown))} {CALLS_AND_TOKENS if self.verbose else ''} "
            if note := f"{note}{printable(view.prices) if self.verbose else ''}".strip():
                yield Text(note, style=dim)
            for result in view.report.configurations:
                for of_model in (view.degraded, view.latency, view.unpriced):
                    if result.name in of_model:
                        yield Text(printable(f"{result.name}: {of_model[result.name]}"))

    def _columns(self) -> list[_Figures]:
        view = self.view
        main = [column for column in view.summary if column.key == view.main_measure]
        groups = [] if self.verbose else view.groups[1:]
        others = [column for column in view.summary if column not in main]
        by_group = [_Figures(column, group.name) for column in main for group in groups]
        return [*map(_Figures, main), *by_group, *map(_Figures, others)]

    def _left_out_first(self, columns: Sequence[_Figures]) -> list[list[_Figures]]:
        """The columns to leave out, those of equal importance together; the main measure never."""
        last = {column.family: column.key for column in self.view.summary if column.cost is None}

        def importance(figures: _Figures) -> tuple[int, float]:
            column = figures.column
            if figures.group:
                return 3, 0
            if column.cost is not None:
                return {"latency_ms": 0, "price_per_1000_queries": 2}.get(column.key, 4), columns.index(figures)
            if column.key == last[column.family]:
                return 1, columns.index(figures)
            return 5, 1 / (Measure.parse(column.key).cutoff or 1)

        rest = [figures for figures in columns if figures.group or figures.column.key != self.view.main_measure]
        by_importance = groupby(sorted(rest, key=importance, reverse=True), importance)
        return [list(equal) for _, equal in by_importance]

    def _fitted(
        self,
        options: ConsoleOptions,
        columns: Sequence[_Figures],
        left_out_first: Sequence[Sequence[_Figures]],
        draw: Callable[[Sequence[_Figures], ConsoleOptions, bool], Table],
    ) -> tuple[Table, list[_Figures]]:
        """Draw as many columns as fit the terminal, and return them; without the axes of a grid if figures need their room."""

        def fits(table: Table) -> bool:
            widths = [column.width or 0 for column in table.columns]  # every column has one, with a space between two
            return self.whole or sum(widths) + len(widths) - 1 <= options.max_width

        for with_axes in (True, False):
            shown = list(columns)
            table = draw(shown, options, with_axes)
            for left_out in left_out_first:
                if fits(table) or (with_axes and len(shown) <= _FEWEST_BESIDE_AXES):
                    break
                shown = [figures for figures in shown if figures not in left_out]
                table = draw(shown, options, with_axes)
            if fits(table):
                break
        return table, shown

    def _table(self, shown: Sequence[_Figures], options: ConsoleOptions, with_axes: bool) -> Table:
        view = self.view
        blocks = list(view.groups) if self.verbose else list(view.groups[:1])
        titles = [printable(str(block)) for block in blocks] if len(blocks) > 1 else []
        table = _empty_table(options)
        results = best_first(view.report)
        labels = self._add_labels(table, results, titles, grid_axes(view.report) if with_axes else {}, options)
        rows = {(group.name, row.result.name): row for group in view.groups for row in group.rows}
        columns = [
            _add_figures(
                table,
                self._heading(figures, any(other.group for other in shown)),
                [
                    self._figure(rows[figures.group or block.name, result.name].cells[figures.column.key], options)
                    for block in blocks
                    for result in results
                ],
            )
            for figures in shown
        ]
        for number in range(len(blocks) * len(results)):
            block, position = divmod(number, len(results))
            if titles and not position:
                table.add_section()
                table.add_row(Text(titles[block], style="italic"))
            table.add_row(*labels[position], *(column[number] for column in columns))
        return table

    def _add_labels(
        self,
        table: Table,
        results: Sequence[ConfigurationResult],
        titles: Sequence[str],
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
                column = next(column for column in columns if column[position])
                column[position] += " *"
        room = options.max_width // (5 if axes else 3)
        widths = [
            min(_WIDEST_AXIS, max(min(_WIDEST_HEADING, cell_len(heading)), *map(cell_len, column)))
            for heading, column in zip(headings, columns, strict=True)
        ]
        if any(names):
            widths[0] = min(max(map(cell_len, [*names, *titles, "configuration"])), max(_NARROWEST_NAME, room))
        for heading, width in zip(headings, widths, strict=True):
            table.add_column(_broken(heading, width), width=width + 1, overflow="fold")
        rows = zip(*columns, strict=True)
        return [[Text(_broken(text, width)) for text, width in zip(row, widths, strict=True)] for row in rows]

    def _heading(self, figures: _Figures, by_group: bool) -> list[str]:
        column = figures.column
        if column.key == "latency_ms":
            lines = ["ms per", "query"]
        elif column.label.startswith("@"):
            lines = [_SHORT.get(column.family, family_label(column.family)), column.label]
        else:
            lines = column.label.split(" ")
        if column.key == self.view.main_measure and not self.verbose:
            group = next(group for group in self.view.groups if group.name == figures.group)
            lines += _broken(printable(group.name) or "all", _WIDEST_HEADING).split("\n") * by_group
            lines += [] if group.count is None else [f"n={group.count:,}"]
        return lines

    def _figure(self, cell: Cell, options: ConsoleOptions) -> tuple[Text, Text]:
        """Return a figure and its mark."""
        if cell.repeated:  # repeating a cost per group would suggest that it was measured there
            return Text(""), Text("")
        ascii_only = options.ascii_only
        mark = Text((SIGNS if ascii_only else TRIANGLES).of(cell.comparison), _VERDICTS[cell.verdict])
        if cell.on_front or cell.tied:
            front, tie = (ASCII_MARK, ASCII_TIE) if ascii_only else (MARK, TIE)
            mark = Text(front if cell.on_front else tie)
        return Text(_printed(cell, options), "bold" if cell.best else ""), mark

    def _table_of_models(self, shown: Sequence[_Figures], options: ConsoleOptions, with_axes: bool) -> Table:
        del with_axes
        keys = [figures.column.key for figures in shown]
        of_all = {row.result.name: row for row in self.view.groups[0].rows}
        results = [
            result
            for result in best_first(self.view.report)
            if any(of_all[result.name].cells[column.key].value is not None for column in self.view.model_columns)
        ]
        table = _empty_table(options)
        labels = self._add_labels(table, results, [], {}, options)
        columns = [
            _add_figures(
                table,
                figures.column.label.split(" "),
                [(Text(_printed(of_all[result.name].cells[key], options)), Text("")) for result in results],
            )
            for figures, key in zip(shown, keys, strict=True)
        ]
        for row in zip(labels, *columns, strict=True):
            table.add_row(*row[0], *row[1:])
        return table

    def _two_notes(self, shown: Sequence[_Figures], left_out: int, options: ConsoleOptions) -> Iterator[str]:
        """What the marks mean, and how to see what is not shown."""
        view = self.view
        groups = {group.name: group for group in view.groups}
        cells = [row.cells[figures.column.key] for figures in shown for row in groups[figures.group].rows]
        marks, verdicts = SIGNS if options.ascii_only else TRIANGLES, {cell.verdict for cell in cells}
        said, untested = ["* baseline"], ""
        if view.comparisons:
            said += [f"{marks.better} better"] * ("better" in verdicts) + [f"{marks.worse} worse"] * ("worse" in verdicts)
            level = f"(corrected p < {ALPHA:g})".replace("0.", ".")
            said[1:] = said[1:] or ["nothing significant"]
            said[-1] += f" {level}"
        elif len(view.report.configurations) > 1:
            untested = "; differences are not tested for significance"
        front, tie = (ASCII_MARK, ASCII_TIE) if options.ascii_only else (MARK, TIE)
        said += [f"{front} Pareto front"] * any(cell.on_front for cell in cells)
        said += [f"{tie} tied"] * any(cell.tied for cell in cells)
        yield ", ".join(said) + untested
        more = [*["every group"] * (len(groups) > 1), *["how it was tested"] * bool(view.comparisons)]
        if note := " ".join(filter(None, [_left_out(left_out), f"--verbose: {', '.join(more)}." if more else ""])):
            yield note

    def _every_note(self, shown: Sequence[_Figures], left_out: int, options: ConsoleOptions, *, bold: bool) -> Iterator[str]:
        view, ascii_only = self.view, options.ascii_only
        legend = view.legends[SIGNS if ascii_only else TRIANGLES]
        yield " ".join(filter(None, ["* baseline.", _left_out(left_out), legend, NO_VERDICT if bold else ""]))
        if view.chance:
            yield view.chance
        if any(figures.column.key in view.fronts for figures in shown):
            yield view.front_legends[ASCII_MARK if ascii_only else MARK]
        if ties := tied_with_best(view.report):
            best = best_first(view.report)[0].name
            yield printable(f"Not distinguishable from {best} in {view.main_measure}: {'; '.join(ties)}.")
        for reason, groups in view.out_of_reach.items():
            yield f"{', '.join(printable(str(group)) for group in groups)}: {NOTHING_TO_FIND}: {reason}."

    def _warnings(self) -> Iterator[str]:
        """Whatever a reader of the figures must know."""
        view, counts = self.view, self.view.report.counted
        plain = "" if counts is None else f"Counted: {counted(counts.queries, 'query', 'queries')}."
        yield from filter(None, [view.counted if self.verbose or view.counted != plain else "", view.small_sample, view.timing])
        yield from map(printable, view.cautions)
        yield from view.failures


def _left_out(columns: int) -> str:
    return f"{counted(columns, 'column')} left out (--columns all)." if columns else ""


def _empty_table(options: ConsoleOptions) -> Table:
    is_plain = options.ascii_only  # a box has a space between columns
    return Table(box=None if is_plain else SIMPLE_HEAD, padding=(0, int(is_plain), 0, 0), pad_edge=False, show_edge=False)


def _add_figures(table: Table, heading: Sequence[str], figures: Sequence[tuple[Text, Text]]) -> list[Text]:
    """Add a column whose marks have a place of their own, so that figures are aligned; return its texts."""
    width = max(cell_len(text) for text in [*heading, *(figure.plain for figure, _ in figures)])
    slot = max((mark.cell_len for _, mark in figures), default=0)
    lines = [f"{' ' * (width - cell_len(line))}{line}" for line in heading]
    table.add_column("\n".join(lines), width=width + slot, no_wrap=True)
    return [Text.assemble(" " * (width - figure.cell_len), figure, mark) for figure, mark in figures]


def _broken(name: str, width: int) -> str:
    """Break a name at its parts into lines: at spaces, otherwise after ``>``, ``+``, ``/`` and then other signs."""
    lines = [""]

    def add(part: str, places: Sequence[str]) -> None:
        if cell_len(lines[-1] + part.rstrip()) <= width:
            lines[-1] += part
        elif cell_len(part.rstrip()) <= width or not places:
            lines.append(part)
        else:
            for smaller in re.split(places[0], part):
                add(smaller, places[1:])

    add(name, _PARTS)
    return "\n".join(line.rstrip() for line in lines if line)


def _printed(cell: Cell, options: ConsoleOptions) -> str:
    return cell.text.translate(_IN_ASCII) if options.ascii_only else cell.text
