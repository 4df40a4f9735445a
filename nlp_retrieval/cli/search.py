"""Commands that ask an index: ``search`` and ``answer``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import Trust, built, one_line, say, takes_all_text

if TYPE_CHECKING:
    from rich.text import Text

    from nlp_retrieval.core.models import Explanation, RetrievalResult
    from nlp_retrieval.core.search.base_searcher import BaseSearcher
    from nlp_retrieval.lm.answering import AnsweredQuestion

_CONTROL = re.compile("[\x7f-\x9f\ud800-\udfff]")
"""Characters allowed in JSON that a terminal would obey or cannot show."""

IndexFolder = Annotated[Path, typer.Argument(help="An index directory.")]
Retrievers = Annotated[
    list[str] | None, typer.Option("--retriever", "-r", help="name:key=value,key=value. Repeatable. Default: the first one.")
]
SearcherConfig = Annotated[Path | None, typer.Option("--config", "-c", help="A benchmark's YAML, with the searcher.")]
SearcherName = Annotated[str | None, typer.Option("--searcher", "-s", help="Its name in that file; default: the first.")]
WhereText = Annotated[str | None, typer.Option("--where", help='A filter: {"country": "Japan", "year": {"gte": 2015}}.')]
Drawing = Annotated[Path | None, typer.Option("--draw", metavar="FILE", help="Also draw the searcher's stages, as SVG.")]


def search(
    index: IndexFolder,
    query: Annotated[list[str] | None, typer.Argument(help="Queries; default: standard input, one per line.")] = None,
    k: Annotated[int, typer.Option("-k", help="At most this many results per query.")] = 10,
    retriever: Retrievers = None,
    config: SearcherConfig = None,
    searcher: SearcherName = None,
    where: WhereText = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each result was found, if a retriever can.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per result, with its signals.")] = False,
    draw: Drawing = None,
    trust: Trust = False,
) -> None:
    """Search an index.

    Uses the first retriever in the index, those named, or a searcher from a configuration file.
    """
    queries = list(query) if query else _standard_input()
    wanted = None if where is None else parse_filter(where)
    chosen = opened_searcher(index, config, searcher, retriever, trust=trust)
    if draw is not None:
        write_drawing(chosen, draw)
    show = _print_json if as_json else print_hits
    lists = chosen.search(queries, k, wanted)
    none: list[dict[str, Explanation]] = [{}]
    explained = [chosen.explain(*each) if explain else none * len(each[1]) for each in zip(queries, lists, strict=True)]
    if explain and any(lists) and not any(map(any, explained)):
        say("note: no retriever of this searcher can explain these results; link_graph can")
    for text, hits, reasons in zip(queries, lists, explained, strict=True):
        show(text, hits, reasons)


def parse_filter(where: str) -> Any:
    """Return the filter given by a user as JSON.

    Raises:
        QueryError: it is not JSON.

    Examples:
        >>> parse_filter('{"country": "Japan", "year": {"gte": 2015}}')
        {'country': 'Japan', 'year': {'gte': 2015}}
    """
    from nlp_retrieval.core.files.opening import parse_json
    from nlp_retrieval.errors import QueryError

    try:
        return parse_json(where)
    except ValueError as error:
        example, reason = """'{"country": "Japan", "year": {"gte": 2015}}'""", str(error).partition(";")[0]
        raise QueryError(f"--where is not JSON ({reason}); write it like {example}, with the single quotes") from None


def write_drawing(searcher: BaseSearcher, path: Path) -> None:
    """Write the picture of a searcher's stages."""
    from nlp_retrieval.core.files.atomic import write_output
    from nlp_retrieval.core.search.expressions import drawing

    write_output(path, drawing(searcher.config).encode())
    say(f"drawn: {path}")


def _standard_input() -> list[str]:
    from nlp_retrieval.errors import QueryError

    try:
        return sys.stdin.buffer.read().decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise QueryError(f"standard input is not UTF-8 text ({error}); convert it first") from None


def opened_searcher(
    index: Path,
    config: Path | None,
    name: str | None,
    retriever: list[str] | None,
    *,
    trust: bool,
) -> BaseSearcher:
    """Open the searcher that a command line describes; without a retriever, the first of the index."""
    from nlp_retrieval.core.search.base_searcher import retrievers_of
    from nlp_retrieval.core.search.retriever import BaseRetriever
    from nlp_retrieval.core.search.searcher import Searcher

    if config is not None:
        return configured(config, name).open(index)
    chosen = [built(BaseRetriever, "--retriever", text) for text in retriever or []]
    if not chosen:
        first, *others = retrievers_of(index, trust=trust)
        chosen = [first]
        if others:
            say(
                f"note: {first.name} searches; {index} has {', '.join(each.name for each in others)} too: choose by --retriever"
            )
    return Searcher(chosen).open(index)


