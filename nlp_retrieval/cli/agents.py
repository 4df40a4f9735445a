"""The commands ``nlp-retrieval agents``: what agents that search did, measured, shown and asked again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import Trust, aligned, echo, say
from nlp_retrieval.cli.search import Retrievers, SearcherConfig, SearcherName, opened_searcher, parse_filter

if TYPE_CHECKING:
    from nlp_retrieval.agents.measures import TrajectoryEvaluation
    from nlp_retrieval.agents.trajectory import Trajectory
    from nlp_retrieval.core.models import Query

app = typer.Typer(help="Measure what agents searched, step by step.", no_args_is_help=True, add_completion=False)

Files = Annotated[list[Path], typer.Argument(help="Trajectories, recordings or transcripts: files, or an agent's folder.")]
Tools = Annotated[list[str] | None, typer.Option("--tool", help="What a tool does: kb=search, page=open. Repeatable.")]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="A benchmark's YAML: its queries, gold and titles.")]
Qrels = Annotated[Path | None, typer.Option("--qrels", help="Judgements, instead of a configuration.")]

_COLUMNS = {
    **dict.fromkeys(("perfect_recall", "recall_by_search", "citation_precision", "redundancy", "words_read"), ".3f"),
    **{"searches": ",.1f", "tokens": ",.0f", "price": ",.4f", "seconds": ",.2f"},
}


@app.command("evaluate")
def evaluate(
    files: Files,
    config: Config = None,
    qrels: Qrels = None,
    relevant_from: Annotated[int, typer.Option(min=1, help="The lowest grade that is relevant.")] = 1,
    tool: Tools = None,
    page: Annotated[Path | None, typer.Option(help="Also write a page with the steps of each question.")] = None,
) -> None:
    """Measure agents by what their searches found, at what cost.

    Recall is that of all that came back or was read. It is compared over the same questions, with tests over families.
    """
    from nlp_retrieval.agents.measures import evaluate_trajectories
    from nlp_retrieval.agents.page import headline_of, trajectories_page
    from nlp_retrieval.core.files.atomic import check_file_for_output, write_output
    from nlp_retrieval.evaluation.comparison import sentence

    if page is not None:
        check_file_for_output(page)
    trajectories, gold = _read_with_gold(files, tool, config, qrels)
    evaluation = evaluate_trajectories(trajectories, relevant_from=relevant_from, **gold)
    comparisons = evaluation.compare()
    echo([headline_of(evaluation, comparisons), *_table(evaluation), *map(sentence, comparisons[:10])])
    if page is not None:
        write_output(page, trajectories_page(evaluation, trajectories, titles=gold["titles"]).encode("utf-8", "replace"))
        say(f"written: {page}")


@app.command("replay")
def replay(
    files: Files,
    index: Annotated[Path, typer.Option("--index", "-i", help="The index to ask.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the replayed trajectories go, a .jsonl.")],
    config: SearcherConfig = None,
    searcher: SearcherName = None,
    retriever: Retrievers = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Number of results; default: as each search asked for.")] = None,
    where: Annotated[str | None, typer.Option(help="A filter in JSON, in place of the recorded ones.")] = None,
    tool: Tools = None,
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
    trajectories = _read(files, tool, ())
    chosen = opened_searcher(index, config, searcher, retriever, trust=trust)
    replayed = ask_again(trajectories, chosen, k=k, where=None if where is None else parse_filter(where))
    write_trajectories(output, replayed.trajectories)
    typer.echo(
        f"{replayed.searches:,} searches: {replayed.same:.0%} return the same results. {replayed.undisturbed:.0%} were asked "
        "before any result of their question had changed, so the agent would have asked them in any case."
    )
    if replayed.lost_reads:
        say(f"note: {replayed.lost_reads:,} reads are left out, because their items did not come back")
    say(f"written: {output}")


def _read_with_gold(
    files: Sequence[Path], tool: list[str] | None, config: Path | None, qrels: Path | None
) -> tuple[list[Trajectory], dict[str, Any]]:
    """Return the trajectories, and what :func:`evaluate_trajectories` takes from a benchmark or from judgements."""
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.errors import ConfigurationError

    if (config is None) == (qrels is None):
        raise ConfigurationError("say what is relevant: --config BENCHMARK.yaml (its queries, gold and corpus) or --qrels FILE")
    if config is None:
        return _read(files, tool, ()), {"qrels": qrels, "titles": None}
    settings: Any = read_benchmark_config(config).loaded()
    trajectories = _read(files, tool, settings.queries)
    came = {item_id for trajectory in trajectories for step in trajectory.steps for item_id in step.came}
    titles, texts = dict[str, str](), dict[str, str]()
    for item in settings.loader.stream():
        titles[item.item_id] = item.title
        if item.item_id in came:
            texts[item.item_id] = item.text
    families = {query.query_id: query.family for query in settings.queries}
    return trajectories, {"qrels": list(settings.gold), "titles": titles, "texts": texts, "families": families}


def _read(files: Sequence[Path], tool: list[str] | None, questions: Sequence[Query]) -> list[Trajectory]:
    from nlp_retrieval.agents.files import read_trajectories, require_one_each
    from nlp_retrieval.errors import ConfigurationError

    tools: Any = dict(word.partition("=")[::2] for word in tool or ())
    read = [each for file in files for each in read_trajectories(file, tools=tools, questions=questions)]
    require_one_each(read, ConfigurationError, ", ".join(map(str, files)))
    return read


def _table(evaluation: TrajectoryEvaluation) -> Iterator[str]:
    from nlp_retrieval.agents.measures import figure
    from nlp_retrieval.text.printing import counted

    means = {agent: evaluation.means(agent) for agent in evaluation.agents}
    known = [name for name in _COLUMNS if not all(math.isnan(mean[name]) for mean in means.values())]
    rows = [["agent", "recall", "95%", *(name.replace("_", " ") for name in known)]]
    for agent, mean in means.items():
        low, high = evaluation.intervals[agent]["recall"]
        interval = "n/a" if math.isnan(low) else f"{low:.2f}-{high:.2f}"
        rows.append([agent, figure(mean["recall"], ".3f"), interval, *(figure(mean[name], _COLUMNS[name]) for name in known)])
    yield from aligned(rows)
    yield f"{counted(len(evaluation.query_ids), 'question')}; intervals of recall over families."
