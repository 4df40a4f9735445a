"""The option by which a user trusts a manifest."""

from __future__ import annotations

from typing import Annotated

import typer

Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Trust the manifest to choose more than search settings: code, files, packages and servers. "
        "Without it, such requests are reported and refused.",
    ),
]
"""The option of a command that allows what a manifest may not decide."""
