"""``nlp-retrieval tune``: fit weights to judged queries, or choose among configurations, by cross-validation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import say

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.entrants import Entry
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.evaluation.tuning import TuningReport
    from nlp_retrieval.rerankers.multi_signal.tuning import SignalTuningReport
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever


def command(
    config: Annotated[Path, typer.Argument(help="A benchmark configuration (YAML): corpus, queries, index, searchers.")],
    searcher: Annotated[
        str | None,
        typer.Option("--searcher", "-s", help="The searcher with a link_graph or multi_signal; default: the first of these."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation; families of queries stay together.")] = 5,
    by: Annotated[
        str | None, typer.Option(help="For multi_signal: the query metadata key to split folds by; default: families.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the assignment of families to folds.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Also write the fitted weights to this JSON file.")] = None,
) -> None:
    """Fit the weights of link_graph or multi_signal to judgements; without either, choose among the configurations.

    Prints the results on held-out folds, in which each query is ranked by weights fitted without it, the contribution of each
    signal, the weights fitted to all queries as a line for the configuration, and a recommendation. Where no searcher has such
    weights, as in a grid of other parameters, all are run, and each query is ranked by what is best on the other folds.
    """
    from nlp_retrieval.benchmarks.benchmarker import run_searchers
    from nlp_retrieval.benchmarks.choosing import best_by_folds
    from nlp_retrieval.benchmarks.settings import BenchmarkConfig, read_benchmark_config
    from nlp_retrieval.cli.runs import refuse_failures
    from nlp_retrieval.core.files.atomic import check_file_for_output, write_output
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.evaluation.tuning import folds_of
    from nlp_retrieval.rerankers.multi_signal.tuning import tune_signals
    from nlp_retrieval.retrievers.link_graph.tuning import tune

    if output is not None:
        check_file_for_output(output)
    settings = read_benchmark_config(config)
    chosen = _chosen(settings.searchers, searcher, str(config))
    if chosen is None:
        if by is not None or output is not None:
            raise ConfigurationError("--by and --output are for fitted weights; no searcher here has any")
        loaded = settings.loaded()
        folds_of([query.family for query in loaded.queries], folds, seed)  # too few families are an error before the run
        run = run_searchers(loaded, say)
        typer.echo(str(best_by_folds(run, folds=folds, seed=seed)))
        refuse_failures(run.report)
        return
    name, composed, retriever = chosen
    if by is not None and retriever is not None:
        raise ConfigurationError(f"--by is for multi_signal; the searcher {name!r} has a link_graph, whose folds are families")
    composed.index(settings.loader, settings.index_folder)
    # the default of a benchmark is a tuple, and the cutoffs of a file are a list
    k_values = [2, 5, 10] if settings.k_values is BenchmarkConfig.k_values else list(settings.k_values)
    measures = settings.measures or [
        f"{family}@{k}" for family in ("recall", "perfect_recall", "ndcg") for k in sorted({*k_values})
    ]
    main = settings.main or (settings.measures[0] if settings.measures else f"ndcg@{max(k_values)}")
    whole = settings.loaded()
    queries, gold = list(whole.queries), list(whole.gold)
    if retriever is not None:
        report: TuningReport = tune(retriever, composed.opened, queries, gold, folds=folds, seed=seed, measures=measures)
        weights = report.weights
        _print(report, name, measures)
    else:
        options: Any = {"folds": folds, "seed": seed, "where_from": settings.where_from, "measures": measures, "main": main}
        signals = tune_signals(composed, queries, gold, by=by, **options)
        report, weights = signals, {f"{signal}_weight": weight for signal, weight in signals.weights.items()}
        _print(signals, name, measures)
        _print_signals(signals)
    typer.echo(f"weights: {{{', '.join(f'{key}: {weight:.3f}' for key, weight in weights.items())}}}")
    say(advice(report, main))
    if output is not None:
        write_output(output, (json.dumps(weights, indent=2) + "\n").encode())
        say(f"weights: {output}")


def _chosen(
    searchers: Mapping[str, Entry], name: str | None, where: str
) -> tuple[str, Searcher, LinkGraphRetriever | None] | None:
    """Return the searcher whose weights are fitted, and its link graph, without one for those of its multi_signal.

    None if none of several searchers has weights: one of them is chosen then.
    """
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.errors import ConfigurationError, nearest
    from nlp_retrieval.rerankers.multi_signal.reranker import MultiSignalReranker
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever

    if name is not None and name not in searchers:
        raise ConfigurationError(f"{where} has no searcher {name!r}; {nearest(name, searchers)}")
    composed = {searcher_name: searcher for searcher_name, searcher in searchers.items() if isinstance(searcher, Searcher)}
    for searcher_name, searcher in composed.items():
        if name not in (None, searcher_name):
            continue
        if isinstance(searcher.reranker, MultiSignalReranker):
            return searcher_name, searcher, None
        for retriever in searcher.retrievers.values():
            if isinstance(retriever, LinkGraphRetriever):
                return searcher_name, searcher, retriever
    if name is None and len(searchers) > 1:
        return None
    which = "no searcher" if name is None else f"the searcher {name!r} is not one that"
    raise ConfigurationError(
        f"{where}: {which} has a retriever link_graph or a reranker multi_signal, whose weights could be fitted"
    )


def _print(report: TuningReport, name: str, measures: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{name}: {len(report.groups)} queries, {len({*report.groups})} groups, {len(report.fold_weights)} folds"
    table = Table("measure", "as it is", "out of fold", "difference", "95% interval", title=title)
    before, after = report.before.means(), report.out_of_fold.means()
    for measure in measures:
        gain, low, high = report.gain(measure)
        table.add_row(measure, f"{before[measure]:.3f}", f"{after[measure]:.3f}", f"{gain:+.3f}", f"{low:+.3f} to {high:+.3f}")
    Console().print(table)
    if report.unreachable:
        say(f"note: {report.unreachable} gold passages are not among the candidates; no weights can bring them up")


def _print_signals(report: SignalTuningReport) -> None:
    from rich.console import Console
    from rich.table import Table

    worth = Table(
        "signal", "weight", "of folds", "alone", "worth", "95% interval", title=f"what each signal gives {report.measure}"
    )
    for signal, evaluation in report.alone.items():
        of_folds = [weights[signal] for weights in report.fold_weights]
        row = [signal, f"{report.weights[signal]:.2f}", f"{min(of_folds):.2f}-{max(of_folds):.2f}"]
        row.append(f"{evaluation.means()[report.measure]:.3f}")
        if signal in report.without:
            gain, low, high = report.worth(signal, report.measure)
            row += [f"{gain:+.3f}", f"{low:+.3f} to {high:+.3f}"]
        worth.add_row(*row)
    Console().print(worth)
    if report.missing:
        say(f"note: no candidate has the signal {' or '.join(report.missing)}; give what computes it, or take it for left out")


def advice(report: TuningReport, measure: str) -> str:
    """Return whether the weights should be used, by their results on held-out queries."""
    gain, low, high = report.gain(measure)
    gain_text = f"on queries they were not fitted to, {measure} changes by {gain:+.3f} [{low:+.3f}, {high:+.3f}]"
    if low > 0:
        return f"take these weights: {gain_text}"
    if high < 0:
        return f"keep the weights that you have: {gain_text}"
    return f"keep the weights that you have, or judge more queries: nothing shows that the new ones are better ({gain_text})"
