"""``nlp-retrieval verify``: compares every file of an index with its checksum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say

NAME = "verify"


def command(index: Annotated[Path, typer.Argument(help="An index directory.")]) -> None:
    """Check every file of an index.

    Whatever was checked before. Exit code 3 where one is damaged.
    """
    from nlp_retrieval.core.index.generation import verify_index

    damaged = verify_index(index)
    for message in damaged:
        say(message)
    if damaged:
        raise typer.Exit(3)
    say(f"{index}: every file is what its checksum says")
