"""A plan for a terminal: what is shared first, long lists shortened unless all is asked for, no line too wide."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from nlp_retrieval.benchmarks.plans.plan import Plan
from nlp_retrieval.reports.notes import counted
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, OverflowMethod, RenderableType, RenderResult

_ROWS = 12
"""So many of each list are shown, and the rest is counted."""


@dataclass(frozen=True)
class PlanTables:
    """A plan, to be printed to a rich console: its parts in the order in which they are read.

    Args:
        plan: what is printed.
        whole: print long lists to their end.
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
        equal = f", {plan.equal:,} left out because equal to others" if plan.equal else ""
        lines.append(f"grid: {counted(plan.combinations, 'combination')}{drawn}{equal}")
    if plan.rungs:
        rungs = [f"{configurations:,} on {queries:,}" for configurations, queries in plan.rungs]
        rungs[0] = "{:,} configurations on {:,} queries".format(*plan.rungs[0])
        lines.append(f"halving by {plan.measure}: {', then '.join(rungs)}")
    states = [index.state for index in plan.indexes]
    counts = [f"{states.count(state):,} {state}" for state in ("found", "to build", "not known") if state in states]
    lines.append(f"indexes in {plan.index_path}: {', '.join(counts) or 'none'}")
    if plan.calls:
        known = sum(one.calls for one in plan.calls if one.calls is not None)
        more = "" if plan.language_model_calls is not None else ", and some that cannot be told"
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
    told = ["not known" if one.calls is None else f"{one.calls:,}" for one in plan.calls]
    return [(one.name, calls, _share(one.used_by, plan)) for one, calls in zip(plan.calls, told, strict=True)]


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
