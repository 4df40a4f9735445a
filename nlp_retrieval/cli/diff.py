"""``nlp-retrieval diff``: explain why two runs rank a query differently."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.table_output import IdenticalIds

if TYPE_CHECKING:
    from nlp_retrieval.evaluation.rankings import RunLists

NAME = "diff"


class Shown(StrEnum):
    """Amount of text shown of a passage."""

    SNIPPET = "snippet"
    ALL = "all"
    NONE = "none"


def command(
    run_a: Annotated[str, typer.Argument(help="FOLDER:CONFIGURATION of a benchmark's output, or a TREC run file.")],
    run_b: Annotated[str, typer.Argument(help="The run to compare it with.")],
    query: Annotated[
        str | None, typer.Option("--query", help="A query id; default: list the queries that change most.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="Number of hits to compare in each list.")] = 10,
    measure: Annotated[str, typer.Option(help="Measure of change: recall, ndcg, mrr, ...")] = "recall",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of queries to list.")] = 20,
    qrels: Annotated[
        Path | None,
        typer.Option(
            "--qrels", help="Judgements of TREC run files: TREC's, CSV, TSV or JSON lines. Default: qrels.txt next to them."
        ),
    ] = None,
    across_corpora: Annotated[
        bool, typer.Option("--across-corpora", help="Compare corpora: allow runs of different ones.")
    ] = False,
    ignore_identical_ids: IdenticalIds = None,
    text: Annotated[
        Shown, typer.Option("--text", help="Amount of text to show of each passage, if the run has it.")
    ] = Shown.SNIPPET,
) -> None:
    """Show two rankings of a query side by side.

    Shows which documents entered, left and moved from the first run to the second, which are gold, and which signals moved with
    them. Without --query, lists the queries that change most. A TREC run file has no signals, unless a benchmark wrote it
    and its other files still exist.
    """
    from rich.console import Console

    from nlp_retrieval.benchmarks.runs import read_sources
    from nlp_retrieval.evaluation.ranking_difference import changed_queries, difference
    from nlp_retrieval.reports.snippets import common_words
    from nlp_retrieval.reports.terminal import difference_view, queries_view

    sources = read_sources([run_a, run_b], qrels, across_corpora=across_corpora, ignore_identical_ids=ignore_identical_ids)
    lists = sources.lists
    one, other = _two(lists, run_a, run_b)
    for note in sources.notes:
        say(f"note: {note}")
    if sources.own.ignored:
        say(f"note: of {sources.own.ignored:,} queries the hit that is the query itself (same id) is left out")
    console = Console(highlight=False)
    if query is None:
        changed = changed_queries(lists, one, other, k, measure)
        console.print(queries_view(lists, one, other, changed[:limit], f"{measure}@{k}", len(changed)))
        hopeless = len(lists.query_ids) - len(sources.unjudged) - len(changed)
        if hopeless:
            say(f"note: {hopeless:,} judged queries have no relevant document and are not listed; name one with --query")
        if sources.unjudged:
            first = f"the first: {sources.unjudged[0]!r}"
            say(f"note: {len(sources.unjudged):,} queries without judgements ({first}) are not listed; name one with --query")
        return
    passages = lists.passages if text is not Shown.NONE else {}
    common = common_words(list(passages.values()), lists.texts)
    console.print(difference_view(difference(lists, one, other, query, k), passages, common, whole=text is Shown.ALL))
    if text is not Shown.NONE and not passages:
        say("note: the run has no texts of passages; run the benchmark again to see them")
    without = [name for name in (one, other) if not lists.listings[name].signals]
    if without:
        say(f"note: {' and '.join(without)}: no signals; give FOLDER:CONFIGURATION of a benchmark's output to see them")


def _two(lists: RunLists, run_a: str, run_b: str) -> tuple[str, str]:
    from nlp_retrieval.errors import ConfigurationError

    names = list(lists.listings)
    if len(names) != 2:
        raise ConfigurationError(
            f"{run_a} and {run_b} hold {len(names)} runs ({', '.join(names)}); name two, each as FOLDER:CONFIGURATION or a file"
        )
    return names[0], names[1]
