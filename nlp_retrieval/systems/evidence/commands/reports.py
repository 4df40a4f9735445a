"""Commands for the citations of a report: the audit and its review."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nlp_retrieval.cli import built, say
from nlp_retrieval.errors import ConfigurationError, InputError, OutputError
from nlp_retrieval.systems.evidence.commands.project import (
    BibliographyOption,
    Project,
    Retrievers,
    ThresholdOption,
    VerifierOption,
    chosen_verifier,
    existing_project,
)
from nlp_retrieval.text import counted, visible

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.audit import CitationAudit
    from nlp_retrieval.systems.evidence.citations.report import CitedReport


FailOn = Literal["weak", "review", "not-indexed", "never"]


def audit(
    project: Project,
    report: Annotated[Path, typer.Argument(help="A report with citations: Markdown, HTML, LaTeX, DOCX, or PDF with text.")],
    bibliography: BibliographyOption = None,
    verifier: VerifierOption = "lexical",
    threshold: ThresholdOption = None,
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
    ] = "never",
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
    from nlp_retrieval.systems.evidence.audit import CitationAuditor
    from nlp_retrieval.systems.evidence.audit_report import PLACE, audit_json, print_audit, render_audit, retrieval_audit
    from nlp_retrieval.systems.evidence.citations.published import BaseWorkRegister, check_references

    index = existing_project(project, retriever, may_be_emptied=True)
    written = [path for path in (html, json_file) if path is not None]
    for path in written:
        check_folder_for_output(path.parent)
    auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
    read = read_cited_report(report, bibliography)
    with progress("auditing", len(read.citations)) as advance:
        done = auditor.audit(read, lambda *_: advance(1))
    if resolve is not None:
        register = built(BaseWorkRegister, "--resolve", resolve)
        with progress("asking about references", len(read.references)) as advance:
            checked = check_references(read.references, register, lambda: advance(1))
        done = replace(done, report=replace(done.report, checked=checked))
    for note in done.report.notes:
        say(f"note: {note}")
    if not done.rows:
        say(f"note: {report} has no readable citations: numbers, authors, footnotes, keys or links")
    try:
        text = retrieval_audit(done, index.stats(), ", ".join(index.engines), auditor.rule)
        write_output(project / PLACE, text.encode("utf-8", "replace"))
        written.insert(0, project / PLACE)
    except OutputError as error:  # a read-only project can be audited
        say(f"note: the audit was not written to the project: {error}")
    if html is not None:
        write_output(html, render_audit(done, auditor.rule).encode())
    if json_file is not None:
        write_output(json_file, audit_json(done).encode())
    print_audit(Console(highlight=False), done, auditor.rule)
    if written:
        say("written: " + ", ".join(map(str, written)))
    if _fails(done, fail_on):
        raise typer.Exit(1)


def _fails(done: CitationAudit, fail_on: FailOn) -> bool:
    missing = {citation.number for citation in done.report.missing}
    to_review = [row for row in done.rows if row.to_review]
    failing = {
        "weak": [row for row in done.rows if not row.passes],
        "review": to_review,
        "not-indexed": [row for row in to_review if row.status == "SOURCE_NOT_INDEXED" or row.citation.number in missing],
    }
    doubted = any(one.status in ("retracted", "not there", "differs") for one in done.report.checked)
    return fail_on != "never" and (not done.rows or doubted or bool(failing[fail_on]))


def review(
    project: Project,
    report: Annotated[Path, typer.Argument(help="The report.")],
    citations: Annotated[
        list[int] | None, typer.Argument(metavar="[CITATION]...", help="Numbers of citations, as an audit prints them.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Accept them: they count as passed.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject them: they do not pass, whatever the audit says.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the decision about them back.")] = False,
    note: Annotated[str, typer.Option("--note", help="Why.")] = "",
    by: Annotated[str, typer.Option("--by", help="Name of the reviewer.")] = "",
    bibliography: BibliographyOption = None,
    verifier: VerifierOption = "lexical",
    threshold: ThresholdOption = None,
    retriever: Retrievers = None,
) -> None:
    """Review citations of a report, or list those that are open.

    Reviews are kept in the project. One stands in later audits as long as the sentence and the text of its source are the
    same. An accepted citation passes, a rejected one does not.
    """
    from rich.console import Console

    from nlp_retrieval.systems.evidence.audit import CitationAuditor, ReviewDecision
    from nlp_retrieval.systems.evidence.audit_report import print_audit

    asked: dict[ReviewDecision, bool] = {"accepted": accept, "rejected": reject, "withdrawn": undo}
    decisions = [decision for decision, chosen in asked.items() if chosen]
    if len(decisions) != bool(citations):
        raise ConfigurationError("a review needs numbers of citations, and one of --accept, --reject and --undo")
    index = existing_project(project, retriever, may_be_emptied=True)
    auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
    read = auditor.located(read_cited_report(report, bibliography))
    for said in read.notes:
        say(f"note: {said}")
    if not citations:
        done = auditor.audit(read)
        print_audit(Console(highlight=False), done, shown=[row for row in done.rows if not row.passes])
        return
    if unknown := [number for number in citations if not 1 <= number <= len(read.citations)]:
        raise InputError(f"there is no citation {unknown[0]}; {report} has {counted(len(read.citations), 'citation')}")
    for number in citations:
        citation = read.citations[number - 1]
        kept = auditor.reviews.add(citation, decisions[0], by, note)
        say(visible(f"citation {number}, line {citation.line}: {kept.said}"))


def read_cited_report(report: Path, bibliography: Path | None = None) -> CitedReport:
    """Return a report in any format, with its bibliography."""
    from nlp_retrieval.systems.evidence.citations.formats import read_bibliography_file, read_report_file
    from nlp_retrieval.systems.evidence.citations.report import read_report

    text = read_report_file(report)
    if bibliography is None:
        return read_report(text)
    works = read_bibliography_file(bibliography)
    read = read_report(replace(text, notes=[note for note in text.notes if "--bibliography" not in note]), works)
    cited = {citation.title for citation in read.citations if citation.title}
    read.references.extend(work for work in works if work.title in cited)
    return read
