"""``nlp-retrieval hover optimize``: better instructions and demonstrations for a searcher's language model."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlp_retrieval.cli import say

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks import BenchmarkConfig

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Searchers that decompose a claim hop by hop."""


@app.command("optimize")
def command(
    config: Annotated[Path, typer.Argument(help="A benchmark configuration (YAML): corpus, queries, index, searchers.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON file for the compiled program.")],
    searcher: Annotated[
        str | None,
        typer.Option("--searcher", "-s", help="The searcher to optimise; default: the first that uses a language model."),
    ] = None,
    optimizer: Annotated[Literal["bootstrap_few_shot", "miprov2", "gepa"], typer.Option(help="Optimiser of DSPy.")] = "miprov2",
    budget: Annotated[int | None, typer.Option(min=1, help="Approximate number of runs, one per claim and trial.")] = None,
) -> None:
    """Optimise the prompts of a searcher's language model.

    Half of the families of claims are for training, the other half decides between candidates, by the share of claims all of
    whose documents are found. Use the file as the searcher's ``program``, and judge it on other claims.
    """
    from nlp_retrieval.benchmarks import read_benchmark_config
    from nlp_retrieval.systems.hover.compiling import examples_of, optimize

    settings = read_benchmark_config(config)
    name, program = _chosen(settings, searcher, str(config))
    examples = examples_of(settings.loaded().queries, settings.loaded().gold)
    program.index(settings.loader, settings.index_path)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # DSPy draws its progress bars on standard output
        report = optimize(program, examples, optimizer=optimizer, budget=budget, output=output, on_progress=say)
    typer.echo(
        f"{name}: perfect_recall {report.before:.3f} -> {report.after:.3f} on {report.n_validation} claims "
        f"({report.n_train} trained on, {report.runs:,} runs, {report.counts})"
    )
    typer.echo(f"program: {output}")


def _chosen(settings: BenchmarkConfig, name: str | None, where: str) -> tuple[str, Any]:
    """Return the searcher to optimise, as a program."""
    from nlp_retrieval import ClaimPhrases
    from nlp_retrieval.errors import ConfigurationError, nearest
    from nlp_retrieval.systems.hover.programs import HoverMultiHopPipeline
    from nlp_retrieval.systems.hover.searcher import MultiHopSearcher

    if name is not None and name not in settings.searchers:
        raise ConfigurationError(f"{where} has no searcher {name!r}; {nearest(name, settings.searchers)}")
    for searcher_name, searcher in settings.searchers.items():
        if name not in (None, searcher_name):
            continue
        part: Any = searcher
        if isinstance(part, MultiHopSearcher):
            return searcher_name, part.as_program()
        if isinstance(part.processor, ClaimPhrases):
            return searcher_name, HoverMultiHopPipeline.of_searcher(part)
    problem = "no searcher uses" if name is None else f"searcher {name!r} does not use"
    raise ConfigurationError(f"{where}: {problem} a language model (claim_phrases or multi_hop) to optimise")
