"""The group of commands ``nlp-retrieval policy``."""

from __future__ import annotations

import typer

from nlp_retrieval.cli import renamed
from nlp_retrieval.systems.policy.commands.ask import command as ask_command
from nlp_retrieval.systems.policy.commands.demonstration import command as demo_command

app = typer.Typer(
    help="Ask the questions of a profile of every country of an index.", no_args_is_help=True, rich_markup_mode=None
)
app.command("ask")(ask_command)
app.command("demo")(demo_command)

ask = renamed(ask_command, "ask", "policy ask")
