"""The options of commands that have passages encoded by other processes."""

from __future__ import annotations

from typing import Annotated

import typer

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", help="So many processes encode passages, a core each; by default this one does, with all cores."),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|HOST:PORT",
        help="A Ray cluster encodes passages: the one that this machine belongs to, or the one at an address.",
    ),
]
