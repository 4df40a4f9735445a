"""``nlp-retrieval evidence verify`` and ``audit``: claims and citations checked against sources."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import say
from nlp_retrieval.systems.evidence.commands.projects import (
    Json,
    Project,
    Retrievers,
    VerifierOption,
    chosen_verifier,
    emptied_or_existing_project,
    existing_project,
)

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.citations.auditor import CitationAudit
    from nlp_retrieval.systems.evidence.citations.retrieval_audit import RetrievalStatistics
    from nlp_retrieval.systems.evidence.claims import ClaimVerdict
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex


class ClaimType(StrEnum):
    """Types of claims, by the grade of source that they need."""

    C1 = "C1"
    C2 = "C2"


class FailOn(StrEnum):
    """Results of an audit that make it end with exit code 1."""

    review = "review"
    not_indexed = "not-indexed"
    never = "never"


def verify(
    project: Project,
    claim: Annotated[str, typer.Argument(help="One statement.")],
    claim_type: Annotated[
        ClaimType, typer.Option("--type", help="C1 needs sources of grade B or better, C2 of C or better.")
    ] = ClaimType.C2,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[float, typer.Option(help="Least probability to count as for or against the claim.")] = 0.6,
    as_json: Json = False,
    retriever: Retrievers = None,
) -> None:
    """Verify a claim against the sources of a project.

    VERIFIED: at least two independent origins support it and none contradicts it; SUPPORTED: one; DISPUTED: both; REFUTED:
    only against it; UNVERIFIED: neither.
    """
    from nlp_retrieval.errors import QueryError
    from nlp_retrieval.systems.evidence.claims import ClaimVerifier

    if not claim.strip():
        raise QueryError("the claim is empty; write one statement in quotes")
    index = existing_project(project, retriever)
    verdict = ClaimVerifier(index, chosen_verifier(verifier), threshold=threshold).verify(claim, claim_type.value)
    if as_json:
        typer.echo(json.dumps(verdict.as_dict(), indent=1))
    else:
        _print_verdict(verdict)


def audit(
    project: Project,
    report: Annotated[Path, typer.Argument(help="A Markdown report with citations.")],
    verifier: VerifierOption = "lexical",
    threshold: Annotated[
        float | None,
        typer.Option(help="Least probability of support to pass; by default what the verifier's calibration says."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with each claim beside its source.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows as JSON.")] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on", help="End with exit code 1 if a citation is to be reviewed, or not indexed, or if none could be read."
        ),
    ] = FailOn.never,
    retriever: Retrievers = None,
) -> None:
    """Audit every citation of a report.

    Writes 09_qa/retrieval_audit.md in the project where it may be written to. A citation passes where its own source
    supports the sentence; the others are to be reviewed, with the reason, or their source is not indexed.
    """
    from nlp_retrieval.core import check_folder_for_output, progress
    from nlp_retrieval.errors import OutputError
    from nlp_retrieval.systems.evidence.citations.audit_json import audit_json
    from nlp_retrieval.systems.evidence.citations.auditor import CitationAuditor
    from nlp_retrieval.systems.evidence.citations.markdown import read_report
    from nlp_retrieval.systems.evidence.citations.retrieval_audit import write_retrieval_audit

    index = emptied_or_existing_project(project, retriever)
    for path in filter(None, (html, json_file)):
        check_folder_for_output(path.parent)
    auditor = CitationAuditor(index, chosen_verifier(verifier), threshold)
    read = read_report(_report(report))
    with progress("auditing", len(read.citations)) as advance:
        done = auditor.audit(read, lambda *_: advance(1))
    if not done.rows:
        say(f"note: {report} has no citations that can be read: [1] with a list of references, footnotes, or links")
    written = []
    try:
        written.append(write_retrieval_audit(project, done.rows, _statistics(index), ", ".join(index.engines), auditor.rule))
    except OutputError as error:  # a read-only project can be audited
        say(f"note: the audit is not written in the project: {error}")
    if html is not None:
        from nlp_retrieval.systems.evidence.report.page import write_audit_page

        write_audit_page(done.rows, done.report, html, auditor.rule)
        written.append(html)
    if json_file is not None:
        from nlp_retrieval.core import write_output

        write_output(json_file, audit_json(done.rows, done.report).encode())
        written.append(json_file)
    _print_audit(done)
    if written:
        say("written: " + ", ".join(map(str, written)))
    if _fails(done, fail_on):
        raise typer.Exit(1)


def _fails(done: CitationAudit, fail_on: FailOn) -> bool:
    if fail_on is FailOn.never:
        return False
    return not done.rows or bool(done.count("SOURCE_NOT_INDEXED") or (fail_on is FailOn.review and done.count("REVIEW")))


def _report(path: Path) -> str:
    from nlp_retrieval.errors import SourceError
    from nlp_retrieval.systems.evidence.reading.decoding import decode_text
    from nlp_retrieval.systems.evidence.reading.folder import read_file

    if path.is_dir():
        raise SourceError(f"{path} cannot be read: Is a directory")
    return decode_text(read_file(path, follow_link=True), where=str(path))


def _statistics(index: EvidenceIndex) -> RetrievalStatistics:
    from nlp_retrieval.systems.evidence.citations.retrieval_audit import RetrievalStatistics

    stats = index.stats()
    queries = stats["total_queries"]
    return RetrievalStatistics(
        stats["indexed_count"],
        stats["indexed_passage_count"],
        stats["indexed_domains"],
        queries,
        stats["average_relevance"] if queries else None,
        stats["zero_result_queries"],
        "Relevance is ten times the share of a query's words that stand in the best passage found.",
    )


def _print_verdict(verdict: ClaimVerdict) -> None:
    from rich.text import Text

    from nlp_retrieval.reports import counted
    from nlp_retrieval.systems.evidence.commands.printing import console, print_passage
    from nlp_retrieval.text import visible

    to = console()
    read = counted(len(verdict.neutral_evidence), "passage")
    to.print(Text.assemble((verdict.verification_status, "bold"), f"  {verdict.rule}"))
    for one in verdict.supporting_evidence:
        print_passage(to, f"  supports ({one.judgement.support:.2f})  ", one.passage, one.quote)
    for one in verdict.contradicting_evidence:
        print_passage(to, f"  contradicts ({one.judgement.contradict:.2f})  ", one.passage, one.quote)
    if not verdict.supporting_evidence and not verdict.contradicting_evidence:
        for one in verdict.neutral_evidence[:1]:
            said = f"support {one.judgement.support:.2f}, contradict {one.judgement.contradict:.2f}"
            print_passage(to, f"  not clear enough, the nearest of {read} ({said})  ", one.passage, one.quote)
    for evidence, origins in (
        (verdict.supporting_evidence, verdict.supporting_origins),
        (verdict.contradicting_evidence, verdict.contradicting_origins),
    ):
        for origin in (one for one in origins if one.reasons):
            urls = dict.fromkeys(evidence[member].passage.url for member in origin.members)
            to.print(Text(visible(f"  one origin: {', '.join(urls)} ({'; '.join(origin.reasons)})")))


def _print_audit(done: CitationAudit) -> None:
    from rich.console import Console

    from nlp_retrieval.systems.evidence.report.table import audit_table

    Console(highlight=False).print(audit_table(done.rows, done.report))
