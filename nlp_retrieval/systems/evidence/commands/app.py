"""The commands ``nlp-retrieval evidence``, in the order of ``--help``."""

from __future__ import annotations

import typer

from nlp_retrieval.systems.evidence.commands.claims import verify
from nlp_retrieval.systems.evidence.commands.demonstration import demo
from nlp_retrieval.systems.evidence.commands.reports import audit, review
from nlp_retrieval.systems.evidence.commands.sources import add, delete, export, list_sources, research, search, stats
from nlp_retrieval.systems.evidence.commands.verifiers import calibrate, train_verifier

app = typer.Typer(
    help="Collect sources, verify claims, audit a report's citations.",
    no_args_is_help=True,
)
for each in (
    add,
    delete,
    research,
    search,
    verify,
    audit,
    review,
    stats,
    export,
    calibrate,
    train_verifier,
    demo,
):
    app.command(each.__name__.replace("_", "-"))(each)
app.command("list")(list_sources)
