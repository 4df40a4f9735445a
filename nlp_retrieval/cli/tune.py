"""``nlp-retrieval tune``: the weights of a link graph, fitted to judged queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.benchmarkable import Entry
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.pipelines.link_graph_tuning import TuningReport
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever

NAME = "tune"


def command(
    config: Annotated[Path, typer.Argument(help="A benchmark configuration (YAML): corpus, queries, index, searchers.")],
    searcher: Annotated[
        str | None,
        typer.Option("--searcher", "-s", help="The searcher with the link_graph; by default the first that has one."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation; families of queries stay together.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the assignment of families to folds.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", help="Also write the fitted weights to this JSON file.")] = None,
) -> None:
    """Fit the weights of a link_graph to judged queries.

    Prints what that brings out of fold, where each query is ranked by weights that it had no part in, and the weights
    fitted to all queries as a line for the configuration.
    """
    from nlp_retrieval.benchmarks.config import read_benchmark_config
    from nlp_retrieval.core.files.output import write_output
    from nlp_retrieval.pipelines.link_graph_tuning import tune

    settings = read_benchmark_config(config)
    name, composed, retriever = _chosen(settings.searchers, searcher, str(config))
    composed.index(settings.corpus, settings.index)
    k_values = settings.options.get("k_values", [2, 5, 10])
    report = tune(
        retriever, composed.opened, settings.queries.queries(), settings.queries.gold(), k_values, folds=folds, seed=seed
    )
    _print(report, name, k_values)
    if output is not None:
        write_output(output, (json.dumps(report.weights, indent=2) + "\n").encode())
        say(f"weights: {output}")


def _chosen(searchers: Mapping[str, Entry], name: str | None, where: str) -> tuple[str, Searcher, LinkGraphRetriever]:
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.errors import ConfigurationError, nearest
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever

    if name is not None and name not in searchers:
        raise ConfigurationError(f"{where} has no searcher {name!r}; {nearest(name, searchers)}")
    composed = {one: searcher for one, searcher in searchers.items() if isinstance(searcher, Searcher)}
    for one, searcher in composed.items():
        for retriever in searcher.retrievers.values():
            if isinstance(retriever, LinkGraphRetriever) and name in (None, one):
                return one, searcher, retriever
    which = "no searcher" if name is None else f"the searcher {name!r} is not one that"
    raise ConfigurationError(f"{where}: {which} has a retriever link_graph, whose weights could be fitted")


def _print(report: TuningReport, name: str, k_values: list[int]) -> None:
    from rich.console import Console
    from rich.table import Table

    n_queries = len(report.families)
    title = f"{name}: {n_queries} queries, {len(report.fold_weights)} folds"
    table = Table("measure", "as it is", "out of fold", "difference", "95% interval", title=title)
    before, after = report.before.means(), report.out_of_fold.means()
    for measure in [f"{kind}@{k}" for kind in ("recall", "perfect_recall", "ndcg") for k in sorted({*k_values})]:
        gain, low, high = report.gain(measure)
        table.add_row(measure, f"{before[measure]:.3f}", f"{after[measure]:.3f}", f"{gain:+.3f}", f"{low:+.3f} to {high:+.3f}")
    Console().print(table)
    if report.unreachable:
        say(f"note: {report.unreachable} gold passages are not among the candidates; no weights can bring them up")
    weights = ", ".join(f"{kind}: {weight:.3f}" for kind, weight in report.weights.items())
    typer.echo(f"weights: {{{weights}}}")
