"""``nlp-retrieval verify``: compare every file of an index, and its tables on a server, with their checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say

NAME = "verify"


def command(
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    url: Annotated[str | None, typer.Option(help="The server of its tables, as env:NAME; default: the index's own.")] = None,
    token: Annotated[str | None, typer.Option(help="The token for a Milvus server, as env:NAME.")] = None,
) -> None:
    """Check every file of an index, and every row of its tables.

    Files checked before are checked again. Exit code 3 if one is damaged.
    """
    from nlp_retrieval.core.index.generation import verify_index

    damaged = verify_index(index)
    if not damaged and any(index.glob("*/server.json")):
        from nlp_retrieval.retrievers.postgres.engine import verify_tables

        damaged += verify_tables(index, url)
    if not damaged and any(index.glob("*/milvus.json")):
        from nlp_retrieval.retrievers.milvus.collections import verify_collections

        damaged += verify_collections(index, url, token)
    for message in damaged:
        say(message)
    if damaged:
        raise typer.Exit(3)
    say(f"{index}: every file is what its checksum says")
