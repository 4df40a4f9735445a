"""The commands ``nlp-retrieval evidence``, in the order of ``--help``, and those that calibrate and train verifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli import say
from nlp_retrieval.systems.evidence.commands.claims import verify
from nlp_retrieval.systems.evidence.commands.demonstration import demo
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


app = typer.Typer(help="Collect sources, verify claims, audit a report's citations.", no_args_is_help=True)
for each in (add, delete, research, search, verify, audit, review, stats, export, calibrate, train_verifier, demo):
    app.command(each.__name__.replace("_", "-"))(each)
app.command("list")(list_sources)
