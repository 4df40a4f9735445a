"""Two rankings of a query side by side, and the queries that change most, for a terminal of any width.

What entered, left, moved or is gold is said in words: colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest

from rich.box import ASCII2
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nlp_retrieval.evaluation.changed_queries import ChangedQuery
from nlp_retrieval.evaluation.ranking_difference import HitDifference, MissedGold, QueryDifference, Seen, SignalMove
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.snippets import pieces, shared_spans, snippet
from nlp_retrieval.text.printing import printable

__all__ = ["difference_view", "queries_view"]

_MISSING: dict[Seen, str] = {"unseen": "not found by it", "absent": "no such signal", "unlisted": "not in the list", "seen": ""}
_STYLES = {"entered": "green", "left": "red", "up": "green", "down": "red", "same": "dim"}


def difference_view(
    found: QueryDifference, passages: Mapping[str, str] | None = None, common: Collection[str] = (), *, whole: bool = False
) -> RenderableType:
    """Return two lists side by side, then what was found and the signals that moved with each hit, for ``rich`` to print.

    Args:
        found: of a query.
        passages: texts by item id; what has none is shown without.
        common: words that are not marked.
        whole: show all of a text, not the part that the query is about.
    """
    heading = [Text(f"{printable(found.query_id)}: ", "bold").append(printable(found.text), "not bold")]
    if found.group is not None:
        heading.append(Text(printable(found.group), "dim"))
    return Group(
        *heading, Text(""), _lists(found), *_missed(found), *_texts(found, passages or {}, common, whole), *_moved(found)
    )


def queries_view(
    lists: RunLists, one: str, other: str, changed: Sequence[ChangedQuery], measure: str, total: int
) -> RenderableType:
    """Return the queries that change most as a table for ``rich`` to print.

    Args:
        lists: of the two runs.
        one: the first run.
        other: the second.
        changed: queries, in the order in which they are shown.
        measure: what changed, such as ``"recall@10"``.
        total: how many queries there are.
    """
    table = _table()
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
    said = f"{measure} from {printable(one)} to {printable(other)}: the {len(changed)} of {total:,} queries that change most"
    return Group(Text(said), table, Text("Name one with --query to see both lists.", "dim"))


def _table() -> Table:
    return Table(box=ASCII2, expand=True, show_edge=False, pad_edge=False, padding=(0, 1))


def _lists(found: QueryDifference) -> Table:
    table = _table()
    table.add_column("", justify="right", no_wrap=True, width=len(str(found.k)))
    for name, recall in ((found.one, found.one_recall), (found.other, found.other_recall)):
        heading = Text(printable(name), "bold")
        if recall is not None:
            heading.append(f"\nrecall@{found.k} {recall:.3f}", "not bold")
        table.add_column(heading, ratio=1, overflow="fold")
    for rank, (mine, theirs) in enumerate(zip_longest(found.one_list, found.other_list), start=1):
        table.add_row(str(rank), _cell(mine, found.other), _cell(theirs, None))
    if not found.hits:
        table.add_row("", "nothing found", "nothing found")
    return table


def _cell(hit: HitDifference | None, other: str | None) -> Text:
    """A hit of the first list where ``other`` names the second; else one of the second."""
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


def _missed(found: QueryDifference) -> Iterator[Text]:
    if found.missed:
        yield Text(f"\nGold that neither has in its first {found.k}:", "bold")
    for one in found.missed:
        yield Text(f"  {_named(one)}").append(_where(one, found), "dim")


def _where(one: MissedGold, found: QueryDifference) -> str:
    ranks = ((one.one_rank, found.one), (one.other_rank, found.other))
    return "".join(f", rank {rank} in {printable(name)}" for rank, name in ranks if rank is not None)


def _texts(found: QueryDifference, passages: Mapping[str, str], common: Collection[str], whole: bool) -> Iterator[Text]:
    """The text of each hit and of missed gold, once, with the words that it shares with the query in bold."""
    every: list[HitDifference | MissedGold] = [*found.hits, *found.missed]
    shown = [one for one in every if passages.get(one.item_id)]
    if shown:
        yield Text("\nWhat they say:" if whole else "\nWhat they say of it:", "bold")
    for one in shown:
        text = printable(" ".join(passages[one.item_id].split()))
        spans = shared_spans(text, found.text, common)
        part = (0, len(text)) if whole else snippet(text, spans)
        line = (
            Text(f"  {_named(one)}", "bold" if one.grade else "")
            .append(" [gold]" if one.grade else "", "bold yellow")
            .append(": ")
        )
        line.append("... " if part[0] else "")
        for piece, is_shared in pieces(text, part, spans):
            line.append(piece, "bold" if is_shared else "dim")
        yield line.append(" ..." if part[1] < len(text) else "")


def _moved(found: QueryDifference) -> Iterator[RenderableType]:
    moved = [hit for hit in found.hits if hit.moved_by]
    if not moved:
        return
    yield Text(f"\nSignals of what moved, {printable(found.one)} to {printable(found.other)}:", "bold")
    for hit in moved:
        gold = " [gold]" if hit.grade else ""
        yield Text(f"{_named(hit)}{gold}: {_rank(hit.one_rank, found.k)} to {_rank(hit.other_rank, found.k)}")
        for signal in hit.moved_by:
            yield Text(f"    {_told(signal)}", "dim")


def _named(one: HitDifference | MissedGold) -> str:
    return f"{printable(one.title)} ({printable(one.item_id)})" if one.title else printable(one.item_id)


def _rank(rank: int | None, k: int) -> str:
    return "not in the list" if rank is None else f"rank {rank}" + (f" (beyond {k})" if rank > k else "")


def _told(signal: SignalMove) -> str:
    sides = [(signal.one, signal.one_rank, signal.one_seen), (signal.other, signal.other_rank, signal.other_seen)]
    before, after = (f"{value:.4g}, rank {rank}" if value is not None else _MISSING[seen] for value, rank, seen in sides)
    return f"{printable(signal.name)}: {before} -> {after}"
