"""``nlp-retrieval hipporag``: HippoRAG 2 as one system with one settings file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli import (
    Corpus,
    Loader,
    LoaderOptions,
    corpus_loader,
    plain_answer,
    print_answer,
    print_hits,
    print_json_line,
    renamed,
    say,
)
from nlp_retrieval.systems.hipporag.commands.extract import command as extract_command
from nlp_retrieval.systems.hipporag.commands.extract import tell

if TYPE_CHECKING:
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline

app = typer.Typer(
    help="HippoRAG 2 by one file of settings: extract and index, ask, evaluate.", no_args_is_help=True, rich_markup_mode=None
)

app.command("extract")(extract_command)
extract = renamed(extract_command, "extract", "hipporag extract")

Settings = Annotated[Path, typer.Option("--config", "-c", help="The YAML file of settings; see docs/HIPPORAG.md.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line for each result, counters included.")]


@app.command()
def index(
    corpus: Corpus,
    config: Settings,
    loader: Loader = None,
    option: LoaderOptions = None,
    replace: Annotated[bool, typer.Option("--replace", help="Give up an index of other items that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Extract entities and triples, then index.

    Repeat the command after an interruption, or when the corpus has grown: only missing passages are processed. Exits with 1 if
    passages are left.
    """
    pipeline = _pipeline(config)
    source = corpus_loader(corpus, loader, option)
    extracted = pipeline.extract(source, replace=replace)
    tell(extracted, None)
    line: dict[str, Any] = {"extraction": extracted.to_dict()}
    if not extracted.stopped:
        report = pipeline.index(source, replace=replace)
        say(f"{report.n_items:,} items in {report.path} ({report.seconds:.1f} s)")
    if as_json:
        print_json_line(line | {"metrics": pipeline.metrics.to_dict()})
    if not extracted.whole:
        raise typer.Exit(1)


@app.command()
def ask(question: Annotated[list[str], typer.Argument(help="Questions.")], config: Settings, as_json: AsJson = False) -> None:
    """Answer questions, with the passages that were read and cited."""
    pipeline = _pipeline(config)
    for one in pipeline.ask(question):
        if as_json:
            print_json_line(plain_answer(one) | {"metrics": pipeline.metrics.to_dict()})
        else:
            print_hits(one.question, one.results, [{} for _ in one.results], signals=False)
            print_answer(one)


@app.command()
def evaluate(
    config: Settings,
    dataset: Annotated[
        Path | None, typer.Argument(help="A release file of HotpotQA; by default evaluation.hotpotqa_dataset_path.")
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only this many questions.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask the questions of HotpotQA: exact match, F1, supporting facts."""
    from nlp_retrieval import HotpotqaLoader
    from nlp_retrieval.errors import ConfigurationError

    pipeline = _pipeline(config)
    path = dataset or pipeline.settings.evaluation.hotpotqa_dataset_path
    if path is None:
        raise ConfigurationError(
            f"{config}: evaluation.hotpotqa_dataset_path is null, and nothing is downloaded; name a release file of HotpotQA"
        )
    judged = pipeline.evaluate(HotpotqaLoader(path, sentence_facts=True).queries()[:first])
    means = judged.means()
    if as_json:
        print_json_line(
            {"questions": len(judged.query_ids), "without_answer": judged.empty_queries, "measures": means}
            | {"metrics": pipeline.metrics.to_dict()}
        )
        return
    for name, value in means.items():
        typer.echo(f"{name:<10} {value:.4f}")
    say(f"{len(judged.query_ids):,} questions, {judged.empty_queries:,} without an answer")


def _pipeline(config: Path) -> HippoRagPipeline:
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline
    from nlp_retrieval.systems.hipporag.settings import HippoRagSettings

    settings = HippoRagSettings.read(config)
    for unused in settings.unused():
        say(f"note: {config}: {unused}")
    return HippoRagPipeline(settings)
