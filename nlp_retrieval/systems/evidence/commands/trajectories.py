"""The command that audits what agents cite."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli import Loader, LoaderOptions, corpus_loader, print_json_line, say
from nlp_retrieval.systems.evidence.commands.project import VerifierOption, chosen_verifier, console

_LONGEST_TABLE = 20


def trajectories(
    files: Annotated[list[Path], typer.Argument(help="Trajectories: JSON lines, recordings or transcripts.")],
    corpus: Annotated[str, typer.Option("--corpus", help="File, folder or database URL of the texts that the agents read.")],
    loader: Loader = None,
    option: LoaderOptions = None,
    verifier: VerifierOption = "lexical",
    threshold: Annotated[float | None, typer.Option(help="Lowest probability of weak support; else the verifier's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every citation as a line of JSON instead.")] = False,
) -> None:
    """Audit what agents cite, by the number of their calls.

    Of each citation in a note or an answer: had its source come back, was it opened, and does it support the sentence.
    """
    from rich.table import Table

    from nlp_retrieval.agents import read_trajectories
    from nlp_retrieval.systems.evidence.trajectories import accuracy_by_calls, audit_trajectories

    read = [trajectory for file in files for trajectory in read_trajectories(file)]
    texts = {item.item_id: item.text for item in corpus_loader(corpus, loader, option).stream()}
    rows = audit_trajectories(read, texts, chosen_verifier(verifier), threshold)
    if as_json:
        for row in rows:
            judged = {"status": row.status, "support": row.support, "detail": row.detail}
            print_json_line(asdict(row.citation) | judged)
        return
    if not rows:
        say("nothing is cited: an answer cites an item by its id in brackets, as in [d1]")
        return
    passed = sum(row.passes for row in rows)
    say(f"{passed:,} of {len(rows):,} citations had been retrieved and are supported by their source.")
    table = Table("calls", box=None, pad_edge=False)
    for head in ("citations", "retrieved", "opened", "supported", "both", "95% interval"):
        table.add_column(head, justify="right")
    for by_calls in accuracy_by_calls(rows):
        shares = (by_calls.came, by_calls.opened, by_calls.supported, by_calls.passed)
        table.add_row(
            f"{by_calls.least}+" if by_calls.most is None else f"{by_calls.least} to {by_calls.most}",
            f"{by_calls.citations:,}",
            *(f"{share:.2f}" for share in shares),
            "" if by_calls.interval is None else "{:.2f} to {:.2f}".format(*by_calls.interval),
        )
    console().print(table)
    wrong = [row for row in rows if not row.passes]
    for row in wrong[:_LONGEST_TABLE]:
        citation = row.citation
        never = "it never came back; " if citation.came is None else ""
        say(f"{citation.agent}, {citation.question_id}, [{citation.item_id}]: {never}{row.status}: {row.detail}")
        say(f"  {citation.claim}")
    if len(wrong) > _LONGEST_TABLE:
        say(f"{len(wrong) - _LONGEST_TABLE:,} more with --json")
