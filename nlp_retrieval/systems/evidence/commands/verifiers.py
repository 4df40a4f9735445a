"""``nlp-retrieval evidence calibrate`` and ``train-verifier``: adapting a verifier to the user's claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli import say
from nlp_retrieval.systems.evidence.commands.projects import VerifierOption, chosen_verifier

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
    plants: Annotated[float, typer.Option(min=0, max=1, help="Share of supported pairs that wrong claims are made of.")] = 0.25,
    limit: Annotated[int | None, typer.Option(min=50, help="At most this many pairs of each collection.")] = None,
    seed: Annotated[int, typer.Option(help="Of the made-up claims, of the folds and of the pairs taken.")] = 0,
) -> None:
    """Fit the probabilities of a verifier on judged pairs.

    Reports its figures on families that it was not fitted on.
    """
    from nlp_retrieval.systems.evidence.verifiers.fitting import fit_verifier
    from nlp_retrieval.systems.evidence.verifiers.training.pairs import read_pairs

    fitted = fit_verifier(chosen_verifier(verifier), read_pairs(data), plants=plants, limit=limit, seed=seed)
    fitted.calibration.save(output)
    for line in fitted.lines():
        typer.echo(line)
    say(f"calibration: {output}")


def train_verifier(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model; a run that was stopped goes on there.")],
    base: Annotated[
        str, typer.Option(help="Model to begin with: hub name or folder.")
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the pairs at most.")] = 1,
    short_epochs: Annotated[int, typer.Option(min=0, help="Passes before these over the short pairs alone.")] = 2,
    learning_rate: Annotated[float, typer.Option(min=0, help="At its highest.")] = 1.2e-4,
    precision: Annotated[
        str, typer.Option(help="float32, or bfloat16 where the processor, or the GPU, computes in it.")
    ] = "float32",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; by default a GPU where there is one.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Fine-tune a small model to judge claims, on judged pairs.

    Held-out families decide when to stop. Use the folder with --verifier pair_model:model=FOLDER.
    """
    from nlp_retrieval.systems.evidence.verifiers.training.fine_tuning import TrainingSettings
    from nlp_retrieval.systems.evidence.verifiers.training.pairs import read_pairs
    from nlp_retrieval.systems.evidence.verifiers.training.run import train_verifier

    settings = TrainingSettings(
        epochs=epochs, short_epochs=short_epochs, learning_rate=learning_rate, precision=precision, seed=seed
    )
    report = train_verifier(read_pairs(data), base, output, settings, say, device)
    typer.echo(
        f"{report.pairs:,} pairs, {report.held_out:,} held out; loss {report.losses[report.best_epoch - 1]:.4f} after epoch "
        f"{report.best_epoch}"
    )
    typer.echo(f"model: {output}")
