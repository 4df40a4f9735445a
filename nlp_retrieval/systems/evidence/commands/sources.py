"""``nlp-retrieval evidence add``, ``delete``, ``search``, ``stats`` and ``export``: the sources of a project."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import say
from nlp_retrieval.systems.evidence.commands.projects import Json, Project, Retrievers, existing_project, open_project

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.index.records import EvidencePassage

Quality = Annotated[str | None, typer.Option("--quality", help="Grade of these sources, A (best) to E; by default by rules.")]
MinQuality = Annotated[str | None, typer.Option("--min-quality", help="Only sources of this grade or a better one.")]


def add(
    project: Project,
    sources: Annotated[list[Path], typer.Argument(help="Files and folders: text, Markdown, HTML, PDF, JSON lines.")],
    url: Annotated[
        str | None, typer.Option("--url", help="Where a single file was read; by default its file:// address.")
    ] = None,
    quality: Quality = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="YAML file of grades by URL, instead of the built-in one.")
    ] = None,
    fetch_date: Annotated[
        str, typer.Option("--date", help="When they were fetched, ISO 8601; without it they count as fetched now.")
    ] = "",
    list_left_out: Annotated[
        bool, typer.Option("--left-out", help="List all that is left out: files, and texts of pages that readers do not see.")
    ] = False,
    build: Annotated[bool, typer.Option(help="Make them searchable now.")] = True,
    retriever: Retrievers = None,
) -> None:
    """Add sources to a project.

    Each is on the disk before the next is read. The same text under two URLs is stored once; a changed page under one URL is a
    new version.
    """
    from nlp_retrieval.core import progress
    from nlp_retrieval.errors import ConfigurationError, InputError, RetrievalError
    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.reading.folder import LeftOut, is_json_lines
    from nlp_retrieval.systems.evidence.reading.sources import read_sources
    from nlp_retrieval.text import visible

    if url is not None and (len(sources) > 1 or sources[0].is_dir() or is_json_lines(sources[0])):
        raise ConfigurationError(
            "--url is for a single file; leave it out for folders, several files, and JSON lines, which name their own"
        )
    index = open_project(project, retriever)
    new = known = 0
    left_out = LeftOut()
    url_of = None if url is None else lambda _: url
    try:
        with progress("reading", None) as advance:
            for one in read_sources(sources, quality, rules, fetch_date, url_of, left_out):
                try:
                    added = index.add_source(one)
                except InputError as error:
                    if not any(path.is_dir() for path in sources):
                        raise
                    left_out.add("files left out, since they cannot be kept", f"{visible(one.url)[:200]}: {error}")
                    continue
                new, known = new + added, known + (not added)
                advance(1)
    except RetrievalError:
        if new:
            say(f"note: {counted(new, 'source')} added before this error; what is added next makes them searchable too")
        raise
    if list_left_out:
        for line in left_out.lines():
            typer.echo(visible(line))
    if build:
        index.build_index()
    stats = index.stats()
    note = f", {known:,} known before" if known else ""
    held = f"{counted(stats['document_count'], 'text')}, {counted(stats['passage_count'], 'passage')}"
    say(f"{counted(new, 'source')} added{note}; {held} in {project}")


def delete(
    project: Project, urls: Annotated[list[str], typer.Argument(help="URLs of sources, in any of their forms.")]
) -> None:
    """Delete sources from a project, with all their versions.

    A text that another URL has too stays. Audits distinguish citations of a deleted source from those of an unknown one.
    """
    from nlp_retrieval.errors import SourceError
    from nlp_retrieval.reports import counted

    index = existing_project(project, None)
    unknown = [url for url in urls if not index.versions(url)]
    if unknown:
        raise SourceError(f"no text is stored under {unknown[0][:200]!r} in {project}; nothing was deleted")
    count = sum(index.delete(url) for url in urls)
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
    found = existing_project(project, retriever).search(query, k, min_quality)
    if as_json:
        typer.echo(json.dumps([asdict(passage) for passage in found], indent=1))
        return
    print_passages(found)


def stats(project: Project, as_json: Json = False) -> None:
    """Print the figures of a project and of its searches."""
    figures = existing_project(project, None).stats()
    if as_json:
        typer.echo(json.dumps(figures, indent=1))
        return
    width = max(map(len, figures))
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        typer.echo(f"{name.replace('_', ' '):<{width}}  {shown}")


def export(
    project: Project,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the collection, in BEIR's layout.")],
    judged: Annotated[
        Path | None,
        typer.Option("--judged", help="JSON lines with claim, url, and quote where it is known: queries and gold."),
    ] = None,
) -> None:
    """Write a project's passages as a collection that nlp-retrieval benchmark reads, with claims that were judged."""
    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.index.collection import export_collection

    done = export_collection(existing_project(project, None), output, judged)
    claims = f" and {counted(done.claims, 'claim')}" if judged is not None else ""
    say(f"{counted(done.passages, 'passage')}{claims} in {output}")


def print_passages(passages: list[EvidencePassage]) -> None:
    """Print passages for people.

    Args:
        passages: best first.
    """
    from nlp_retrieval.systems.evidence.commands.printing import console, print_passage

    to = console()
    if not passages:
        to.print("nothing found")
    for rank, passage in enumerate(passages, start=1):
        print_passage(to, f"{rank:>3}  ", passage, passage.content)
