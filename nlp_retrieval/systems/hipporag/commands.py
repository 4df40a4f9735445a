"""``nlp-retrieval hipporag``: HippoRAG 2 as one system with one settings file, and extraction on its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli import (
    Corpus,
    Loader,
    LoaderOptions,
    corpus_loader,
    parse_options,
    plain_answer,
    print_answer,
    print_hits,
    print_json_line,
    say,
)

if TYPE_CHECKING:
    from nlp_retrieval import LanguageModel
    from nlp_retrieval.systems.hipporag.extraction import ExtractionSummary
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline

_LONGEST_ANSWER = 2048
_ENDPOINT = {"retries": 3, "backoff": 2.0, "timeout": 120.0}
"""Limits that differ from those for queries: answers are longer, and a corpus can wait."""


def extract_command(
    corpus: Corpus,
    store: Annotated[
        str, typer.Argument(help="The store: an SQLite file, or a database as URL or env:NAME. Created if missing.")
    ],
    lm: Annotated[str, typer.Option(help="The language model: openai/gpt-4o-mini, ollama_chat/..., hosted_vllm/...")],
    loader: Loader = None,
    option: LoaderOptions = None,
    lm_base_url: Annotated[str | None, typer.Option(help="URL of an OpenAI-compatible server, with --lm openai/MODEL.")] = None,
    lm_option: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the model, as key=value: api_key_env=KEY, endpoint={max_calls: 1000}. Repeatable."),
    ] = None,
    calls_at_once: Annotated[int, typer.Option(min=1, max=1000, help="Number of concurrent calls.")] = 8,
    passages_per_call: Annotated[int, typer.Option(min=1, max=20, help="Passages per call.")] = 1,
    passage_characters: Annotated[
        int, typer.Option(min=1, help="Maximum characters of each passage to show to the model.")
    ] = 10_000,
    commit_every: Annotated[int, typer.Option(min=1, max=100_000, help="Commit results after this many passages.")] = 100,
    first: Annotated[
        int | None, typer.Option(min=1, help="Process only this many passages, to estimate quality and cost.")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="Schema of the tables, if the database has schemas.")] = None,
    price: Annotated[
        str | None, typer.Option(help="Price of the model per million tokens of prompts and of answers: 0.15,0.60.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON line.")] = False,
) -> None:
    """Extract entities and triples with a language model.

    After an interruption, repeat the command: only missing passages are processed. Exits with 1 if passages are left.
    """
    from itertools import islice

    from nlp_retrieval.benchmarks import ModelPrice
    from nlp_retrieval.systems.hipporag.extraction import KnowledgeExtractor, extract_knowledge, plan_extraction
    from nlp_retrieval.systems.hipporag.store import KnowledgeStore

    costs: ModelPrice | None = None if price is None else _price(price)
    source = corpus_loader(corpus, loader, option)
    model = _model(lm, lm_base_url, lm_option or [], calls_at_once)
    extractor = KnowledgeExtractor(model, passages_per_call=passages_per_call, passage_characters=passage_characters)
    with KnowledgeStore(store, schema=schema, create=True) as opened:
        others = [extraction for extraction in opened.extractions() if extraction != extractor.extraction]
        if others:
            say(f"{opened!r} also holds {len(others)} extractions with another prompt or model, which are not changed")
        plan = plan_extraction(islice(source.stream(), first), opened, extractor, costs)
        say(str(plan))
        if plan.missing:
            model.check_reachable()
        done = extract_knowledge(islice(source.stream(), first), opened, extractor, commit_every=commit_every)
    spent = None if costs is None else costs.of(done.calls.tokens_in, done.calls.tokens_out)
    if as_json:
        typer.echo(json.dumps(done.to_dict() | ({} if spent is None else {"price": spent}), ensure_ascii=False))
    tell(done, spent)
    if not done.whole:
        raise typer.Exit(1)


def _model(name: str, base_url: str | None, options: list[str], calls_at_once: int) -> LanguageModel:
    from nlp_retrieval import LanguageModel
    from nlp_retrieval.core import build_as

    settings = {"name": "dspy", "model": name, "base_url": base_url, "max_tokens": _LONGEST_ANSWER} | parse_options(options)
    settings["endpoint"] = _ENDPOINT | {"calls_at_once": calls_at_once} | settings.get("endpoint", {})
    return build_as(LanguageModel, "language_models", settings, "--lm")


def _price(text: str) -> Any:
    from nlp_retrieval.benchmarks import ModelPrice
    from nlp_retrieval.errors import ConfigurationError

    try:
        prompts, answers = map(float, text.split(","))
        return ModelPrice(prompts, answers)
    except ValueError:
        raise ConfigurationError(
            f"--price {text!r} is not a price: give two numbers, per million tokens of prompts and answers, such as 0.15,0.60"
        ) from None


def tell(done: ExtractionSummary, spent: float | None) -> None:
    """Print the result of an extraction, and its cost, if there is a price."""
    new = done.extracted + done.copied
    say(
        f"{done.documents:,} passages: {new:,} extracted, {done.kept:,} already stored, {done.failed:,} without a usable answer"
        + (f" ({done.reasons_told})" if done.failed else "")
        + (f", {done.not_asked:,} not requested" if done.not_asked else "")
        + f"; extraction {done.extraction_id[:8]} by {done.model}"
    )
    if new:
        say(
            f"{done.entities:,} entities and {done.triples:,} triples ({done.dropped:,} unusable, dropped) in "
            f"{done.seconds:,.1f} s, {done.per_minute:,.0f} passages a minute"
        )
    if done.cut:
        say(f"note: {done.cut:,} passages were cut for the model; see --passage-characters")
    say(f"{done.calls}{'' if spent is None else f'; price {spent:,.4f}'}")
    if done.stopped:
        say(f"stopped early: {done.stopped}")
    if not done.whole:
        say("run the same command again: it requests only missing passages")


app = typer.Typer(help="HippoRAG 2 by one settings file: extract, index, evaluate.", no_args_is_help=True)

app.command("extract")(extract_command)

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
    extracted = pipeline.extract(source, replace=replace, before=lambda plan: say(str(plan)))
    price = pipeline.price
    spent = None if price is None else price.of(extracted.calls.tokens_in, extracted.calls.tokens_out)
    tell(extracted, spent)
    line: dict[str, Any] = {"extraction": extracted.to_dict() | ({} if spent is None else {"price": spent})}
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
