"""Printing the table of commands that compare: its columns and format."""

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
    """Format of the table."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


FormatOption = Annotated[
    TableFormat, typer.Option("--format", help="Format of the table; csv and json give unrounded figures.")
]
IdenticalIds = Annotated[
    bool | None,
    typer.Option(
        "--ignore-identical-ids/--count-identical-ids",
        help="Ignore hits with the id of their query, which are the query itself, as in BEIR and MTEB. Default: ignored "
        "if texts are equal or, without texts, if most queries that find such a hit find it first.",
    ),
]

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns of the table, separated by commas: recall@10, latency_ms, a family (recall, cost), or all.",
    ),
]


def names_of(columns: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in (columns or "").split(",") if name.strip()]


def refuse_columns(report: BenchmarkReport, columns: str | None) -> None:
    """Raise an error for columns that a report does not have, before anything is written.

    Raises:
        ConfigurationError: a column does not exist.
    """
    from nlp_retrieval.reports.tables import chosen_columns
    from nlp_retrieval.reports.view import view_of

    chosen_columns(view_of(report), names_of(columns))


def print_comparison(report: BenchmarkReport, form: TableFormat, columns: str | None) -> None:
    """Print the table of a comparison.

    In a pipe, the table is as wide as its columns; in a terminal, or if ``COLUMNS`` is set, columns that do not fit are left
    out, except those asked for.

    Args:
        report: a finished benchmark.
        form: the format.
        columns: their names, separated by commas; None: the usual ones, or all for other programs.

    Raises:
        ConfigurationError: a column does not exist.
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
            say(view.counted)  # outside the table, whose rows are for programs
        return
    view = replace(view, summary=chosen_columns(view, names_of(columns)))
    if form is TableFormat.MARKDOWN:
        typer.echo(markdown_table(view), nl=False)
        return
    is_whole = columns is not None or not (sys.stdout.isatty() or "COLUMNS" in os.environ)
    Console(width=_UNLIMITED if is_whole and not sys.stdout.isatty() else None).print(
        SummaryTable(view, is_whole), soft_wrap=False
    )
