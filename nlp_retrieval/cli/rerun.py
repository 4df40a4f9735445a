"""``nlp-retrieval rerun``: repeat a benchmark from its manifest, and report differences."""

from __future__ import annotations

from dataclasses import replace
from os.path import realpath
from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.table_output import TableFormat, print_comparison
from nlp_retrieval.cli.trusting import Trust
from nlp_retrieval.errors import RetrievalError, SourceError

NAME = "rerun"


def command(
    manifest: Annotated[Path, typer.Argument(help="The manifest.json of a run, or its output folder.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the new run's files; by default the old one's name and -rerun.")
    ] = None,
    index: Annotated[Path | None, typer.Option("--index", help="The index directory, instead of the manifest's.")] = None,
    trust: Trust = False,
) -> None:
    """Repeat a benchmark from its manifest.

    Reports which versions, hardware, data and models differ, and whether the results are the same; exits with 1 if they are
    not. Everything is computed again, except that a matching index is used unchanged.
    """
    from nlp_retrieval.benchmarks.benchmarker import run_searchers
    from nlp_retrieval.benchmarks.manifest import benchmark_of, differences, moved_results, read_manifest
    from nlp_retrieval.core.files.json_text import read_json_file
    from nlp_retrieval.reports.write import check_run_output, results_of, write_run_files

    before = read_manifest(manifest)
    folder = manifest if manifest.is_dir() else manifest.parent
    whole = Path(realpath(folder))
    target = output or whole.with_name(f"{whole.name}-rerun")
    if realpath(target) == realpath(folder):
        raise SourceError(f"{target} holds the run that is repeated; choose another folder with --output")
    check_run_output(target)
    run = run_searchers(benchmark_of(before, index=index, trust=trust, source=str(manifest)), say)
    if "halving" in before:
        manifest_now = run.report.manifest | {"halving": before["halving"]}
        run = replace(run, report=replace(run.report, manifest=manifest_now))
    report = write_run_files(run, target)
    print_comparison(report, TableFormat.TABLE, None)
    say(f"page: {report.files['report']}")
    changed = differences(before, report.manifest)
    for line in changed:
        say(f"different: {line}")
    if not changed:
        say("versions, hardware, data and models are the same")
    try:
        old = read_json_file(folder / "results.json")
        moved = moved_results(old, results_of(report))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        say(f"{folder / 'results.json'} cannot be read, so the results are not compared")
        return
    for line in moved:
        say(f"results: {line}")
    if moved:
        raise RetrievalError("the results are not those of before; what is different stands above")
    say("results: the same, to the last bit")
