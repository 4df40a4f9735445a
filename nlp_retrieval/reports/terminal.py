"""Results for a terminal of any width."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.box import ASCII2, SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from nlp_retrieval.benchmarks.plans import Plan
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
    ASCII_MARK,
    ASCII_TIE,
    MARK,
    NO_VERDICT,
    NOTHING_TO_FIND,
    SIGNS,
    TIE,
    TRIANGLES,
    Column,
    family_label,
)
from nlp_retrieval.reports.snippets import pieces, shared_spans, snippet
from nlp_retrieval.reports.view import CALLS_AND_TOKENS, Cell, ReportView, counted
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from rich.console import OverflowMethod

# A plan for a terminal: shared parts first, long lists shortened unless all are requested, no line too wide.

_ROWS = 12
"""Maximum entries shown of each list; the rest is counted."""


@dataclass(frozen=True)
class PlanTables:
    """A plan, to be printed to a rich console, in reading order.

    Args:
        plan: the plan to print.
        whole: whether to print long lists completely.
    """

    plan: Plan
    whole: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        return _parts(self.plan, options, sys.maxsize if self.whole else _ROWS)


def _parts(plan: Plan, options: ConsoleOptions, most: int) -> Iterator[RenderableType]:
    yield Text("\n".join(_summary(plan)))
    yield from _table(options, most, ("computed once for all", "", "configurations"), _stages(plan))
    yield from _table(options, most, ("index", "", "configurations"), _indexes(plan))
    yield from _table(options, most, ("model", "where", "configurations"), _models(plan))
    yield from _table(options, most, ("language-model calls", "at most", "configurations"), _calls(plan))
    yield Text("configurations")
    for name in _shortened(list(plan.configurations), most):
        marked = f"{name} *" if name == plan.baseline else name
        cut: OverflowMethod = "fold" if most > _ROWS else "crop" if options.ascii_only else "ellipsis"
        yield Text(f"  {printable(marked)}", no_wrap=cut != "fold", overflow=cut)


def _summary(plan: Plan) -> list[str]:
    total = len(plan.configurations)
    queries = counted(plan.n_queries, "query", "queries")
    lines = [f"plan: {counted(total, 'configuration')}, {queries}, k = {_listed(plan)}, baseline {plan.baseline}"]
    if plan.filters:
        lines.append(f"filters: {counted(plan.filters, 'different one')}; queries of one filter are searched together")
    if plan.combinations is not None:
        drawn = f", {plan.drawn:,} of them drawn" if plan.drawn < plan.combinations else ""
        equal = f", {plan.equal:,} duplicates removed" if plan.equal else ""
        lines.append(f"grid: {counted(plan.combinations, 'combination')}{drawn}{equal}")
    if plan.rungs:
        rungs = [f"{configurations:,} on {queries:,}" for configurations, queries in plan.rungs]
        rungs[0] = "{:,} configurations on {:,} queries".format(*plan.rungs[0])
        lines.append(f"halving by {plan.measure}: {', then '.join(rungs)}")
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


def _table(
    options: ConsoleOptions, most: int, heads: tuple[str, str, str], rows: Sequence[tuple[str, str, str]]
) -> Iterator[Table]:
    if not rows:
        return
    table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(heads[0], overflow="fold", ratio=3)
    table.add_column(heads[1], overflow="fold", ratio=1)
    table.add_column(heads[2], justify="right", no_wrap=True)
    shown = rows[:most]
    for cells in shown:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    if len(rows) > len(shown):
        table.add_row(Text(f"and {len(rows) - len(shown):,} more", style="italic"))
    yield table


def _shortened(names: Sequence[str], most: int) -> Iterable[str]:
    if len(names) <= most:
        return names
    return [*names[: most - 1], f"and {len(names) - most + 1:,} more"]


def _listed(plan: Plan) -> str:
    return ", ".join(map(str, plan.k_values))


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


# The comparison as a table for a terminal.

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
    """The comparison for a terminal: prints with ``rich``, and leaves columns out if the terminal is narrow.

    Args:
        view: view of a finished benchmark.
        whole: whether to keep all columns, however narrow the terminal is.
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
        """Draw as many columns as fit the terminal, and return them."""
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
        """Return a figure and its mark: in a column with marks, a space if it has none."""
        if cell.repeated:  # repeating a cost per group would suggest that it was measured there
            return Text("")
        ascii_only = options.ascii_only
        mark = (SIGNS if ascii_only else TRIANGLES).of(cell.comparison) or (" " if in_marked else "")
        if cell.column.key in self.view.fronts:
            front, tie = (ASCII_MARK, ASCII_TIE) if ascii_only else (MARK, TIE)
            mark = front if cell.on_front else tie if cell.tied else " "
        return Text(_printed(cell, options), style="bold" if cell.best else "").append(mark, style="not bold")

    def _language_model_table(self, columns: Sequence[Column], width: int, options: ConsoleOptions) -> Table:
        rows = [row for row in self.view.groups[0].rows if any(row.cells[column.key].value is not None for column in columns)]
        names = [printable(row.result.name) for row in rows]
        table = _empty_table(names, width, options)
        for column in columns:
            table.add_column(column.label.replace(" ", "\n"), justify="right", no_wrap=True)
        for name, row in zip(names, rows, strict=True):
            table.add_row(Text(name), *(Text(_printed(row.cells[column.key], options)) for column in columns))
        return table


def _least_important(shown: list[Column]) -> Column:
    """Return the next columns to leave out: small cutoffs first, then nDCG, index size, price, latency, recall."""
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
    """Begin a table; a long name is wrapped over several lines before figures are left out."""
    widest = max([_NARROWEST_NAME, *map(len, names)])
    table = Table(box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    name_width = widest if width >= _UNLIMITED else min(widest, max(_NARROWEST_NAME, min(_WIDEST_NAME, width // 3)))
    table.add_column("configuration", width=name_width, overflow="fold")
    return table


def _printed(cell: Cell, options: ConsoleOptions) -> str:
    return cell.text.replace(ABSENT, "-") if options.ascii_only else cell.text


def _starred(name: str) -> str:
    return f"{name} *"
