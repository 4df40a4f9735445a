"""``nlp-retrieval benchmark``: several searchers over the same queries, from a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.table_output import ColumnsOption, FormatOption, TableFormat, names_of, print_comparison
from nlp_retrieval.errors import DependencyError, RetrievalError

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.config import BenchmarkConfig
    from nlp_retrieval.benchmarks.results import BenchmarkReport

NAME = "benchmark"

_HANDFUL = 5
"""So many configurations need no plan."""


def command(
    config: Annotated[Path, typer.Argument(help="The configuration file (YAML).")],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the run's files, instead of the file's own.")
    ] = None,
    wandb: Annotated[bool, typer.Option(help="Log to Weights & Biases, where the file says so.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done, and do nothing: no index, no model, no file.")
    ] = False,
    form: FormatOption = TableFormat.TABLE,
    columns: ColumnsOption = None,
) -> None:
    """Compare searchers over the same queries.

    Prints a table; writes a page, results, tables for papers, costs, a manifest, TREC runs, and Weights & Biases runs.
    What configurations have in common is computed once, and kept: a benchmark that was interrupted goes on where it
    stopped when it is run again. With a grid, or many searchers, what is going to be done is printed first. A configuration
    that fails does not keep the others from being compared; the command then ends with 1, or with 4 where all that is missing
    has to be installed.
    """
    from rich.console import Console

    from nlp_retrieval.benchmarks.config import read_benchmark_config
    from nlp_retrieval.benchmarks.plans.plan import plan_of
    from nlp_retrieval.benchmarks.settings import BenchmarkSettings
    from nlp_retrieval.reports.tables.plain import refuse_unknown_columns
    from nlp_retrieval.reports.terminal.plan import PlanTables

    described = read_benchmark_config(config)
    refuse_unknown_columns(names_of(columns), described.options.get("k_values", BenchmarkSettings.k_values))
    if dry_run:
        _check_output(described, output or described.output, log=wandb)
    if dry_run or described.grid is not None or len(described.searchers) > _HANDFUL:
        plan = plan_of(described.settings(), described.grid, described.halving)
        Console(stderr=not dry_run).print(PlanTables(plan, whole=dry_run))
    if not dry_run:
        refuse_failures(run_benchmark(described, output, log=wandb, form=form, columns=columns))


def refuse_failures(report: BenchmarkReport) -> None:
    """End with an error where configurations failed, once everything else is done.

    Raises:
        DependencyError: all that is wrong is that something is not installed.
        RetrievalError: something else is wrong.
    """
    if report.failed:
        missing = {"DependencyError", "JavaError"}
        kind = DependencyError if all(one.error in missing for one in report.failed) else RetrievalError
        raise kind(
            f"{len(report.failed)} of {len(report.failed) + len(report.configurations)} configurations failed: "
            + "; ".join(f"{one.name}: {one.reason}" for one in report.failed)
        )


def _check_output(config: BenchmarkConfig, folder: Path, *, log: bool) -> None:
    """Find out before the work whether what comes of it can be put where it is wanted."""
    from nlp_retrieval.core.files.output import check_folder_for_output
    from nlp_retrieval.reports.wandb.ready import mode_of

    check_folder_for_output(folder)
    if config.wandb is not None and log:
        mode_of(config.wandb)


def run_benchmark(
    config: BenchmarkConfig,
    output: Path | None,
    *,
    log: bool,
    form: TableFormat = TableFormat.TABLE,
    columns: str | None = None,
) -> BenchmarkReport:
    """Run a benchmark, print the table, and say where the files are."""
    from nlp_retrieval.benchmarks.halving import halve, with_record
    from nlp_retrieval.benchmarks.running import run_searchers
    from nlp_retrieval.reports.wandb.runs import log_to_wandb
    from nlp_retrieval.reports.write import write_run_files

    folder = output or config.output
    _check_output(config, folder, log=log)
    settings = config.settings(folder)
    halved = halve(settings, config.halving, say) if config.halving is not None else None
    run = run_searchers(settings if halved is None else halved.settings, say)
    report = write_run_files(run if halved is None else with_record(run, halved), folder)
    print_comparison(report, form, columns)
    if halved is not None:
        say(halved.note)
    say(f"page: {report.files['report']}")
    say(f"results, tables (Markdown, LaTeX, Parquet), costs, manifest and TREC runs: {folder}")
    if config.wandb is not None and log:
        say("logging to Weights & Biases")
        runs = log_to_wandb(report, config.wandb, folder)
        say(f"Weights & Biases runs: {runs[0].parent}")
        if runs[0].name.startswith("offline-"):
            say(f"  look at them in a terminal: wandb leet {runs[0].parent}")
            say(f"  put them online: wandb sync {runs[0].parent}/offline-run-*")
    return report
