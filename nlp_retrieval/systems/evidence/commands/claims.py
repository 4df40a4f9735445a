"""The command that verifies claims."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli import say

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.claim_files import FiledClaim
    from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerdict, ClaimVerifier
from nlp_retrieval.systems.evidence.commands.project import (
    Project,
    Retrievers,
    VerifierOption,
    chosen_verifier,
    console,
    existing_project,
    print_passage,
)


class ClaimType(StrEnum):
    """Types of claims, by the grade of source that they need."""

    C1 = "C1"
    C2 = "C2"
    C3 = "C3"


class ClaimFailOn(StrEnum):
    """Statuses of claims that make ``verify`` end with exit code 1."""

    refuted = "refuted"
    disputed = "disputed"
    unverified = "unverified"
    never = "never"


_FAILING = {
    ClaimFailOn.refuted: {"REFUTED"},
    ClaimFailOn.disputed: {"REFUTED", "DISPUTED"},
    ClaimFailOn.unverified: {"REFUTED", "DISPUTED", "WEAK", "UNVERIFIED"},
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
        ClaimType, typer.Option("--type", help="C1 needs sources of grade B or better, C2 and C3 of C or better.")
    ] = ClaimType.C2,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[
        float | None, typer.Option(help="Lowest probability of weak support; by default that of the verifier's calibration.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; of a file of claims, one line each.")] = False,
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

    VERIFIED: at least two independent origins support it and none contradicts it; SUPPORTED: one; WEAK: only passages that the
    verifier is not sure of; DISPUTED: both; REFUTED: only against it; UNVERIFIED: neither.

    A file is read to its end before the first claim is verified; one that stands there twice is verified once. Columns id and
    type (C1, C2, C3) are optional, others are copied.
    """
    from nlp_retrieval.errors import QueryError
    from nlp_retrieval.systems.evidence.claim_files import is_claim_file, read_claims
    from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier

    if not claim.strip():
        raise QueryError("the claim is empty; write one statement in quotes")
    claims = read_claims(claim, claim_type.value) if is_claim_file(claim) else None
    judging = ClaimVerifier(existing_project(project, retriever), chosen_verifier(verifier), threshold=threshold)
    if claims is not None:
        statuses = _verify_file(claims, judging, as_json=as_json)
    else:
        verdict = judging.verify(claim, claim_type.value)
        statuses = {verdict.verification_status}
        if as_json:
            typer.echo(json.dumps(verdict.as_dict(), indent=1))
        else:
            _print_verdict(verdict)
    if statuses & _FAILING[fail_on]:
        raise typer.Exit(1)


def _verify_file(claims: Sequence[FiledClaim], judging: ClaimVerifier, *, as_json: bool) -> set[str]:
    """Verify claims, print each verdict, and return the statuses."""
    from nlp_retrieval.core import hidden_progress, progress
    from nlp_retrieval.systems.evidence.claim_files import verdicts_of
    from nlp_retrieval.text import counted

    statuses: Counter[str] = Counter()
    with ExitStack() as open_files:
        if sys.stdout.isatty():  # the claims that are printed there show how far it is
            open_files.enter_context(hidden_progress())
        advance = open_files.enter_context(progress("verifying", len(claims)))
        for verdicts in verdicts_of(claims, judging):
            for each, verdict in verdicts:
                statuses[verdict["verification_status"]] += 1
                _print_filed_verdict(each, verdict, as_json=as_json)
            advance(len(verdicts))
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.most_common())
    say(f"{counted(len(claims), 'claim')}: {counts}")
    return set(statuses)


def _print_filed_verdict(each: FiledClaim, verdict: dict[str, Any], *, as_json: bool) -> None:
    """Print the verdict on a claim of a file: as a line of JSON; else as a line with its status, claim and best source."""
    from rich.text import Text

    from nlp_retrieval.cli import print_json_line
    from nlp_retrieval.text import visible

    if as_json:
        print_json_line({"id": each.id} | verdict | {"fields": each.fields})
        return
    against = verdict["contradicting_evidence"] if verdict["verification_status"] == "REFUTED" else []
    sides = (verdict[f"{side}_evidence"] for side in ("supporting", "contradicting", "weak"))
    best: dict[str, Any] = next(chain(against, *sides), {})
    source = visible(best.get("url", "")).removeprefix("https://").removeprefix("http://")
    status, claim = f"{verdict['verification_status']:<10}  ", visible(" ".join(each.claim.split()))
    console().print(Text.assemble((status, "bold"), claim, (f"  {source}" if source else "", "dim")))


def _print_verdict(verdict: ClaimVerdict) -> None:
    from rich.text import Text

    from nlp_retrieval.text import counted, visible

    to = console()
    read = counted(len(verdict.neutral_evidence), "passage")
    to.print(Text.assemble((verdict.verification_status, "bold"), f"  {verdict.rule}"))
    for item in verdict.supporting_evidence:
        print_passage(to, f"  supports ({item.judgement.support:.2f})  ", item.passage, item.quote)
    for item in verdict.weak_evidence[: None if verdict.verification_status == "WEAK" else 0]:
        print_passage(to, f"  weakly supports ({item.judgement.support:.2f})  ", item.passage, item.quote)
    for item in verdict.contradicting_evidence:
        print_passage(to, f"  contradicts ({item.judgement.contradict:.2f})  ", item.passage, item.quote)
    if verdict.verification_status == "UNVERIFIED":
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
