"""The demo: sources, two claims and a report with wrong citations."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from nlp_retrieval.cli import say

LIGHTHOUSE = "https://lighthouse-museum.example/tower"
_CLAIMS = (
    "The tidal plant supplied 61 gigawatt hours in 2025.",  # of two origins
    "Dredging the harbour of Port Ellery will cost 18 million crowns.",  # one wire story at two outlets
)


def demo(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
) -> None:
    """Audit the included report against its twelve sources."""
    from nlp_retrieval.core import write_output

    folder = output / "evidence"
    names = ("sources.jsonl", "lighthouse.html", "report.md", "wrong.json")
    for name in names:
        write_output(folder / name, resources.files("nlp_retrieval.systems.evidence").joinpath("demo", name).read_bytes())
    sources, lighthouse, report, wrong = (folder / name for name in names)
    project, page, rows = folder / "project", folder / "audit.html", folder / "audit.json"
    for words in (
        ("add", project, sources, "-r", "bm25"),
        ("add", project, lighthouse, "--url", LIGHTHOUSE, "-r", "bm25"),
        *(("verify", project, claim) for claim in _CLAIMS),
        ("audit", project, report, "--html", page, "--json", rows),
    ):
        arguments = ["evidence", *map(str, words)]
        say(f"$ nlp-retrieval {shlex.join(arguments)}")
        if code := context.find_root().command.main(arguments, "nlp-retrieval", standalone_mode=False):
            raise typer.Exit(code)
    for line in outcome(json.loads(rows.read_text("utf-8"))["rows"], json.loads(wrong.read_text("utf-8"))):
        say(line)
    say(f"open {page} in a browser")


def outcome(rows: Sequence[dict[str, Any]], wrong: Sequence[dict[str, Any]]) -> list[str]:
    """Return how many wrong citations an audit found, in sentences."""
    ways = {row["number"]: row["way"] for row in wrong}
    held = [row for row in rows if row["status"] in ("PASS", "WEAK")]
    missed = [row for row in held if row["citation"]["number"] in ways]
    flagged = [row for row in rows if row not in held and row["citation"]["number"] not in ways]
    return [
        f"the audit found {len(ways) - len(missed)} of the {len(ways)} citations that are wrong, and flagged {len(flagged)} of "
        f"the {len(rows) - len(ways)} that are right",
        *(f"  missed, {ways[row['citation']['number']]}: {row['claim']}" for row in missed),
        *(f"  flagged though right ({row['reason']}): {row['claim']}" for row in flagged),
    ]
