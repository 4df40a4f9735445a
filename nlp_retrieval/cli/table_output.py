"""How the commands that compare print their table: which columns, and in which form."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.results import BenchmarkReport

_UNLIMITED = 10_000


class TableFormat(StrEnum):
    """How the table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


FormatOption = Annotated[
    TableFormat, typer.Option("--format", help="How to print the table; csv and json give every figure as measured.")
]
IdenticalIds = Annotated[
    bool | None,
    typer.Option(
        "--ignore-identical-ids/--count-identical-ids",
        help="Whether a hit with the id of its query is the query itself and does not count, as in BEIR and MTEB. Default: it "
        "is where texts are equal or, without texts, where most queries that find such a hit find it first.",
    ),
]

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns of the table, with commas between: recall@10, latency_ms, a family of them (recall, cost), or all.",
    ),
]


def names_of(columns: str | None) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in (columns or "").split(",") if name.strip()]


def refuse_columns(report: BenchmarkReport, columns: str | None) -> None:
    """Refuse columns that a report does not have, before anything is written.

    Raises:
        ConfigurationError: there is no such column.
    """
    from nlp_retrieval.reports.tables import chosen_columns
    from nlp_retrieval.reports.view import view_of

    chosen_columns(view_of(report), names_of(columns))


def print_comparison(report: BenchmarkReport, form: TableFormat, columns: str | None) -> None:
    """Print the table of a comparison.

    In a pipe a table is as wide as its columns; in a terminal, and where ``COLUMNS`` is set, columns that have no room are left
    out, but for those that were asked for.

    Args:
        report: a finished benchmark.
        form: how it is printed.
        columns: their names, with commas between; None: the usual ones, or all for other programs.

    Raises:
        ConfigurationError: there is no such column.
    """
    from dataclasses import replace

    from rich.console import Console

    from nlp_retrieval.reports.tables import ALL, chosen_columns, csv_table, json_table, markdown_table
    from nlp_retrieval.reports.terminal import SummaryTable
    from nlp_retrieval.reports.view import view_of

    view = view_of(report)
    if form in (TableFormat.CSV, TableFormat.JSON):
        write = csv_table if form is TableFormat.CSV else json_table
        typer.echo(write(view, chosen_columns(view, names_of(columns) or [ALL])), nl=False)
        if view.counted:
            say(view.counted)  # beside the table: its rows are for programs
        return
    view = replace(view, summary=chosen_columns(view, names_of(columns)))
    if form is TableFormat.MARKDOWN:
        typer.echo(markdown_table(view), nl=False)
        return
    is_whole = columns is not None or not (sys.stdout.isatty() or "COLUMNS" in os.environ)
    Console(width=_UNLIMITED if is_whole and not sys.stdout.isatty() else None).print(
        SummaryTable(view, is_whole), soft_wrap=False
    )
