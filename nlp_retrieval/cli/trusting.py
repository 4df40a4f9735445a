"""The option by which a user trusts a manifest."""

from __future__ import annotations

from typing import Annotated

import typer

Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Let the manifest decide more than settings of a search: which code, files, packages and servers are used. "
        "Without it, what it asks for is told and not done.",
    ),
]
