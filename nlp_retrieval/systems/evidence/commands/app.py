"""The commands ``nlp-retrieval evidence``, in the order of ``--help``; those that train verifiers, and the demo."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from nlp_retrieval.cli import say
from nlp_retrieval.systems.evidence.commands.claims import verify
from nlp_retrieval.systems.evidence.commands.project import VerifierOption, chosen_verifier
from nlp_retrieval.systems.evidence.commands.reports import audit, review
from nlp_retrieval.systems.evidence.commands.sources import add, delete, export, list_sources, research, search, stats

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
) -> None:
    """Fit the probabilities of a verifier on judged pairs.

    Reports its figures on families that it was not fitted on.
    """
    from nlp_retrieval.systems.evidence.verifiers.fitting import fit_verifier, read_pairs

    calibration, figures = fit_verifier(chosen_verifier(verifier), read_pairs(data))
    calibration.save(output)
    for collection, auc in figures.items():
        typer.echo(f"{collection}  AUC {auc:.3f}")
    say(f"calibration: {output}")


def train_verifier(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder for the model.")],
    base: Annotated[str, typer.Option(help="Base model: hub name or folder.")] = "sentence-transformers/all-MiniLM-L6-v2",
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the pairs; the best is kept.")] = 3,
    learning_rate: Annotated[float, typer.Option(min=0, help="Highest learning rate.")] = 1.2e-4,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; by default a GPU if there is one.")] = None,
) -> None:
    """Fine-tune a small model to judge claims, on judged pairs.

    Held-out families decide when to stop. Use the folder with --verifier pair_model:model=FOLDER.
    """
    from nlp_retrieval.systems.evidence.verifiers.fitting import read_pairs
    from nlp_retrieval.systems.evidence.verifiers.training import train_verifier

    trained, held_out, loss = train_verifier(
        read_pairs(data), base, output, epochs=epochs, learning_rate=learning_rate, device=device
    )
    typer.echo(f"{trained:,} pairs, {held_out:,} held out; loss {loss:.4f}")
    typer.echo(f"model: {output}")


# The demo: sources, two claims and a report with wrong citations.

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


app = typer.Typer(help="Collect sources, verify claims, audit a report's citations.", no_args_is_help=True)
for each in (add, delete, research, search, verify, audit, review, stats, export, calibrate, train_verifier, demo):
    app.command(each.__name__.replace("_", "-"))(each)
app.command("list")(list_sources)
