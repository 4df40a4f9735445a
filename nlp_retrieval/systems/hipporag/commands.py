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
    say,
)

if TYPE_CHECKING:
    from nlp_retrieval.systems.hipporag.extraction import ExtractionSummary
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline

app = typer.Typer(help="HippoRAG 2 by one settings file: extract and index, ask, evaluate.", no_args_is_help=True)

Settings = Annotated[Path, typer.Option("--config", "-c", help="The YAML settings file; see docs/HIPPORAG.md.")]
FilterFacts = Annotated[
    bool | None,
    typer.Option(
        "--filter-facts/--no-filter-facts",
        help="Let the language model choose among the facts near a question, one call each. Default: the settings.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print each result as one JSON line, with counters.")]


@app.command()
def index(
    corpus: Corpus,
    config: Settings,
    loader: Loader = None,
    option: LoaderOptions = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing index of other items.")] = False,
    as_json: AsJson = False,
) -> None:
    """Extract entities and triples, then index.

    Repeat the command after an interruption, or when the corpus has grown: only missing passages are processed. Exits with 1 if
    passages are left.
    """
    pipeline = _pipeline(config)
    source = corpus_loader(corpus, loader, option)
    extracted = pipeline.extract(source, replace=replace)
    _tell(extracted)
    line: dict[str, Any] = {"extraction": extracted.to_dict()}
    if not extracted.stopped:
        report = pipeline.index(source, replace=replace)
        say(f"{report.n_items:,} items in {report.path} ({report.seconds:.1f} s)")
    if as_json:
        print_json_line(line | {"metrics": pipeline.metrics.to_dict()})
    if not extracted.whole:
        raise typer.Exit(1)


@app.command()
def ask(
    question: Annotated[list[str], typer.Argument(help="Questions.")],
    config: Settings,
    filter_facts: FilterFacts = None,
    as_json: AsJson = False,
) -> None:
    """Answer questions, with the passages that were read and cited."""
    pipeline = _pipeline(config, filter_facts)
    for answer in pipeline.ask(question):
        if as_json:
            line = plain_answer(answer)
            for read, passage in zip(line["read"], pipeline.supported(answer.question, answer.results), strict=True):
                read["supporting_entities"] = passage.supporting_entities
            print_json_line(line | {"metrics": pipeline.metrics.to_dict()})
        else:
            print_hits(answer.question, answer.results, [{} for _ in answer.results])
            print_answer(answer)


@app.command()
def evaluate(
    config: Settings,
    dataset: Annotated[
        Path | None, typer.Argument(help="A release file of HotpotQA; default: evaluation.hotpotqa_dataset_path.")
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Ask only this many questions.")] = None,
    filter_facts: FilterFacts = None,
    as_json: AsJson = False,
) -> None:
    """Ask HotpotQA's questions: exact match, F1, supporting facts."""
    from nlp_retrieval import HotpotqaLoader
    from nlp_retrieval.errors import ConfigurationError

    pipeline = _pipeline(config, filter_facts)
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


def _pipeline(config: Path, filter_facts: bool | None = None) -> HippoRagPipeline:
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline
    from nlp_retrieval.systems.hipporag.settings import HippoRagSettings

    settings = HippoRagSettings.read(config).with_filter(filter_facts)
    for unused in settings.unused():
        say(f"note: {config}: {unused}")
    return HippoRagPipeline(settings)


def _tell(done: ExtractionSummary) -> None:
    """Print the result of an extraction."""
    new = done.extracted + done.copied
    failed = f" ({done.reasons_told})" if done.failed else ""
    not_asked = f", {done.not_asked:,} not requested" if done.not_asked else ""
    cut = f", {done.cut:,} shown to it in part" if done.cut else ""
    say(
        f"{done.documents:,} passages: {new:,} extracted, {done.kept:,} already stored, {done.failed:,} without a usable answer"
        f"{failed}{not_asked}; extraction {done.extraction_id[:8]} by {done.model}{cut}"
    )
    if new:
        summary = f"{done.entities:,} entities and {done.triples:,} triples ({done.dropped:,} unusable, dropped)"
        say(f"{summary} in {done.seconds:,.1f} s")
    say(str(done.calls))
    if done.stopped:
        say(f"stopped early: {done.stopped}")
    if not done.whole:
        say("run the same command again: it requests only missing passages")
