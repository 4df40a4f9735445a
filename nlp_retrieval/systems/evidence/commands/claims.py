"""The command that verifies a claim, or a file of claims."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from nlp_retrieval.cli import print_json_line, say
from nlp_retrieval.errors import QueryError, SourceError
from nlp_retrieval.systems.evidence.commands.project import (
    Project,
    Retrievers,
    ThresholdOption,
    VerifierOption,
    chosen_verifier,
    console,
    existing_project,
    print_passage,
)
from nlp_retrieval.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerdict, ClaimVerifier


ClaimType = Literal["C1", "C2", "C3"]
_FAILING: dict[str, set[str]] = {
    "refuted": {"REFUTED"},
    "disputed": {"REFUTED", "DISPUTED"},
    "unverified": {"REFUTED", "DISPUTED", "WEAK", "UNVERIFIED"},
    "never": set(),
}
_FILES = (".csv", ".jsonl", ".txt")


def verify(
    project: Project,
    claim: Annotated[
        str,
        typer.Argument(
            help="One statement; or a file of claims: .csv with a column claim, .jsonl, or .txt with a claim a line."
        ),
    ],
    claim_type: Annotated[
        ClaimType, typer.Option("--type", help="C1 needs sources of grade B or better, C2 and C3 of C or better.")
    ] = "C2",
    verifier: VerifierOption = "lexical",
    threshold: ThresholdOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; of a file of claims, one line each.")] = False,
    fail_on: Annotated[
        Literal["refuted", "disputed", "unverified", "never"],
        typer.Option(
            "--fail-on",
            help="Exit with code 1 for a claim that is REFUTED; or also DISPUTED; or not even SUPPORTED (unverified).",
        ),
    ] = "never",
    retriever: Retrievers = None,
) -> None:
    """Verify a claim, or a file of claims, by the sources.

    VERIFIED: at least two independent origins support it and none contradicts it; SUPPORTED: one; WEAK: only passages that the
    verifier is not sure of; DISPUTED: both; REFUTED: only against it; UNVERIFIED: neither.

    A file is read to its end before the first claim is verified. Columns id and type (C1, C2, C3) are optional.
    """
    from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier

    if not claim.strip():
        raise QueryError("the claim is empty; write one statement in quotes")
    is_file = os.path.isfile(claim) or (claim.lower().endswith(_FILES) and " " not in claim)  # noqa: PTH113 -- Path's own raises
    claims = read_claims(claim, claim_type) if is_file else None
    judging = ClaimVerifier(existing_project(project, retriever), chosen_verifier(verifier), threshold=threshold)
    if claims is not None:
        statuses = _verify_file(claims, judging, as_json=as_json)
    else:
        verdict = judging.verify(claim, claim_type)
        statuses = {verdict.verification_status}
        if as_json:
            typer.echo(json.dumps(verdict.as_dict(), indent=1))
        else:
            _print_verdict(verdict)
    if statuses & _FAILING[fail_on]:
        raise typer.Exit(1)


def read_claims(path: str, claim_type: ClaimType = "C2") -> list[tuple[str, str, ClaimType]]:
    """Return the id (by default its number), text and type of each claim of a file; a SourceError names a wrong line."""
    from nlp_retrieval.loaders import quoted, read_json_lines, read_lines, read_rows

    if not path.lower().endswith(_FILES):
        raise SourceError(f"{path}: a file of claims ends in {', '.join(_FILES)}; save it as one of them")
    rows: Iterable[tuple[str, Mapping[str, JsonValue]]]
    if path.lower().endswith(".txt"):
        rows = ((f"{path}, line {number}", {"claim": line}) for number, line in read_lines(path) if line.strip())
    else:
        rows = read_rows(path) if path.lower().endswith(".csv") else read_json_lines(path)
    claims = []
    for number, (where, row) in enumerate(rows, start=1):
        if "claim" not in row:
            raise SourceError(f'{where}: no column "claim" (found: {quoted(row)}); give the column of the claims this name')
        text, kind = row["claim"], row.get("type") or claim_type
        if not isinstance(text, str) or not text.strip():
            raise SourceError(f'{where}: "claim" has no text; write one statement, or remove the row')
        if kind not in get_args(ClaimType):
            raise SourceError(f'{where}: "type" is {kind!r:.40}; a type is C1, C2 or C3, or empty')
        claims.append((str(row.get("id") or number), text.strip(), cast("ClaimType", kind)))
    if not claims:
        raise SourceError(f"{path}: there is no claim in it")
    return claims


def _verify_file(claims: list[tuple[str, str, ClaimType]], judging: ClaimVerifier, *, as_json: bool) -> set[str]:
    """Verify claims, print each verdict as a line, and return the statuses."""
    from rich.text import Text

    statuses: Counter[str] = Counter()
    for number, claim, kind in claims:
        verdict = judging.verify(claim, kind)
        statuses[verdict.verification_status] += 1
        if as_json:
            print_json_line({"id": number} | verdict.as_dict())
        else:
            console().print(Text.assemble((f"{verdict.verification_status:<10}  ", "bold"), visible(" ".join(claim.split()))))
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.most_common())
    say(f"{counted(len(claims), 'claim')}: {counts}")
    return set(statuses)


def _print_verdict(verdict: ClaimVerdict) -> None:
    from rich.text import Text

    to = console()
    read = counted(len(verdict.neutral_evidence), "passage")
    to.print(Text.assemble((verdict.verification_status, "bold"), f"  {verdict.rule}"))
    status = verdict.verification_status
    for words, items in (
        ("supports", verdict.supporting_evidence),
        ("weakly supports", verdict.weak_evidence if status == "WEAK" else []),
        ("contradicts", verdict.contradicting_evidence),
        (f"inconclusive, the nearest of {read}", verdict.neutral_evidence[:1] if status == "UNVERIFIED" else []),
    ):
        for item in items:
            scores = f"{item.judgement.support:.2f} for, {item.judgement.contradict:.2f} against"
            print_passage(to, f"  {words} ({scores})  ", item.passage, item.quote, item.page)
    for evidence, origins in (
        (verdict.supporting_evidence, verdict.supporting_origins),
        (verdict.contradicting_evidence, verdict.contradicting_origins),
    ):
        for origin in (item for item in origins if item.reasons):
            urls = dict.fromkeys(evidence[member].passage.url for member in origin.members)
            to.print(Text(visible(f"  one origin: {', '.join(urls)} ({'; '.join(origin.reasons)})")))
