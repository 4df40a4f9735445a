"""``nlp-retrieval report``: write the page and the tables of a finished benchmark again."""

from __future__ import annotations

from os.path import realpath
from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.table_output import ColumnsOption, FormatOption, TableFormat, print_comparison, refuse_columns
from nlp_retrieval.errors import SourceError

NAME = "report"


def command(
    folder: Annotated[Path, typer.Argument(help="The output folder of a benchmark.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the page and the result files; by default FOLDER/report.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A configuration to show. Repeatable. Default: all.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="Compare with this configuration instead.")] = None,
    form: FormatOption = TableFormat.TABLE,
    columns: ColumnsOption = None,
) -> None:
    """Write the page and the tables of a finished benchmark again.

    Nothing is searched. With another baseline or a selection of configurations, differences are tested again.
    """
    from nlp_retrieval.benchmarks.runs import judged_again, read_run_folder
    from nlp_retrieval.reports.write import check_run_output, write_run_files

    target = output or folder / "report"
    if realpath(target) == realpath(folder):
        raise SourceError(f"{target} holds the run itself; choose another folder with --output")
    check_run_output(target)
    run = judged_again(read_run_folder(folder), only or (), baseline)
    refuse_columns(run.report, columns)
    report = write_run_files(run, target)
    print_comparison(report, form, columns)
    if note := report.selection_note:
        say(note)
    say(f"page: {report.files['report']}")
