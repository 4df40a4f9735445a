"""The group of commands ``nlp-retrieval evidence``."""

from __future__ import annotations

import typer

from nlp_retrieval.systems.evidence.commands.claims import audit, verify
from nlp_retrieval.systems.evidence.commands.demonstration import command as demo_command
from nlp_retrieval.systems.evidence.commands.research import research
from nlp_retrieval.systems.evidence.commands.sources import add, delete, export, search, stats
from nlp_retrieval.systems.evidence.commands.verifiers import calibrate, train_verifier

app = typer.Typer(
    help="Index what was read, verify claims against it, audit every citation of a report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (add, delete, research, search, verify, audit, stats, export, calibrate, train_verifier):
    app.command(command.__name__.replace("_", "-"))(command)
app.command("demo")(demo_command)
