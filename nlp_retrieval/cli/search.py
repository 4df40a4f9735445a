"""Commands that ask an index: ``search`` and ``answer``."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nlp_retrieval.cli.console import parse_component, say
from nlp_retrieval.cli.indexes import Trust
from nlp_retrieval.cli.streams import takes_all_text

if TYPE_CHECKING:
    from rich.text import Text

    from nlp_retrieval.benchmarks.entrants import Benchmarkable
    from nlp_retrieval.core.explanation import Explanation
    from nlp_retrieval.core.models import RetrievalResult
    from nlp_retrieval.core.search.base_searcher import BaseSearcher
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.lm.answering import AnsweredQuestion, BaseAnswerer

_CONTROL = re.compile("[\x7f-\x9f\ud800-\udfff]")
"""Characters allowed in JSON that a terminal would obey or cannot show."""


Retrievers = Annotated[
    list[str] | None,
    typer.Option("--retriever", "-r", help="name or name:key=value,key=value. Repeatable. Default: the first in the index."),
]
FusionName = Annotated[str | None, typer.Option(help="Fusion of several retrievers: rrf, weighted_sum, ...")]
RerankerName = Annotated[str | None, typer.Option(help="Reranker of the results: overlap, ...")]
SearcherConfig = Annotated[
    Path | None, typer.Option("--config", "-c", help="A benchmark configuration to take the searcher from.")
]
SearcherName = Annotated[str | None, typer.Option("--searcher", "-s", help="Its name in that file; default: the first.")]
WhereText = Annotated[
    str | None,
    typer.Option("--where", help='Only items whose metadata match: {"country": "Japan", "year": {"gte": 2015}}.'),
]


def search(
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    query: Annotated[list[str] | None, typer.Argument(help="Queries; default: standard input, one per line.")] = None,
    k: Annotated[int, typer.Option("-k", help="At most this many results per query.")] = 10,
    retriever: Retrievers = None,
    fusion: FusionName = None,
    reranker: RerankerName = None,
    config: SearcherConfig = None,
    searcher: SearcherName = None,
    where: WhereText = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the links to each result, if a retriever can explain it.")
    ] = False,
    signals: Annotated[bool, typer.Option("--signals", help="Show the signals of each score.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per result, with its signals.")] = False,
    trust: Trust = False,
) -> None:
    """Search an index.

    Uses the first retriever in the index, those named, or a searcher from a configuration file.
    """
    from nlp_retrieval.benchmarks.entrants import Explains

    queries = list(query) if query else standard_input()
    chosen: Benchmarkable = (
        configured(config, searcher) if config is not None else composed(index, retriever, fusion, reranker, trust=trust)
    )
    chosen.open(index)
    explainer = chosen if explain and isinstance(chosen, Explains) and chosen.explains else None
    if explain and explainer is None:
        say("note: no retriever of this searcher can explain a result; link_graph, splade and bm25 with feedback can")
    results = chosen.search(queries, k) if where is None else _filtered(chosen, queries, k, where)
    for text, hits in zip(queries, results, strict=True):
        explained = explainer.explain(text, hits) if explainer else [{} for _ in hits]
        if as_json:
            _print_json(text, hits, explained)
        else:
            print_hits(text, hits, explained, signals=signals)


def _filtered(searcher: Benchmarkable, queries: list[str], k: int, where: str) -> list[list[RetrievalResult]]:
    from nlp_retrieval.errors import ConfigurationError

    if "where" not in inspect.signature(searcher.search).parameters:
        raise ConfigurationError("this searcher takes no filter; leave out --where")
    # a searcher of a benchmark may not accept a filter
    return cast("Searcher", searcher).search(queries, k, parse_filter(where))


def parse_filter(where: str) -> Any:
    """Return the filter given by a user as JSON.

    Raises:
        QueryError: it is not JSON.

    Examples:
        >>> parse_filter('{"country": "Japan", "year": {"gte": 2015}}')
        {'country': 'Japan', 'year': {'gte': 2015}}
    """
    from nlp_retrieval.core.files.json_text import parse_json
    from nlp_retrieval.errors import QueryError

    try:
        return parse_json(where)
    except ValueError as error:
        reason = str(error).partition(";")[0]
        example = """'{"country": "Japan", "year": {"gte": 2015}}'"""
        raise QueryError(f"--where is not JSON ({reason}); write it like {example}, with the single quotes") from None


def standard_input() -> list[str]:
    """Return the lines of standard input.

    Raises:
        QueryError: it is not UTF-8 text.
    """
    from nlp_retrieval.errors import QueryError

    try:
        return sys.stdin.buffer.read().decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise QueryError(f"standard input is not UTF-8 text ({error}); convert it first") from None


def configured(config: Path, name: str | None) -> Benchmarkable:
    """Return a searcher by name from a benchmark configuration; the first by default.

    Raises:
        ConfigurationError: the name does not exist.
    """
    from nlp_retrieval.benchmarks.entrants import TrecRun
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.errors import ConfigurationError, nearest

    entries = read_benchmark_config(config).searchers
    searchers = {entry_name: searcher for entry_name, searcher in entries.items() if not isinstance(searcher, TrecRun)}
    chosen = name if name is not None else next(iter(searchers), "")
    if chosen not in searchers:
        if isinstance(entries.get(chosen), TrecRun) or not searchers:
            raise ConfigurationError(
                f"{config}: {chosen or 'what it names'} is a run of another tool; there is nothing to search"
            )
        raise ConfigurationError(f"{config} has no searcher {chosen!r}; {nearest(chosen, searchers)}")
    return searchers[chosen]


def composed(index: Path, retriever: list[str] | None, fusion: str | None, reranker: str | None, *, trust: bool) -> Searcher:
    """Return the searcher that a command line describes; without a retriever, the first of the index, with a fusion all."""
    from nlp_retrieval.core.components.registry import build_as
    from nlp_retrieval.core.search.base_searcher import retrievers_of
    from nlp_retrieval.core.search.joining import BaseFusion
    from nlp_retrieval.core.search.reranker import BaseReranker
    from nlp_retrieval.core.search.retriever import BaseRetriever
    from nlp_retrieval.core.search.searcher import Searcher

    chosen = [build_as(BaseRetriever, "retrievers", parse_component(text), "--retriever") for text in retriever or []]
    if not chosen:
        chosen = retrievers_of(index, trust=trust)
        if fusion is None and len(chosen) > 1:
            first, *others = (each.name for each in chosen)
            say(f"note: {first} searches; {index} has {', '.join(others)} too: choose by --retriever, or all by --fusion rrf")
            chosen = chosen[:1]
    return Searcher(
        chosen,
        fusion=build_as(BaseFusion, "fusions", parse_component(fusion), "--fusion") if fusion else None,
        reranker=build_as(BaseReranker, "rerankers", parse_component(reranker), "--reranker") if reranker else None,
    )


def _print_json(query: str, hits: list[RetrievalResult], explained: list[dict[str, Explanation]]) -> None:
    for rank, (hit, links) in enumerate(zip(hits, explained, strict=True), start=1):
        line = {"query": query, "rank": rank, "score": hit.score, "item": hit.item.model_dump(), "signals": hit.signals}
        if links:
            line["explanation"] = {label: explanation.as_dict() for label, explanation in links.items()}
        print_json_line(line)


def print_json_line(line: dict[str, Any]) -> None:
    """Print plain values as a line of JSON without terminal control characters.

    Examples:
        >>> print_json_line({"query": "krill", "rank": 1, "score": 0.5})
        {"query": "krill", "rank": 1, "score": 0.5}
    """
    typer.echo(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(line, ensure_ascii=not takes_all_text())))


def print_hits(
    query: str, hits: list[RetrievalResult], explained: list[dict[str, Explanation]], *, signals: bool = False
) -> None:
    """Print the hits of one query in readable form.

    Args:
        query: the query text.
        hits: best first.
        explained: per hit, the chains that explain it, by retriever.
        signals: whether to print the signals of the scores.

    Examples:
        >>> results = [RetrievalResult(item=items[0], score=1.0)]
        >>> print_hits("krill", results, [{}])
        krill
           1  Blue whale  whale  1
              It eats tons of Krill a day.
        <BLANKLINE>
    """
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from nlp_retrieval.text.printing import printable

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(Text(printable(query), "bold"))
    if not hits:
        console.print(Text("  nothing found", "dim"))
    for rank, (hit, explanation) in enumerate(zip(hits, explained, strict=True), start=1):
        heading = Text(f"{rank:>4}  ")
        heading.append(printable(hit.item.title or hit.item.item_id), "bold cyan")
        heading.append(f"  {printable(hit.item.item_id)}" if hit.item.title else "", "dim")
        heading.append(f"  {hit.score:.4g}", "dim")
        console.print(heading)
        lines = [Text(printable(_excerpt(hit.item.content))), *_chain(explanation)]
        if signals:
            lines.insert(1, Text(printable("  ".join(f"{key} {value:.4g}" for key, value in hit.signals.items())), "dim"))
        for line in lines:
            console.print(Padding(line, (0, 0, 0, 6)) if sys.stdout.isatty() else Text("      ") + line)
    console.print()


def _chain(explained: dict[str, Explanation]) -> list[Text]:
    """The chains that explain a result, a line each: the start of the search, then every link."""
    from rich.text import Text

    from nlp_retrieval.core.explanation import name_of
    from nlp_retrieval.text.printing import printable

    lines = []
    for explanation in explained.values():
        first = printable(name_of(explanation.first))
        lines.append(Text.assemble("because ", (first, "cyan"), f": {printable(explanation.origin)}"))
        for number, step in enumerate(explanation.steps, start=1):
            target = printable(name_of(step.target))
            line = Text.assemble("  " * number + "→ ", (target, "cyan"), f" by {printable(step.kind.replace('_', ' '))}")
            if step.sentence:
                line.append(": " if step.along else f", from the text of {target}: ")
                line.append(printable(step.sentence[: step.start]), "dim")
                line.append(f"[{printable(step.sentence[step.start : step.end])}]", "bold")
                line.append(printable(step.sentence[step.end :]), "dim")
            lines.append(line)
    return lines


def _excerpt(text: str, length: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


def answer(
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
    for answered in QuestionAnswering(chosen, answering).answer(questions, wanted):
        if as_json:
            print_json_line(plain_answer(answered))
        else:
            print_answer(answered)


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


def plain_answer(answered: AnsweredQuestion) -> dict[str, Any]:
    """Return an answer, and the passages read for it, as JSON values.

    Examples:
        >>> from nlp_retrieval.lm import AnsweredQuestion
        >>> answered = AnsweredQuestion("What do whales eat?", [], Answer(text="krill"))
        >>> plain_answer(answered)["text"]
        'krill'
    """
    read = [
        {"rank": rank, "item_id": hit.item.item_id, "score": hit.score} for rank, hit in enumerate(answered.results, start=1)
    ]
    return {"question": answered.question} | answered.answer.model_dump(mode="json") | {"read": read}


def print_answer(answered: AnsweredQuestion) -> None:
    """Print an answer in readable form, with its citations.

    Examples:
        >>> from nlp_retrieval.lm import AnsweredQuestion
        >>> results = [RetrievalResult(item=items[0], score=1.0)]
        >>> print_answer(AnsweredQuestion("What do whales eat?", results, Answer(text="krill", passages=["whale"])))
        What do whales eat?
          krill
          cites Blue whale  whale
        <BLANKLINE>
    """
    from rich.console import Console
    from rich.text import Text

    from nlp_retrieval.text.printing import printable

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(Text(printable(answered.question), "bold"))
    answer = answered.answer
    if answer.text:
        console.print(Text("  ") + Text(printable(answer.text), "bold cyan"))
    else:
        console.print(Text("  no usable answer came" if answer.failed else "  no answer", "dim"))
    if answer.reasoning:
        console.print(Text(f"  {printable(answer.reasoning)}", "dim"))
    for hit in answered.cited:
        title = hit.item.title or hit.item.item_id
        numbers = [number for name, number in answer.facts if name == title]
        sentences = f", sentences {', '.join(str(number + 1) for number in numbers)}" if numbers else ""
        console.print(Text.assemble("  cites ", (printable(title), "cyan"), f"  {printable(hit.item.item_id)}{sentences}"))
    if answer.dropped:
        console.print(Text(f"  {answer.dropped} citations of what was not given were dropped", "dim"))
    console.print()
