"""``nlp-retrieval tune``: fit weights to judged queries, or choose among configurations, by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import aligned, echo, say
from nlp_retrieval.errors import ConfigurationError, nearest

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.entrants import Entry
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.evaluation.tuning import TuningReport
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever


def command(
    config: Annotated[Path, typer.Argument(help="A benchmark configuration (YAML): corpus, queries, index, searchers.")],
    searcher: Annotated[str | None, typer.Option("--searcher", "-s", help="Default: the first that has weights.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation; families of queries stay together.")] = 5,
) -> None:
    """Fit the weights of link_graph or multi_signal to judgements; without either, choose among the configurations.

    Prints the results on held-out folds, in which each query is ranked by weights fitted without it, the weights fitted to all
    queries as a line for the configuration, and a recommendation. Where no searcher has such weights, as in a grid of other
    parameters, all are run, and each query is ranked by what is best on the other folds.
    """
    from nlp_retrieval.benchmarks.benchmarker import run_searchers
    from nlp_retrieval.benchmarks.comparing import best_by_folds
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.cli.runs import refuse_failures
    from nlp_retrieval.evaluation.tuning import folds_of
    from nlp_retrieval.rerankers.multi_signal.tuning import tune_signals
    from nlp_retrieval.retrievers.link_graph.tuning import tune

    settings = read_benchmark_config(config)
    chosen = _chosen(settings.searchers, searcher, str(config))
    loaded = settings.loaded()
    if chosen is None:
        folds_of([query.family for query in loaded.queries], folds, 0)  # too few families are an error before the run
        run = run_searchers(loaded, say)
        typer.echo(str(best_by_folds(run, folds=folds)))
        refuse_failures(run.report)
        return
    name, composed, retriever = chosen
    composed.index(settings.loader, settings.index_path or "")
    queries, gold, main = list(loaded.queries), list(loaded.gold), loaded.main_measure
    usual = ("recall", "perfect_recall", "ndcg")
    measures = settings.measures or [each for each in loaded.measured if each == main or each.partition("@")[0] in usual]
    if retriever is not None:
        report = tune(retriever, composed.opened, queries, gold, folds=folds, measures=measures)
        weights = report.weights
    else:
        filtered = settings.where_from
        report = tune_signals(composed, queries, gold, folds=folds, where_from=filtered, measures=measures, main=main)
        weights = {f"{signal}_weight": weight for signal, weight in report.weights.items()}
    echo(_lines(report, name))
    if report.unreachable:
        say(f"note: {report.unreachable} gold passages are not among the candidates; no weights can bring them up")
    typer.echo(f"weights: {{{', '.join(f'{key}: {weight:.3f}' for key, weight in weights.items())}}}")
    say(advice(report, main))


def _chosen(
    searchers: Mapping[str, Entry], name: str | None, where: str
) -> tuple[str, Searcher, LinkGraphRetriever | None] | None:
    """Return the searcher whose weights are fitted, and its link graph, without one for those of its multi_signal.

    None if none of several searchers has weights: one of them is chosen then.
    """
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.rerankers.multi_signal.reranker import MultiSignalReranker
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever

    if name is not None and name not in searchers:
        raise ConfigurationError(f"{where} has no searcher {name!r}; {nearest(name, searchers)}")
    for label, searcher in searchers.items():
        if name not in (None, label) or not isinstance(searcher, Searcher):
            continue
        if isinstance(searcher.reranker, MultiSignalReranker):
            return label, searcher, None
        for retriever in searcher.retrievers.values():
            if isinstance(retriever, LinkGraphRetriever):
                return label, searcher, retriever
    if name is None and len(searchers) > 1:
        return None
    raise ConfigurationError(f"{where}: no retriever link_graph or reranker multi_signal, whose weights could be fitted")


def _lines(report: TuningReport, name: str) -> Iterator[str]:
    from nlp_retrieval.evaluation.resampling import family_numbers

    groups = family_numbers(report.groups)
    yield f"{name}: {len(groups)} queries, {groups.max() + 1} groups, {len(report.fold_weights)} folds"
    rows = [("measure", "as it is", "out of fold", "difference", "95% interval")]
    for measure, before in report.before.means().items():
        after, (gain, low, high) = report.out_of_fold[measure], report.gain(measure)
        rows.append((measure, f"{before:.3f}", f"{after:.3f}", f"{gain:+z.3f}", f"{low:+z.3f} to {high:+z.3f}"))
    yield from aligned(rows)


def advice(report: TuningReport, measure: str) -> str:
    """Return whether the weights should be used, by their results on held-out queries."""
    gain, low, high = report.gain(measure)
    gain_text = f"on queries they were not fitted to, {measure} changes by {gain:+z.3f} [{low:+z.3f}, {high:+z.3f}]"
    if low > 0:
        return f"take these weights: {gain_text}"
    if high < 0:
        return f"keep the weights that you have: {gain_text}"
    return f"keep the weights that you have, or judge more queries: nothing shows that the new ones are better ({gain_text})"
