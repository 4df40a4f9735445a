"""``nlp-retrieval components``: what can stand in a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

NAME = "components"


def command(
    kind: Annotated[
        str | None,
        typer.Argument(help="loaders, processors, retrievers, rerankers, encoders, fusions or searchers; all by default."),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="One component of that kind.")] = None,
) -> None:
    """List every registered component with its parameters. Those marked * belong to the index: changing one builds anew."""
    import sys

    from rich.console import Console

    from nlp_retrieval.core.registry import KINDS, names

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    for one in [kind] if kind is not None else KINDS:
        found = names(one)
        for component in [name] if name is not None else found:
            _show(console, one, component)
        if not found and kind is not None:
            console.print(f"no {one} are registered")


def _show(console: Console, kind: str, name: str) -> None:
    import inspect

    from rich.padding import Padding
    from rich.text import Text

    from nlp_retrieval.core.registry import component_class, parameters_of

    cls = component_class(kind, name)
    summary = (inspect.getdoc(cls) or "").partition("\n\n")[0].replace("\n", " ")
    console.print(Text.assemble((f"{kind[:-1]} ", "dim"), (name, "bold cyan"), f"  {summary}"))
    marks_index = kind in {"retrievers", "encoders"}
    for key, default, description, of_index in parameters_of(cls):
        mark = "*" if of_index and marks_index else " "
        line = Text.assemble((f"{mark}{key}", "bold"), (f" = {default}" if default != "required" else " (required)", "dim"))
        line.append(f"  {description}")
        console.print(Padding(line, (0, 0, 0, 4)))
    console.print()
