"""``nlp-retrieval compare``: compare finished runs, of this or any other tool, over the same queries."""

from __future__ import annotations

from os.path import realpath
from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.table_output import (
    ColumnsOption,
    FormatOption,
    IdenticalIds,
    TableFormat,
    print_comparison,
    refuse_columns,
)
from nlp_retrieval.errors import SourceError

NAME = "compare"


def command(
    runs: Annotated[
        list[str],
        typer.Argument(help="Output folders of benchmarks, FOLDER:CONFIGURATION, or TREC run files."),
    ],
    qrels: Annotated[
        Path | None,
        typer.Option(
            "--qrels", help="Judgements of TREC run files: TREC's, CSV, TSV or JSON lines. Default: qrels.txt next to them."
        ),
    ] = None,
    k: Annotated[list[int] | None, typer.Option("--k", help="A cutoff. Repeatable.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="The run to compare with; by default the first.")] = None,
    output: Annotated[Path | None, typer.Option("--output", help="Folder for the page and the result files.")] = None,
    across_corpora: Annotated[
        bool, typer.Option("--across-corpora", help="Compare corpora: allow runs of different ones.")
    ] = False,
    ignore_identical_ids: IdenticalIds = None,
    form: FormatOption = TableFormat.TABLE,
    columns: ColumnsOption = None,
) -> None:
    """Compare finished runs, with significance tests.

    Nothing is searched: lists come from TREC run files and from the output folders of benchmarks. Runs with other queries,
    other gold or, without --across-corpora, another corpus are refused.
    """
    from nlp_retrieval.benchmarks.runs import compare_runs, read_sources
    from nlp_retrieval.reports.write import check_run_output, write_run_files

    if output is not None:
        check_run_output(output)
    sources = read_sources(runs, qrels, across_corpora=across_corpora, ignore_identical_ids=ignore_identical_ids)
    if output is not None and realpath(output) in {realpath(one.folder) for one in sources.saved}:
        raise SourceError(f"{output} holds one of the runs; choose another folder with --output")
    run = compare_runs(sources, k, baseline)
    refuse_columns(run.report, columns)
    report = write_run_files(run, output) if output is not None else run.report
    print_comparison(report, form, columns)
    if note := report.selection_note:
        say(note)
    if any(one.cost is not None for one in sources.entrants.values()) and not any(
        result.cost is not None for result in report.configurations
    ):
        say("note: costs were measured on different machines and are left out")
    if output is not None:
        say(f"page: {report.files['report']}")
