"""The options of commands whose work other processes share."""

from __future__ import annotations

from typing import Annotated

import typer

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", help="So many processes do the work, a core each; by default this one does, with all cores."),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|HOST:PORT",
        help="A Ray cluster does the work: the one that this machine belongs to, or the one at an address.",
    ),
]
