"""``nlp-retrieval benchmark``: several searchers over the same queries, from a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.config import BenchmarkConfig
    from nlp_retrieval.benchmarks.results import BenchmarkReport

NAME = "benchmark"


def command(
    config: Annotated[Path, typer.Argument(help="The configuration file (YAML).")],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the run's files, instead of the file's own.")
    ] = None,
    wandb: Annotated[bool, typer.Option(help="Log to Weights & Biases, where the file says so.")] = True,
) -> None:
    """Compare searchers over the same queries.

    Prints a table; writes a page, results, tables for papers, costs, a manifest, TREC runs, and Weights & Biases runs.
    What configurations have in common is computed once, and kept: a benchmark that was interrupted goes on where it
    stopped when it is run again.
    """
    from nlp_retrieval.benchmarks.config import read_benchmark_config

    run_benchmark(read_benchmark_config(config), output, log=wandb)


def run_benchmark(config: BenchmarkConfig, output: Path | None, *, log: bool) -> BenchmarkReport:
    """Run a benchmark, print the table, and say where the files are."""
    from rich.console import Console

    from nlp_retrieval.benchmarks.run_files import write_run_files
    from nlp_retrieval.benchmarks.terminal_table import summary_table
    from nlp_retrieval.benchmarks.wandb_runs import log_to_wandb

    folder = output or config.output
    run = config.benchmarker(say, folder).run()
    report = write_run_files(run, folder)
    Console().print(summary_table(report))
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