def configured(config: Path, name: str | None) -> BaseSearcher:
    """Return a searcher by name from a benchmark configuration; the first by default."""
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.core.search.base_searcher import BaseSearcher
    from nlp_retrieval.errors import ConfigurationError, nearest

    entries = read_benchmark_config(config).searchers
    searchers = {label: entry for label, entry in entries.items() if isinstance(entry, BaseSearcher)}
    if not searchers:
        raise ConfigurationError(f"{config} has no searcher that can be asked a question; add one to its searchers")
    chosen = name if name is not None else next(iter(searchers))
    if chosen not in searchers:
        raise ConfigurationError(f"{config} has no searcher {chosen!r} that can be asked; {nearest(chosen, searchers)}")
    return searchers[chosen]


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


def print_hits(query: str, hits: list[RetrievalResult], explained: list[dict[str, Explanation]]) -> None:
    """Print the hits of one query in readable form.

    Args:
        query: the query text.
        hits: best first.
        explained: per hit, the chains that explain it, by retriever.

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

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(Text(one_line(query), "bold"))
    if not hits:
        console.print(Text("  nothing found", "dim"))
    for rank, (hit, explanation) in enumerate(zip(hits, explained, strict=True), start=1):
        item_id = f"  {one_line(hit.item.item_id)}" if hit.item.title else ""
        named = one_line(hit.item.title or hit.item.item_id), "bold cyan"
        console.print(Text.assemble(f"{rank:>4}  ", named, (f"{item_id}  {hit.score:.4g}", "dim")))
        for line in (Text(one_line(_excerpt(hit.item.content))), *_chain(explanation)):
            console.print(Padding(line, (0, 0, 0, 6)) if sys.stdout.isatty() else Text("      ") + line)
    console.print()


def _chain(explained: dict[str, Explanation]) -> list[Text]:
    from rich.text import Text

    from nlp_retrieval.core.models import name_of

    lines = []
    for explanation in explained.values():
        first = one_line(name_of(explanation.first))
        lines.append(Text.assemble("because ", (first, "cyan"), f": {one_line(explanation.origin)}"))
        for number, step in enumerate(explanation.steps, start=1):
            target = one_line(name_of(step.target))
            line = Text.assemble("  " * number + "→ ", (target, "cyan"), f" by {one_line(step.kind.replace('_', ' '))}")
            if step.sentence:
                line.append(": " if step.along else f", from the text of {target}: ")
                line.append(one_line(step.sentence[: step.start]), "dim")
                line.append(f"[{one_line(step.sentence[step.start : step.end])}]", "bold")
                line.append(one_line(step.sentence[step.end :]), "dim")
            lines.append(line)
    return lines


def _excerpt(text: str, length: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


def answer(
    index: IndexFolder,
    question: Annotated[list[str] | None, typer.Argument(help="Questions; default: standard input, one per line.")] = None,
    answerer: Annotated[
        str | None, typer.Option("--answerer", "-a", help="language_model:lm=PROVIDER/MODEL. Default: of --config.")
    ] = None,
    retriever: Retrievers = None,
    config: SearcherConfig = None,
    searcher: SearcherName = None,
    where: WhereText = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per question.")] = False,
    trust: Trust = False,
) -> None:
    """Answer questions from an index.

    Prints a short answer with the passages and sentences that it cites, or says that there is no answer.
    """
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.lm.answering import BaseAnswerer, QuestionAnswering

    questions = list(question) if question else _standard_input()
    answering: BaseAnswerer | None = None
    if answerer is not None:
        answering = built(BaseAnswerer, "--answerer", answerer)
    elif config is not None:
        answering = read_benchmark_config(config).answerer
    if answering is None:
        lacking = "there is nothing to answer with" if config is None else f"{config} has no answerer"
        raise ConfigurationError(f"{lacking}; pass --answerer language_model:lm=provider/model")
    wanted = None if where is None else parse_filter(where)
    chosen = opened_searcher(index, config, searcher, retriever, trust=trust)
    for answered in QuestionAnswering(chosen, answering).answer(questions, wanted):
        if as_json:
            print_json_line(plain_answer(answered))
        else:
            print_answer(answered)


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

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(Text(one_line(answered.question), "bold"))
    answer = answered.answer
    none = ("no usable answer came" if answer.failed else "no answer", "dim")
    console.print(Text.assemble("  ", (one_line(answer.text), "bold cyan") if answer.text else none))
    if answer.reasoning:
        console.print(Text(f"  {one_line(answer.reasoning)}", "dim"))
    for hit in answered.cited:
        title = hit.item.title or hit.item.item_id
        numbers = [number for name, number in answer.facts if name == title]
        sentences = f", sentences {', '.join(str(number + 1) for number in numbers)}" if numbers else ""
        console.print(Text.assemble("  cites ", (one_line(title), "cyan"), f"  {one_line(hit.item.item_id)}{sentences}"))
    if answer.dropped:
        console.print(Text(f"  {answer.dropped} citations of what was not given were dropped", "dim"))
    console.print()
