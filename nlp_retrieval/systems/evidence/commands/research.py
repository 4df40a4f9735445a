"""``nlp-retrieval evidence research``: pages of the web about a question are read, added and searched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import parse_component, say
from nlp_retrieval.systems.evidence.commands.projects import Json, Project, Retrievers, open_project
from nlp_retrieval.systems.evidence.commands.sources import print_passages

if TYPE_CHECKING:
    from nlp_retrieval import HyDE
    from nlp_retrieval.systems.evidence.web_research.report import ResearchReport


def research(
    project: Project,
    subquestion: Annotated[str, typer.Argument(help="One question.")],
    search_engine: Annotated[
        str, typer.Option("--search", help="What finds pages: searxng:url=http://localhost:8888, or folder:folder=FOLDER.")
    ],
    fetcher: Annotated[str, typer.Option("--fetch", help="What fetches them: http, or folder:folder=FOLDER.")],
    hyde: Annotated[
        str | None,
        typer.Option(
            help="Language model that writes a hypothetical answer, which is searched for too: openai/gpt-4o-mini, or "
            "dspy:model=openai/MODEL,base_url=URL."
        ),
    ] = None,
    pages: Annotated[int, typer.Option(min=1, help="Fetch at most this many pages.")] = 10,
    results: Annotated[int, typer.Option(min=1, help="Ask each search for this many results.")] = 10,
    k: Annotated[int, typer.Option("-k", help="Show at most this many passages.")] = 10,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="YAML file of grades by URL, instead of the built-in one.")
    ] = None,
    refetch: Annotated[bool, typer.Option("--refetch", help="Fetch pages again that the project has.")] = False,
    as_json: Json = False,
    retriever: Retrievers = None,
) -> None:
    """Find pages about a question, add them to a project, and search it.

    Pages are fetched from public addresses only, and as each site's robots.txt allows. Pages that the project has are not
    fetched again. The result for each page is reported; a page that fails does not stop the others.
    """
    from nlp_retrieval.core import build_as
    from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher
    from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch
    from nlp_retrieval.systems.evidence.web_research.workflow import research as find

    engine = build_as(BaseWebSearch, "search_engines", parse_component(search_engine), "--search")
    fetching = build_as(BaseFetcher, "fetchers", parse_component(fetcher), "--fetch")
    index = open_project(project, retriever)
    report = find(
        subquestion, index, engine, fetching, _hyde(hyde), results=results, pages=pages, k=k, rules=rules, refetch=refetch
    )
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=1))
        return
    _say_what_happened(report)
    print_passages(report.passages)


def _hyde(text: str | None) -> HyDE | None:
    from nlp_retrieval import HyDE, LanguageModel
    from nlp_retrieval.core import build_as

    if text is None:
        return None
    return HyDE(build_as(LanguageModel, "language_models", parse_component(text), "--hyde"))


def _say_what_happened(report: ResearchReport) -> None:
    from nlp_retrieval.text import visible

    for query in report.queries:
        if query.error:
            say(f"note: the search for {visible(query.query)!r} failed: {visible(query.error)}")
    for page in report.pages:
        moved = f" (read at {page.source_url})" if page.source_url and page.source_url != page.url else ""
        why = page.quality or page.reason
        say(visible(f"{page.status:<7} {page.url}{moved}  {why}"))
    counts = report.counts()
    say(", ".join(f"{count} {status}" for status, count in counts.items()) + f"; {report.unread} more were found")
