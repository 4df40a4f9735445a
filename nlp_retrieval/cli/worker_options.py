"""Options of commands that can use other processes."""

from __future__ import annotations

from typing import Annotated

import typer

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", help="Number of worker processes, of one core each; default: this process, with all cores."),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|HOST:PORT",
        help="Use a Ray cluster: the one that this machine belongs to, or the one at an address.",
    ),
]
