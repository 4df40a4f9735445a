"""Commands for the sources of a project: adding, listing, changing, searching and researching them."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import built, say
from nlp_retrieval.errors import ConfigurationError, InputError, SourceError
from nlp_retrieval.text import counted, visible

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.commands.project import (
    Json,
    Project,
    Retrievers,
    console,
    existing_project,
    open_project,
    print_passage,
)

_SHOWN_FAILURES = 20
MinQuality = Annotated[str | None, typer.Option("--min-quality", help="Only sources of this grade or a better one.")]


def add(
    project: Project,
    sources: Annotated[
        list[Path],
        typer.Argument(help="Files and folders: text, Markdown, HTML, PDF, DOCX, JSON lines. A .csv lists files and URLs."),
    ],
    url: Annotated[str, typer.Option("--url", help="URL of a single file; by default its file:// URL.")] = "",
    quality: Annotated[
        str, typer.Option("--quality", help="Grade of these sources, A (best) to E; by default by their addresses.")
    ] = "",
    fetch_date: Annotated[str, typer.Option("--date", help="Date of fetching, ISO 8601; by default now.")] = "",
    fetcher: Annotated[str | None, typer.Option("--fetch", help="Fetcher of the URLs in a .csv, as of research: http.")] = None,
    build: Annotated[bool, typer.Option(help="Build the index now.")] = True,
    retriever: Retrievers = None,
) -> None:
    """Add sources to a project.

    Each is on the disk before the next is read. The same text under two URLs is stored once; a changed page under one URL is a
    new version. A source of a folder or list that cannot be read is left out, and makes the command end with exit code 1.

    Columns of a .csv: file or url, canonical url, grade, date, title, doi; others are not read. Its files are below its
    folder.
    """
    from nlp_retrieval.core import progress
    from nlp_retrieval.documents import MANIFESTS
    from nlp_retrieval.systems.evidence.source_files import JSON_LINES, UNREADABLE, read_sources
    from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher, fetch_page

    if url and (len(sources) > 1 or sources[0].is_dir() or sources[0].name.lower().endswith((*JSON_LINES, *MANIFESTS))):
        raise ConfigurationError(
            "--url is for a single file; omit it for folders, several files, JSON lines and .csv, which have their own URLs"
        )
    index = open_project(project, retriever)
    new = known = 0
    left_out: dict[str, list[str]] = {}
    fetch = None if fetcher is None else partial(fetch_page, built(BaseFetcher, "--fetch", fetcher))
    with progress("reading", None) as advance:
        for document in read_sources(sources, quality, fetch_date, url, left_out, fetch):
            added = index.add_source(document)
            new, known = new + added, known + (not added)
            advance(1)
    if build:
        index.build_index()
    stats = index.stats()
    note = f", {known:,} known before" if known else ""
    contents = f"{counted(stats['document_count'], 'text')}, {counted(stats['passage_count'], 'passage')}"
    failures = left_out.get(UNREADABLE, [])
    for failure in failures[1:_SHOWN_FAILURES]:  # the first is in a warning
        say(visible(f"note: left out: {failure}"))
    failed = f", {len(failures):,} could not be read" if failures else ""
    say(f"{counted(new, 'source')} added{note}{failed}; {contents} in {project}")
    if failures:
        raise typer.Exit(1)


def list_sources(
    project: Project,
    match: Annotated[str, typer.Option("--match", help="Only sources with this text in title or URL, in any case.")] = "",
    min_quality: MinQuality = None,
    as_json: Json = False,
) -> None:
    """List the sources of a project, with grades and dates."""
    from rich.text import Text

    sources = existing_project(project, None).sources(match, min_quality)
    if as_json:
        typer.echo(json.dumps([asdict(source) for source in sources], indent=1))
        return
    to = console()
    for source in sources:
        graded = f"{source.key}  {source.quality}  {visible(source.fetch_date[:10])}  "
        to.print(Text.assemble(graded, (visible(source.title), "bold")))
        more = f", {counted(source.version_count, 'version')}" + (f", {counted(source.pages, 'page')}" if source.pages else "")
        to.print(Text(f"    {visible(source.url)}{more}", "dim"))
    if not sources:
        to.print("no source matches")


def delete(
    project: Project,
    urls: Annotated[list[str], typer.Argument(help="URLs of sources, in any equivalent form, or their keys.")],
) -> None:
    """Delete sources from a project, with all their versions.

    A text that is also stored under another URL is kept. Audits distinguish citations of a deleted source from those of an
    unknown one.
    """
    index = existing_project(project, None)
    try:
        named = [index.named(url) for url in urls]
    except InputError as error:
        raise SourceError(f"{str(error).removesuffix('; sources() lists all')} in {project}; nothing was deleted") from None
    count = sum(map(index.delete, named))
    index.build_index()
    say(f"{counted(count, 'version')} deleted; {counted(index.stats()['document_count'], 'text')} left in {project}")


def search(
    project: Project,
    query: Annotated[str, typer.Argument(help="A claim, a question, or keywords.")],
    k: Annotated[int, typer.Option("-k", help="At most this many passages.")] = 5,
    min_quality: MinQuality = None,
    as_json: Json = False,
    retriever: Retrievers = None,
) -> None:
    """Search the sources of a project."""
    passages = existing_project(project, retriever).search(query, k, min_quality)
    if as_json:
        typer.echo(json.dumps([asdict(passage) for passage in passages], indent=1))
        return
    print_passages(passages)


def stats(project: Project) -> None:
    """Print the figures of a project and of its searches."""
    figures = existing_project(project, None).stats()
    width = max(map(len, figures))
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        typer.echo(f"{name.replace('_', ' '):<{width}}  {shown}")


def export(
    project: Project,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the collection, in BEIR's layout.")],
    judged: Annotated[
        Path | None,
        typer.Option("--judged", help="JSON lines with claim, url and optionally quote: the queries and their gold."),
    ] = None,
) -> None:
    """Write a project's passages as a collection for benchmarks.

    Judged claims can be its queries.
    """
    from nlp_retrieval.systems.evidence.source_files import export_collection

    passages, judgements = export_collection(existing_project(project, None), output, judged)
    claims = f" and {counted(judgements, 'claim')}" if judged is not None else ""
    say(f"{counted(passages, 'passage')}{claims} in {output}")


def print_passages(passages: list[EvidencePassage]) -> None:
    """Print passages for people."""
    to = console()
    if not passages:
        to.print("nothing found")
    for rank, passage in enumerate(passages, start=1):
        print_passage(to, f"{rank:>3}  ", passage, passage.content, passage.page_of())


def research(
    project: Project,
    subquestion: Annotated[str, typer.Argument(help="One question.")],
    search_engine: Annotated[str, typer.Option("--search", help="Search engine: searxng:url=URL.")],
    fetcher: Annotated[str, typer.Option("--fetch", help="Fetcher of pages: http.")],
    hyde: Annotated[
        str | None,
        typer.Option(
            help="Language model that writes a hypothetical answer to search for as well: openai/gpt-4o-mini, or "
            "dspy:model=MODEL,base_url=URL."
        ),
    ] = None,
    pages: Annotated[int, typer.Option(min=1, help="Fetch at most this many pages.")] = 10,
    k: Annotated[int, typer.Option("-k", help="Show at most this many passages.")] = 10,
    retriever: Retrievers = None,
) -> None:
    """Find pages about a question, and add them to a project.

    The project is then searched for the question.

    Pages are fetched from public addresses only, and as each site's robots.txt allows. Pages that the project has are not
    fetched again. The result for each page is reported; a page that fails does not stop the others.
    """
    from nlp_retrieval import HyDE, LanguageModel
    from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher
    from nlp_retrieval.systems.evidence.web_research.research import research as find
    from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch

    engine = built(BaseWebSearch, "--search", search_engine)
    fetching = built(BaseFetcher, "--fetch", fetcher)
    index = open_project(project, retriever)
    model = None if hyde is None else HyDE(built(LanguageModel, "--hyde", hyde))
    report = find(subquestion, index, engine, fetching, model, pages=pages, k=k)
    for failure in report.failures:
        say(f"note: {visible(failure)}")
    for page in report.pages:
        moved = f" (read at {page.source_url})" if page.source_url and page.source_url != page.url else ""
        why = page.quality or page.reason
        say(visible(f"{page.status:<7} {page.url}{moved}  {why}"))
    counts = report.counts()
    say(", ".join(f"{count} {status}" for status, count in counts.items()) + f"; {report.unread} more found")
    print_passages(report.passages)
