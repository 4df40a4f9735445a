"""``nlp-retrieval delete``: delete items from an index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.trusting import Trust
from nlp_retrieval.errors import ConfigurationError, SourceError

NAME = "delete"


def command(
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    item_id: Annotated[list[str] | None, typer.Argument(help="Ids of the items.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="A file of ids, one a line; - for standard input."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Delete items from an index by their ids.

    An unknown id is an error, and then nothing is deleted.
    """
    from nlp_retrieval.core.index.update import delete_items
    from nlp_retrieval.core.search.base_searcher import resolver

    ids = list(item_id or [])
    if file is not None:
        try:
            lines = (sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()).decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise SourceError(f"{file} is not UTF-8 text (byte {error.start}); convert it") from None
        except OSError as error:
            raise SourceError(f"{file} cannot be read ({error.strerror}); check the path") from None
        ids += [line.removesuffix("\r") for line in lines if line.strip()]
    if not ids:
        raise ConfigurationError("no ids were given; name them, or a file of them with --file")
    report = delete_items(index, ids, resolver(trust=trust))
    say(f"{report.deleted:,} items deleted; {report.n_items:,} items in {index} ({report.seconds:.1f} s)")
