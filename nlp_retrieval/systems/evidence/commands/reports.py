"""Commands for the citations of a report: the audit and its review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import built, say

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.audit import CitationAudit
    from nlp_retrieval.systems.evidence.citations.published import CheckedReference
    from nlp_retrieval.systems.evidence.citations.report import CitedReport
from nlp_retrieval.systems.evidence.commands.project import (
    BibliographyOption,
    Project,
    Retrievers,
    VerifierOption,
    chosen_verifier,
    existing_project,
)


class FailOn(StrEnum):
    """Results of an audit that make it end with exit code 1."""

    weak = "weak"
    review = "review"
    not_indexed = "not-indexed"
    never = "never"


def audit(
    project: Project,
    report: Annotated[Path, typer.Argument(help="A report with citations: Markdown, HTML, LaTeX, DOCX, or PDF with text.")],
    bibliography: BibliographyOption = None,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[
        float | None,
        typer.Option(help="Lowest probability of weak support; by default that of the verifier's calibration."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with each claim beside its source.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows as JSON.")] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on",
            help="Exit with code 1 if citations are weak or need review, only if they need review, or only if sources are not "
            "indexed; in each case also if a mark has no reference, if no citation could be read, or if --resolve finds a "
            "reference retracted, different or not there.",
        ),
    ] = FailOn.never,
    resolve: Annotated[
        str | None,
        typer.Option(
            "--resolve",
            help="Also ask a register of published works whether each reference exists; it gets the texts of the references: "
            "crossref, or crossref:mailto=ADDRESS.",
        ),
    ] = None,
    retriever: Retrievers = None,
) -> None:
    """Audit every citation of a report.

    Writes 09_qa/retrieval_audit.md in the project if that is writable. A citation passes where its own source
    supports the sentence, and is weak where nothing is against it and the verifier is not sure; the others are to be reviewed,
    with the reason, or their source is not indexed.
    """
    from rich.console import Console

    from nlp_retrieval.core import check_folder_for_output, progress, write_output
    from nlp_retrieval.errors import OutputError
    from nlp_retrieval.systems.evidence.audit import CitationAuditor
    from nlp_retrieval.systems.evidence.audit_report import (
        PLACE,
        audit_json,
        print_audit,
        render_audit,
        retrieval_audit,
    )

    index = existing_project(project, retriever, may_be_emptied=True)
    asked_for = [path for path in (html, json_file) if path is not None]
    for path in asked_for:
        check_folder_for_output(path.parent)
    auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
    read = read_cited_report(report, bibliography)
    with progress("auditing", len(read.citations)) as advance:
        done = auditor.audit(read, lambda *_: advance(1))
    if resolve is not None:
        done = replace(done, report=replace(done.report, checked=_checked(done.report, resolve)))
    _say_notes(done.report.notes[len(read.notes) :])
    if not done.rows:
        say(f"note: {report} has no readable citations: numbers, authors, footnotes, keys or links")
    paths = []
    try:
        engines = ", ".join(index.engines)
        written = retrieval_audit(done.rows, index.stats(), engines, auditor.rule, unit=read.unit)
        write_output(project / PLACE, written.encode("utf-8", "replace"))
        paths.append(project / PLACE)
    except OutputError as error:  # a read-only project can be audited
        say(f"note: the audit was not written to the project: {error}")
    if html is not None:
        write_output(html, render_audit(done.rows, done.report, auditor.rule).encode())
    if json_file is not None:
        write_output(json_file, audit_json(done.rows, done.report).encode())
    paths += asked_for
    print_audit(Console(highlight=False), done.rows, done.report, auditor.rule)
    if paths:
        say("written: " + ", ".join(map(str, paths)))
    if _fails(done, fail_on):
        raise typer.Exit(1)


def _checked(report: CitedReport, register: str) -> list[CheckedReference]:
    """Ask a register about the references of a report."""
    from nlp_retrieval.core import progress
    from nlp_retrieval.systems.evidence.citations.published import BaseWorkRegister, check_references

    asked = built(BaseWorkRegister, "--resolve", register)
    with progress("asking about references", len(report.references)) as advance:
        return check_references(report.references, asked, lambda: advance(1))


def _fails(done: CitationAudit, fail_on: FailOn) -> bool:
    if fail_on is FailOn.never:
        return False
    missing = {citation.number for citation in done.report.missing}
    doubted = any(one.status in ("retracted", "not there", "differs") for one in done.report.checked)
    return (
        not done.rows
        or doubted
        or any(
            fail_on in (FailOn.weak, FailOn.review) or row.status == "SOURCE_NOT_INDEXED" or row.citation.number in missing
            for row in done.rows
            if row.to_review or (fail_on is FailOn.weak and not row.passes)
        )
    )


def review(
    project: Project,
    report: Annotated[Path, typer.Argument(help="The report.")],
    citations: Annotated[
        list[int] | None, typer.Argument(metavar="[CITATION]...", help="Numbers of citations, as an audit prints them.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Accept them: they count as passed.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject them: they do not pass, whatever the audit says.")] = False,
    note: Annotated[str, typer.Option("--note", help="A note, alone or with a decision.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Take back what this reviewer said about them.")] = False,
    by: Annotated[str, typer.Option("--by", help="Name of the reviewer.")] = "",
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
    from nlp_retrieval.systems.evidence.audit import CitationAuditor
    from nlp_retrieval.text import counted, visible

    decisions = [name for name, chosen in (("accepted", accept), ("rejected", reject), ("withdrawn", undo)) if chosen]
    if len(decisions) > 1:
        raise ConfigurationError("--accept, --reject and --undo exclude each other")
    decision = decisions[0] if decisions else "noted" if note else ""
    if decision and not citations:
        raise ConfigurationError("a decision needs the numbers of citations; the audit prints them")
    if decision and not by.strip():
        raise ConfigurationError("--by NAME is missing; say who reviewed it")
    index = existing_project(project, retriever, may_be_emptied=True)
    auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
    given = read_cited_report(report, bibliography)
    read = auditor.located(given)
    _say_notes(read.notes[len(given.notes) :])
    numbers = citations or []
    if unknown := [number for number in numbers if not 1 <= number <= len(read.citations)]:
        raise InputError(f"there is no citation {unknown[0]}; {report} has {counted(len(read.citations), 'citation')}")
    for number in numbers if decision else ():
        said = auditor.reviews.add(read.citations[number - 1], decision, by, note).said  # type: ignore[arg-type]
        say(visible(f"citation {number}, line {read.citations[number - 1].line}: {said}"))
    if not decision:
        _print_open(auditor.audit(read), numbers)


def _print_open(done: CitationAudit, numbers: Sequence[int]) -> None:
    """Print the rows of an audit that are open, or those with some numbers, with everything that was said about these."""
    from rich.console import Console

    from nlp_retrieval.systems.evidence.audit_report import print_audit
    from nlp_retrieval.text import visible

    rows = [row for row in done.rows if (row.citation.number in numbers if numbers else not row.passes)]
    if not rows:
        say("no citation is open")
        return
    print_audit(Console(highlight=False), done.rows, done.report, shown=rows)
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
        cited = {citation.title for citation in read.citations if citation.title}
        read.references.extend(work for work in works.entries if work.title in cited)
    _say_notes(read.notes)
    return read


def _say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        say(f"note: {note}")
