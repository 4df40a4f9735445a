"""``nlp-retrieval hover optimize``: better instructions and demonstrations for a searcher's language model."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli import say

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks import BenchmarkConfig

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Searchers that decompose a claim hop by hop."""


class OptimizerName(StrEnum):
    """Supported optimisers of DSPy."""

    bootstrap_few_shot = "bootstrap_few_shot"
    miprov2 = "miprov2"
    gepa = "gepa"


class EffortName(StrEnum):
    """Effort of an optimiser, in its own terms."""

    light = "light"
    medium = "medium"
    heavy = "heavy"


class MetricName(StrEnum):
    """Metric of a run."""

    perfect_recall = "perfect_recall"
    recall = "recall"


@app.command("optimize")
def command(
    config: Annotated[Path, typer.Argument(help="A benchmark configuration (YAML): corpus, queries, index, searchers.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON file for the compiled program.")],
    searcher: Annotated[
        str | None,
        typer.Option("--searcher", "-s", help="The searcher to optimise; default: the first that uses a language model."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="A HoVer release file to train on; default: the claims of the configuration.")
    ] = None,
    hops: Annotated[list[int] | None, typer.Option(help="Keep claims of --train with this many hops. Repeatable.")] = None,
    optimizer: Annotated[OptimizerName, typer.Option(help="Optimiser of DSPy.")] = OptimizerName.miprov2,
    effort: Annotated[EffortName, typer.Option(help="Effort of the optimiser.")] = EffortName.light,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Approximate number of runs, one per claim and trial, instead of an effort.")
    ] = None,
    metric: Annotated[MetricName, typer.Option(help="Metric of a run, over its first 21 titles.")] = MetricName.perfect_recall,
    k: Annotated[
        int, typer.Option("-k", min=1, max=21, help="Documents per run, for a claim_phrases searcher; 21 titles count.")
    ] = 21,
    limit: Annotated[int | None, typer.Option(min=2, help="Maximum number of claims.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split by family and of the search.")] = 0,
) -> None:
    """Optimise the prompts of a searcher's language model.

    Half of the families of claims are for training, the other half decides between candidates. Use the file as the searcher's
    ``program``.
    """
    from nlp_retrieval.benchmarks import read_benchmark_config
    from nlp_retrieval.systems.hover.compiling import discrete_retrieval_eval, examples_of, hover_examples, optimize, recall

    settings = read_benchmark_config(config)
    name, program = _chosen(settings, searcher, str(config), k)
    if train is not None:
        examples = hover_examples(train, hops or None)
    else:
        examples = examples_of(settings.loaded().queries, settings.loaded().gold)
        say("note: these are the claims of the benchmark; judge the trained program on other claims")
    program.index(settings.loader, settings.index_path)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # DSPy draws its progress bars on standard output
        report = optimize(
            program,
            examples[:limit],
            metric=recall if metric is MetricName.recall else discrete_retrieval_eval,
            optimizer=optimizer.value,
            effort=effort.value,
            budget=budget,
            seed=seed,
            output=output,
            on_progress=say,
        )
    typer.echo(
        f"{name}: {metric.value} {report.before:.3f} -> {report.after:.3f} on {report.n_validation} claims "
        f"({report.n_train} trained on, {report.runs:,} runs, {report.counts})"
    )
    typer.echo(f"program: {output}")


def _chosen(settings: BenchmarkConfig, name: str | None, where: str, k: int) -> tuple[str, Any]:
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
            return searcher_name, HoverMultiHopPipeline.of_searcher(part, k)
    problem = "no searcher uses" if name is None else f"searcher {name!r} does not use"
    raise ConfigurationError(f"{where}: {problem} a language model (claim_phrases or multi_hop) to optimise")
