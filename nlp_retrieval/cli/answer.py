"""``nlp-retrieval answer``: answer questions from an index directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import parse_component
from nlp_retrieval.cli.search import (
    FusionName,
    RerankerName,
    Retrievers,
    SearcherName,
    WhereText,
    composed,
    configured,
    parse_filter,
    print_json_line,
    standard_input,
)
from nlp_retrieval.cli.trusting import Trust

if TYPE_CHECKING:
    from nlp_retrieval.core.search.base_searcher import BaseSearcher
    from nlp_retrieval.lm.answering import AnsweredQuestion, BaseAnswerer

NAME = "answer"


def command(
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    question: Annotated[
        list[str] | None, typer.Argument(help="Questions; by default read from standard input, one per line.")
    ] = None,
    answerer: Annotated[
        str | None,
        typer.Option(
            "--answerer",
            "-a",
            help="language_model:lm=openai/gpt-4o-mini,passages=5; or name:key=value. Default: the one in --config.",
        ),
    ] = None,
    retriever: Retrievers = None,
    fusion: FusionName = None,
    reranker: RerankerName = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="A benchmark configuration to take searcher and answerer from.")
    ] = None,
    searcher: SearcherName = None,
    where: WhereText = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per question.")] = False,
    trust: Trust = False,
) -> None:
    """Answer questions from an index.

    Prints a short answer with the passages and sentences that it cites, or says that there is no answer.
    """
    from nlp_retrieval.lm.answering import QuestionAnswering

    questions = list(question) if question else standard_input()
    answering = _answerer(answerer, config)
    wanted = None if where is None else parse_filter(where)
    chosen = composed(index, retriever, fusion, reranker, trust=trust) if config is None else _searcher(config, searcher)
    chosen.open(index)
    for one in QuestionAnswering(chosen, answering).answer(questions, wanted):
        if as_json:
            print_json_line(plain_answer(one))
        else:
            print_answer(one)


def _answerer(text: str | None, config: Path | None) -> BaseAnswerer:
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.core.components.registry import build_as
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.lm.answering import BaseAnswerer

    if text is not None:
        return build_as(BaseAnswerer, "answerers", parse_component(text), "--answerer")
    described = read_benchmark_config(config).answerer if config is not None else None
    if not isinstance(described, BaseAnswerer):
        where = f"{config} has no answerer" if config is not None else "there is nothing to answer with"
        raise ConfigurationError(f"{where}; pass --answerer language_model:lm=provider/model")
    return described


def _searcher(config: Path, name: str | None) -> BaseSearcher:
    from nlp_retrieval.core.search.base_searcher import BaseSearcher
    from nlp_retrieval.errors import ConfigurationError

    chosen = configured(config, name)
    if not isinstance(chosen, BaseSearcher):
        raise ConfigurationError(
            f"{config}: {chosen.config.get('name')!r} searches in a way of its own; questions need a searcher"
        )
    return chosen


def plain_answer(one: AnsweredQuestion) -> dict[str, Any]:
    """Return an answer, and the passages read for it, as JSON values."""
    read = [{"rank": rank, "item_id": hit.item.item_id, "score": hit.score} for rank, hit in enumerate(one.results, start=1)]
    return {"question": one.question} | one.answer.model_dump(mode="json") | {"read": read}


def print_answer(one: AnsweredQuestion) -> None:
    """Print an answer in readable form, with its citations."""
    from rich.console import Console
    from rich.text import Text

    from nlp_retrieval.text.printing import printable

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(Text(printable(one.question), "bold"))
    answer = one.answer
    if answer.text:
        console.print(Text("  ") + Text(printable(answer.text), "bold cyan"))
    else:
        console.print(Text("  no usable answer came" if answer.failed else "  no answer", "dim"))
    if answer.reasoning:
        console.print(Text(f"  {printable(answer.reasoning)}", "dim"))
    for hit in one.cited:
        title = hit.item.title or hit.item.item_id
        numbers = [number for name, number in answer.facts if name == title]
        sentences = f", sentences {', '.join(str(number + 1) for number in numbers)}" if numbers else ""
        console.print(Text.assemble("  cites ", (printable(title), "cyan"), f"  {printable(hit.item.item_id)}{sentences}"))
    if answer.dropped:
        console.print(Text(f"  {answer.dropped} citations of what was not given were dropped", "dim"))
    console.print()
