"""Commands of benchmarks and their runs: ``benchmark``, ``compare``, ``diff``; and the table that they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say, say_progress
from nlp_retrieval.cli.indexes import RayOption, WorkersOption
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalError, SourceError

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.results import BenchmarkReport
    from nlp_retrieval.benchmarks.settings import BenchmarkConfig, MlflowSettings, WandbSettings


MeasuresOption = Annotated[str | None, typer.Option(help="Instead of the file's or run's: ndcg@10,recall@100,rbp@10(p=0.8).")]
MainOption = Annotated[str | None, typer.Option(help="The measure to sort, test and draw by; default: the file's or run's.")]
IdenticalIds = Annotated[
    bool | None,
    typer.Option("--ignore-identical-ids", help="Hits with their query's id do not count. Default: as the benchmarks decided."),
]
Qrels = Annotated[Path | None, typer.Option(help="Judgements of TREC run files. Default: qrels.txt next to them.")]
AcrossCorpora = Annotated[bool, typer.Option("--across-corpora", help="Compare corpora: allow runs of different ones.")]
Baseline = Annotated[str | None, typer.Option(help="Compare with this run or configuration; default: the first, or the run's.")]
Output = Annotated[Path | None, typer.Option(help="Folder for the page and the result files.")]


def names_of(text: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def print_comparison(report: BenchmarkReport) -> None:
    """Print the table of a comparison.

    In a pipe, the table is as wide as its columns; in a terminal, or if ``COLUMNS`` is set, columns that do not fit are left
    out.
    """
    from rich.console import Console

    from nlp_retrieval.reports.terminal import SummaryTable
    from nlp_retrieval.reports.view import view_of

    is_whole = not (sys.stdout.isatty() or "COLUMNS" in os.environ)
    Console(width=10_000 if is_whole else None).print(SummaryTable(view_of(report), is_whole), soft_wrap=False)


_HANDFUL = 5
"""Maximum number of configurations without a printed plan."""
_MOST_LISTED = 20


def benchmark(
    config: Annotated[Path, typer.Argument(help="The configuration (YAML). That in a run's folder repeats the run.")],
    output: Annotated[Path | None, typer.Option(help="Folder for the run's files. Default: the file's own.")] = None,
    wandb: Annotated[bool, typer.Option(help="Log to Weights & Biases if the file asks for it.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and exit without writing anything.")] = False,
    measures: MeasuresOption = None,
    main: MainOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
) -> None:
    """Compare searchers over the same queries.

    Prints what was found and a table; writes a page, results, tables for papers, costs, a manifest and TREC runs. Work shared
    by configurations is done once and stored: after an interruption, repeat the command. With --workers or --ray, other
    processes search, and this one times. If a configuration fails, the others go on, and the exit code is 1 or 4.
    """
    from nlp_retrieval.benchmarks.settings import read_benchmark_config

    described = read_benchmark_config(config, measures=names_of(measures), main=main, workers=workers, ray=ray)
    if dry_run:
        _check_output(output or Path(described.output), _trackers(described, wandb))
    if dry_run or described.grid is not None or len(described.searchers) > _HANDFUL:
        from nlp_retrieval.benchmarks.plans import plan_of

        typer.echo("\n".join(plan_of(described.settings()).lines(whole=dry_run)), err=not dry_run)
    if not dry_run:
        refuse_failures(run_benchmark(described, output, wandb=wandb))


def refuse_failures(report: BenchmarkReport) -> None:
    """Raise an error if configurations failed, after everything else is done; of missing packages, if that is all."""
    if report.failed:
        missing = {"DependencyError", "JavaError"}
        kind = DependencyError if all(failure.error in missing for failure in report.failed) else RetrievalError
        raise kind(
            f"{len(report.failed)} of {len(report.failed) + len(report.configurations)} configurations failed: "
            + "; ".join(f"{failure.name}: {failure.reason}" for failure in report.failed)
        )


def _trackers(config: BenchmarkConfig, wandb: bool) -> list[WandbSettings | MlflowSettings]:
    return [tracker for tracker in (config.wandb if wandb else None, config.mlflow) if tracker is not None]


def _check_output(folder: Path, trackers: Sequence[WandbSettings | MlflowSettings]) -> None:
    """Check before the run that its output can be written, and report where runs are logged."""
    from nlp_retrieval.core.files.atomic import check_folder_for_output

    check_folder_for_output(folder)
    check_folder_for_output(folder / "trec")
    for tracker in trackers:
        from nlp_retrieval.reports.trackers import check_tracker

        say(check_tracker(tracker, folder))


def run_benchmark(config: BenchmarkConfig, output: Path | None = None, *, wandb: bool = True) -> BenchmarkReport:
    """Run a benchmark, print the table, log the runs, and report where everything is."""
    from nlp_retrieval.benchmarks.benchmarker import run_searchers
    from nlp_retrieval.benchmarks.grid import with_grid

    folder, trackers = output or Path(config.output), _trackers(config, wandb)
    _check_output(folder, trackers)
    run = run_searchers(config.settings(folder), say_progress)
    if config.grid is not None:
        run = with_grid(run, config.grid)
    from nlp_retrieval.core.progress_bars import progress
    from nlp_retrieval.reports.trackers import log_run
    from nlp_retrieval.reports.write import write_run_files

    with progress("writing the page and files", None):
        report = write_run_files(run, folder)
    print_comparison(report)
    say(f"page: {report.files['report']}")
    say(f"results, tables (Markdown, LaTeX, Parquet), costs, manifest and TREC runs: {folder}")
    for tracker in trackers:
        for line in log_run(report, tracker, folder):
            say(line)
    return report


def compare(
    runs: Annotated[list[str], typer.Argument(help="Output folders of benchmarks, FOLDER:CONFIGURATION, or TREC run files.")],
    qrels: Qrels = None,
    measures: MeasuresOption = None,
    main: MainOption = None,
    relevant_from: Annotated[int | None, typer.Option(min=1, help="Lowest relevant grade; default: the run's, or 1.")] = None,
    baseline: Baseline = None,
    output: Output = None,
    across_corpora: AcrossCorpora = False,
    ignore_identical_ids: IdenticalIds = None,
) -> None:
    """Compare finished runs, with significance tests.

    Nothing is searched: lists come from TREC run files and from the output folders of benchmarks. Runs with other queries,
    other gold or, without --across-corpora, another corpus are refused.
    """
    from nlp_retrieval.benchmarks.comparing import compare_runs
    from nlp_retrieval.benchmarks.runs import read_sources
    from nlp_retrieval.reports.write import write_run_files

    if output is not None:
        _check_output(output, ())
    sources = read_sources(runs, qrels, across_corpora=across_corpora, ignore_identical_ids=ignore_identical_ids)
    if output is not None and realpath(output) in {realpath(entrant.folder) for entrant in sources.saved}:
        raise SourceError(f"{output} holds one of the runs; choose another folder with --output")
    run = compare_runs(sources, baseline, measures=names_of(measures) or None, main=main, relevant_from=relevant_from)
    report = write_run_files(run, output) if output is not None else run.report
    print_comparison(report)
    costs = [entrant.cost for entrant in sources.entrants.values()]
    if any(costs) and not any(result.cost for result in report.configurations):
        say("note: costs were measured on different machines and are left out")
    if output is not None:
        say(f"page: {report.files['report']}")


def diff(
    run_a: Annotated[str, typer.Argument(help="FOLDER:CONFIGURATION of a benchmark's output, or a TREC run file.")],
    run_b: Annotated[str, typer.Argument(help="The run to compare it with.")],
    query: Annotated[str | None, typer.Option(help="A query id; default: list the queries that change most.")] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", help="Hits to compare; default: the main measure's, or 10.")] = None,
    qrels: Qrels = None,
    across_corpora: AcrossCorpora = False,
    ignore_identical_ids: IdenticalIds = None,
) -> None:
    """Show two rankings of a query side by side.

    Shows which documents entered, left and moved, which are gold, and which signals moved with them. Without --query, lists the
    queries that change most.
    """
    from rich.console import Console

    from nlp_retrieval.benchmarks.runs import read_sources
    from nlp_retrieval.evaluation.measures import MEASURES, Measure
    from nlp_retrieval.evaluation.ranking_difference import changed_queries, difference
    from nlp_retrieval.reports.terminal import difference_view, queries_view
    from nlp_retrieval.text.printing import counted

    sources = read_sources([run_a, run_b], qrels, across_corpora=across_corpora, ignore_identical_ids=ignore_identical_ids)
    lists, relevant_from = sources.lists, sources.relevant_from
    if len(lists.listings) != 2:
        raise ConfigurationError(
            f"{run_a} and {run_b} hold {len(lists.listings)} runs ({', '.join(lists.listings)}); name two, each as "
            "FOLDER:CONFIGURATION or a file"
        )
    name_a, name_b = lists.listings
    for note in sources.notes:
        say(f"note: {note}")
    if sources.own_ids:
        say(f"note: of {sources.own_ids:,} queries the hit that is the query itself (same id) is left out")
    console = Console(highlight=False)
    main = Measure.parse(sources.saved[0].report.main_measure if sources.saved else "recall@10")
    measure = main.family if main.family in MEASURES else "recall"
    k = (main.cutoff or 10) if k is None else k
    if query is None:
        changed = changed_queries(lists, name_a, name_b, k, measure, relevant_from)
        console.print(queries_view(lists, name_a, name_b, changed[:_MOST_LISTED], f"{measure}@{k}", len(changed)))
        if n := len(lists.query_ids) - len(changed):
            several = f"{counted(n, 'query', 'queries')} without a relevant document"
            say(f"note: {several}: not listed; name one with --query")
        if n := len(sources.unjudged):
            say(f"note: {counted(n, 'query', 'queries')} without judgements: left out")
        return
    console.print(difference_view(difference(lists, name_a, name_b, query, k, relevant_from)))
