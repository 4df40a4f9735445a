"""The commands ``nlp-retrieval agents``: what agents that search did, measured, shown and asked again."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.indexes import Loader, LoaderOptions, Trust, corpus_loader
from nlp_retrieval.cli.search import (
    FusionName,
    RerankerName,
    Retrievers,
    SearcherConfig,
    SearcherName,
    composed,
    configured,
    parse_filter,
)

if TYPE_CHECKING:
    from nlp_retrieval.agents.measures import TrajectoryEvaluation
    from nlp_retrieval.agents.trajectory import Trajectory
    from nlp_retrieval.core.models import Query

app = typer.Typer(help="Measure what agents searched, step by step.", no_args_is_help=True, add_completion=False)

Files = Annotated[
    list[Path],
    typer.Argument(
        help="Files of trajectories, or a folder of an agent: JSON lines, recordings, transcripts of OpenAI or Anthropic."
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool", help="What a tool does whose name does not say it: kb=search, page=open, calculator=other. Repeatable."
    ),
]
Fields = Annotated[
    list[str] | None, typer.Option("--field", help="A field's name in JSON lines that is not ours: asked=query. Repeatable.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="A benchmark's YAML: its queries, gold and corpus.", rich_help_panel="Gold"),
]
Qrels = Annotated[Path | None, typer.Option("--qrels", help="Judgements, instead of a configuration.", rich_help_panel="Gold")]
CorpusOption = Annotated[
    str | None,
    typer.Option("--corpus", help="File, folder or database URL of the corpus, for titles.", rich_help_panel="Gold"),
]

_COLUMNS = {
    "perfect_recall": "perfect\nrecall",
    "recall_by_search": "by\nsearch",
    "citation_precision": "cited\nright",
    "redundancy": "seen\nbefore",
}


@app.command("evaluate")
def evaluate(
    files: Files,
    config: Config = None,
    qrels: Qrels = None,
    corpus: CorpusOption = None,
    loader: Loader = None,
    option: LoaderOptions = None,
    measure: Annotated[str, typer.Option(help="The measure by which agents are compared.")] = "recall",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of searches of recall by search; default: the most made.")
    ] = None,
    relevant_from: Annotated[int, typer.Option("--relevant-from", help="The lowest grade that is relevant.")] = 1,
    tool: Tools = None,
    field: Fields = None,
    page: Annotated[Path | None, typer.Option("--page", help="Also write a page with the steps of each question.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the means, intervals and tests as JSON.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write every measure of every question as CSV.")] = None,
) -> None:
    """Measure agents by what their searches found, at what cost.

    Recall is that of all that came back or was read. Agents are compared over the same questions, with tests over families.
    """
    from nlp_retrieval.agents.page import headline_of, trajectories_page
    from nlp_retrieval.core.files.atomic import check_file_for_output, write_output
    from nlp_retrieval.evaluation.comparison import sentence

    for path in filter(None, (page, json_file, csv_file)):
        check_file_for_output(path)
    gold = (config, qrels, corpus, loader, option)
    evaluation, trajectories, titles = _evaluated(files, gold, tool, field, relevant_from=relevant_from, limit=limit)
    comparisons = evaluation.compare(measure) if len(evaluation.agents) > 1 else []
    typer.echo(headline_of(evaluation, comparisons, measure))
    _print_table(evaluation)
    for comparison in comparisons[:10]:
        typer.echo(sentence(comparison))
    written = []
    if page is not None:
        html = trajectories_page(evaluation, trajectories, measure=measure, titles=titles)
        written.append((page, html.encode("utf-8", "replace")))
    if json_file is not None:
        written.append((json_file, _as_json(evaluation, comparisons)))
    if csv_file is not None:
        import pyarrow as pa
        from pyarrow import csv

        buffer = pa.BufferOutputStream()
        csv.write_csv(evaluation.to_arrow(), buffer)
        written.append((csv_file, buffer.getvalue().to_pybytes()))
    for path, content in written:
        write_output(path, content)
        say(f"written: {path}")


@app.command("show")
def show(
    files: Files,
    question: Annotated[str, typer.Option("--question", "-q", help="Id of the question.")],
    config: Config = None,
    qrels: Qrels = None,
    corpus: CorpusOption = None,
    loader: Loader = None,
    option: LoaderOptions = None,
    tool: Tools = None,
    field: Fields = None,
) -> None:
    """Show what each agent did for one question; with gold, where it came in."""
    from nlp_retrieval.errors import QueryError, nearest

    trajectories = _read(files, tool, field, [])
    own = [trajectory for trajectory in trajectories if trajectory.question_id == question]
    if not own:
        known = list(dict.fromkeys(trajectory.question_id for trajectory in trajectories))
        raise QueryError(f"no agent was asked {question!r}; {nearest(question, known)}")
    evaluation, titles = None, None
    if config is not None or qrels is not None:
        gold = (config, qrels, corpus, loader, option)
        evaluation, _, titles = _evaluated(files, gold, tool, field, only=question)
    typer.echo(next((trajectory.question for trajectory in own if trajectory.question), question))
    for trajectory in own:
        _print_steps(trajectory, evaluation, titles)


@app.command("replay")
def replay(
    files: Files,
    index: Annotated[Path, typer.Option("--index", "-i", help="The index to ask.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the replayed trajectories go, a .jsonl.")],
    config: SearcherConfig = None,
    searcher: SearcherName = None,
    retriever: Retrievers = None,
    fusion: FusionName = None,
    reranker: RerankerName = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Number of results; default: as each search asked for.")] = None,
    where: Annotated[str | None, typer.Option(help="A filter in JSON, in place of the recorded ones.")] = None,
    agent: Annotated[str, typer.Option(help="Name of the replayed agent.")] = "",
    tool: Tools = None,
    field: Fields = None,
    trust: Trust = False,
) -> None:
    """Ask the recorded searches of another searcher, filter or k.

    A replay is what the same queries would have found. An agent that had seen other results would have asked otherwise: the
    more results changed, the less a replay says.
    """
    from nlp_retrieval.agents.files import write_trajectories
    from nlp_retrieval.agents.replaying import replay as ask_again
    from nlp_retrieval.core.files.atomic import check_file_for_output

    check_file_for_output(output)
    trajectories = _read(files, tool, field, [])
    chosen: Any = (
        configured(config, searcher) if config is not None else composed(index, retriever, fusion, reranker, trust=trust)
    )
    chosen.open(index)
    replayed = ask_again(trajectories, chosen, agent=agent, k=k, where=None if where is None else parse_filter(where))
    write_trajectories(output, replayed.trajectories)
    typer.echo(
        f"{replayed.searches:,} searches: {replayed.same:.0%} return the same results. {replayed.undisturbed:.0%} were asked "
        "before any result of their question had changed, so the agent would have asked them in any case."
    )
    if replayed.lost_reads:
        say(f"note: {replayed.lost_reads:,} reads are left out, because their items did not come back")
    say(f"written: {output}")


@app.command("convert")
def convert(
    files: Files,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file, a .jsonl.")],
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Questions with ids, for transcripts that hold the text alone.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Name of the agent where a file names none; default: the file's.")] = None,
    tool: Tools = None,
    field: Fields = None,
) -> None:
    """Write trajectories of any form as one file of JSON lines."""
    from nlp_retrieval.agents.files import write_trajectories
    from nlp_retrieval.loaders.topics import TopicsLoader

    asked = [] if queries is None else [query for _, query in TopicsLoader(queries, "").read()]
    trajectories = _read(files, tool, field, asked, agent)
    write_trajectories(output, trajectories)
    steps = sum(len(trajectory.steps) for trajectory in trajectories)
    say(f"written: {output}, {len(trajectories):,} trajectories with {steps:,} steps")


def _read(
    files: Sequence[Path], tool: list[str] | None, field: list[str] | None, questions: Sequence[Query], agent: str | None = None
) -> list[Trajectory]:
    from nlp_retrieval.agents.files import read_trajectories, require_one_each
    from nlp_retrieval.errors import ConfigurationError

    pairs: dict[str, dict[str, Any]] = {"--tool": {}, "--field": {}}
    for name, written in (("--tool", tool), ("--field", field)):
        for text in written or []:
            key, equals, value = text.partition("=")
            if not (key and equals and value):
                example = "kb=search" if name == "--tool" else "asked=query"
                raise ConfigurationError(f"{name} {text!r}: write two names with an equals sign, as in {example}")
            pairs[name][key] = value
    read = [
        trajectory
        for file in files
        for trajectory in read_trajectories(
            file, agent=agent, tools=pairs["--tool"], fields=pairs["--field"], questions=questions
        )
    ]
    require_one_each(read, ConfigurationError, ", ".join(map(str, files)))
    return read


def _evaluated(
    files: Sequence[Path],
    gold: tuple[Path | None, Path | None, str | None, str | None, list[str] | None],
    tool: list[str] | None,
    field: list[str] | None,
    *,
    only: str | None = None,
    relevant_from: int = 1,
    limit: int | None = None,
) -> tuple[TrajectoryEvaluation, list[Trajectory], dict[str, str] | None]:
    """Evaluate all trajectories, or those of one question, by the options ``--config``, ``--qrels`` and of the corpus."""
    from nlp_retrieval.agents.measures import evaluate_trajectories
    from nlp_retrieval.benchmarks.evaluate import read_gold
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.errors import ConfigurationError, GoldError

    config, qrels, corpus, loader, option = gold
    queries: Sequence[Query] = []
    items: Any = None if corpus is None else corpus_loader(corpus, loader, option)
    if config is not None and qrels is None:
        settings: Any = read_benchmark_config(config).loaded()
        queries, judged = settings.queries, list(settings.gold)
        items = settings.loader if items is None else items
    elif qrels is not None and config is None:
        judged = read_gold(qrels)
    else:
        raise ConfigurationError("say what is relevant: --config BENCHMARK.yaml (its queries, gold and corpus) or --qrels FILE")
    titles = None if items is None else {item.item_id: item.title for item in items.stream()}
    trajectories = _read(files, tool, field, queries)
    if only is not None:
        judged = [each for each in judged if each.query_id == only]
        trajectories = [trajectory for trajectory in trajectories if trajectory.question_id == only]
        if not judged:
            raise GoldError(f"question {only!r} has no gold; leave --config and --qrels out to see its steps alone")
    families = {query.query_id: query.family for query in queries}
    evaluation = evaluate_trajectories(
        trajectories, judged, titles=titles, families=families, relevant_from=relevant_from, limit=limit
    )
    return evaluation, trajectories, titles


def _print_table(evaluation: TrajectoryEvaluation) -> None:
    from rich.console import Console
    from rich.table import Table

    means = {agent: evaluation.means(agent) for agent in evaluation.agents}
    costs = [
        (name, form)
        for name, form in (("searches", ",.1f"), ("tokens", ",.0f"), ("price", ",.4f"), ("seconds", ",.2f"))
        if not all(math.isnan(of_agent[name]) for of_agent in means.values())
    ]
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("agent", overflow="fold", min_width=8)
    for head in ("recall", "95%", *_COLUMNS.values(), *(name for name, _ in costs)):
        table.add_column(head, justify="right", no_wrap=True)
    for agent in evaluation.agents:
        low, high = evaluation.intervals[agent]["recall"]
        table.add_row(
            agent,
            f"{means[agent]['recall']:.3f}",
            f"{low:.2f}-{high:.2f}",
            *(f"{means[agent][name]:.3f}" for name in _COLUMNS),
            *(format(means[agent][name], form) for name, form in costs),
        )
    Console(highlight=False, soft_wrap=not sys.stdout.isatty()).print(table)
    typer.echo(f"{len(evaluation.query_ids):,} questions; intervals of recall over families.")


def _print_steps(trajectory: Trajectory, evaluation: TrajectoryEvaluation | None, titles: dict[str, str] | None) -> None:
    from nlp_retrieval.agents.citations import trajectory_citations
    from nlp_retrieval.agents.page import shown_steps
    from nlp_retrieval.text.printing import visible

    recall = "" if evaluation is None else f": recall {evaluation.per_query[trajectory.agent]['recall'][0]:.2f}"
    typer.echo(f"\n{visible(trajectory.agent)}{recall}")
    steps = shown_steps(trajectory, evaluation, titles)
    for number, (step, results, more) in enumerate(steps, 1):
        unnamed = "(its query is not recorded)" if step.kind == "search" else step.tool
        what = visible(step.text[:300]) if step.kind == "note" else visible(step.query or unnamed)
        error = f" ({visible(step.error)})" if step.error else ""
        typer.echo(f"{number:4}  {step.kind:6} {what}{error}")
        for result in results:
            gold, again = ("*" if result.is_gold else " "), (" (again)" if result.seen_before else "")
            title = f"  {visible(result.title)}" if result.title else ""
            typer.echo(f"           {gold} {visible(result.item_id)}{title}{again}")
        if more:
            typer.echo(f"             {more:,} more")
    if more := len(trajectory.steps) - len(steps):
        typer.echo(f"      {more:,} more steps")
    if trajectory.answer:
        typer.echo(f"      answer {visible(trajectory.answer)}")
    for citation in trajectory_citations(trajectory):
        came = f"came in step {citation.came}" if citation.came else "never came back"
        opened = f", opened in step {citation.opened}" if citation.opened else ""
        typer.echo(f"             [{visible(citation.item_id)}] {came}{opened}")


def _as_json(evaluation: TrajectoryEvaluation, comparisons: Sequence[Any]) -> bytes:
    agents = {
        agent: {
            "means": {name: None if math.isnan(value) else value for name, value in evaluation.means(agent).items()},
            "intervals": evaluation.intervals[agent],
            "recall_by_searches": evaluation.curve(agent, most=evaluation.limit).tolist(),
        }
        for agent in evaluation.agents
    }
    value = {
        "format": 2,
        "questions": len(evaluation.query_ids),
        "limit": evaluation.limit,
        "agents": agents,
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode()
