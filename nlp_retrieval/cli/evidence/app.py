"""The group of commands ``nlp-retrieval evidence``."""

from __future__ import annotations

import typer

from nlp_retrieval.cli.evidence.claims import audit, verify
from nlp_retrieval.cli.evidence.research import research
from nlp_retrieval.cli.evidence.sources import add, delete, export, search, stats
from nlp_retrieval.cli.evidence.verifiers import calibrate, train_verifier

NAME = "evidence"

app = typer.Typer(
    help="Index what was read, verify claims against it, audit every citation of a report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (add, delete, research, search, verify, audit, stats, export, calibrate, train_verifier):
    app.command(command.__name__.replace("_", "-"))(command)
