"""``nlp-retrieval benchmark``: compare searchers over the same queries, from a configuration file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.table_output import ColumnsOption, FormatOption, TableFormat, names_of, print_comparison
from nlp_retrieval.cli.worker_options import RayOption, WorkersOption
from nlp_retrieval.errors import DependencyError, RetrievalError

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.results import BenchmarkReport
    from nlp_retrieval.benchmarks.settings import BenchmarkConfig
    from nlp_retrieval.reports.trackers import RunLogger

NAME = "benchmark"


class Tracker(StrEnum):
    """Trackers that runs can be logged to."""

    WANDB = "wandb"
    MLFLOW = "mlflow"
    TENSORBOARD = "tensorboard"


_HANDFUL = 5
"""Maximum number of configurations without a printed plan."""


def command(
    config: Annotated[Path, typer.Argument(help="The configuration file (YAML).")],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the run's files, instead of the file's own.")
    ] = None,
    wandb: Annotated[bool, typer.Option(help="Log to Weights & Biases if the file asks for it.")] = True,
    log_to: Annotated[
        list[Tracker] | None,
        typer.Option("--log-to", help="Log to this tracker instead of those in the file. Repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and exit, without using an index, a model or files.")
    ] = False,
    form: FormatOption = TableFormat.TABLE,
    columns: ColumnsOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
) -> None:
    """Compare searchers over the same queries.

    Prints a table; writes a page, results, tables for papers, costs, a manifest and TREC runs; optionally logs to Weights &
    Biases, MLflow or TensorBoard.
    Work shared by configurations is computed once, and stored: after an interruption, repeat the command to
    continue. With --workers or --ray, other processes encode the index, search and rerank;
    latency is timed in this one. With a grid, or many searchers, the plan is printed first. A configuration
    that fails does not stop the others; the command then exits with 1, or with 4 if the only failures are
    missing packages.
    """
    from rich.console import Console

    from nlp_retrieval.benchmarks.plans import plan_of
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.reports.tables import refuse_unknown_columns
    from nlp_retrieval.reports.terminal import PlanTables
    from nlp_retrieval.reports.trackers import loggers_of

    described = replace(read_benchmark_config(config), workers=workers, ray=ray)
    if not wandb:
        described = replace(described, wandb=None)
    loggers = loggers_of(described, log_to or ())
    refuse_unknown_columns(names_of(columns), described.k_values)
    if dry_run:
        _check_output(output or described.output_folder, loggers)
    if dry_run or described.grid is not None or len(described.searchers) > _HANDFUL:
        plan = plan_of(described.settings(), described.grid, described.halving)
        Console(stderr=not dry_run).print(PlanTables(plan, whole=dry_run))
    if not dry_run:
        refuse_failures(run_benchmark(described, output, loggers, form=form, columns=columns))


def refuse_failures(report: BenchmarkReport) -> None:
    """Raise an error if configurations failed, after everything else is done.

    Raises:
        DependencyError: the only failures are missing packages.
        RetrievalError: there are other failures.
    """
    if report.failed:
        missing = {"DependencyError", "JavaError"}
        kind = DependencyError if all(one.error in missing for one in report.failed) else RetrievalError
        raise kind(
            f"{len(report.failed)} of {len(report.failed) + len(report.configurations)} configurations failed: "
            + "; ".join(f"{one.name}: {one.reason}" for one in report.failed)
        )


def _check_output(folder: Path, loggers: Sequence[RunLogger]) -> None:
    """Check before the run that its output can be written, and report where runs are logged."""
    from nlp_retrieval.reports.write import check_run_output

    check_run_output(folder)
    for logger in loggers:
        say(logger.check(folder))


def run_benchmark(
    config: BenchmarkConfig,
    output: Path | None,
    loggers: Sequence[RunLogger],
    *,
    form: TableFormat = TableFormat.TABLE,
    columns: str | None = None,
) -> BenchmarkReport:
    """Run a benchmark, print the table, log the runs, and report where everything is."""
    from nlp_retrieval.benchmarks.benchmarker import run_searchers
    from nlp_retrieval.benchmarks.grid import with_grid
    from nlp_retrieval.benchmarks.halving import halve, with_record
    from nlp_retrieval.reports.write import write_run_files

    folder = output or config.output_folder
    _check_output(folder, loggers)
    settings = config.settings(folder)
    halved = halve(settings, config.halving, say) if config.halving is not None else None
    run = run_searchers(settings if halved is None else halved.settings, say)
    if config.grid is not None:
        run = with_grid(run, config.grid)
    report = write_run_files(run if halved is None else with_record(run, halved), folder)
    print_comparison(report, form, columns)
    if halved is not None:
        say(halved.note)
    say(f"page: {report.files['report']}")
    say(f"results, tables (Markdown, LaTeX, Parquet), costs, manifest and TREC runs: {folder}")
    for logger in loggers:
        for line in logger.log(report, folder):
            say(line)
    return report
