"""``nlp-retrieval components``: list the components for configurations."""

from __future__ import annotations

import inspect
import shutil
import sys
import textwrap
from typing import Annotated

import typer


def command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="loaders, processors, retrievers, rerankers, encoders, fusions, searchers, links, answerers, or a kind "
            "that an installed package adds; all by default."
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="One component of that kind.")] = None,
) -> None:
    """List all components.

    Shows every registered component with its parameters. Those marked * belong to the index: changing one rebuilds it.
    """
    from nlp_retrieval.core.components.registry import kinds, names

    width = min(shutil.get_terminal_size().columns, 120) if sys.stdout.isatty() else 120
    for kind_listed in [kind] if kind is not None else kinds():
        registered = names(kind_listed)
        for component in [name] if name is not None else registered:
            typer.echo(_described(kind_listed, component, width))
        if not registered and kind is not None:
            typer.echo(f"no {kind_listed} are registered")


def _described(kind: str, name: str, width: int) -> str:
    from nlp_retrieval.core.components.registry import component_class, describe_parameters

    cls = component_class(kind, name)
    summary = (inspect.getdoc(cls) or "").partition("\n\n")[0]
    lines = [_wrapped(f"{typer.style(name, bold=True)} ({kind[:-1]}): {summary}", width, 0)]
    marks_index = kind in {"retrievers", "encoders", "links"}
    for key, default, description, of_index in describe_parameters(cls):
        mark = "*" if of_index and marks_index else " "
        value = "(required)" if default == "required" else f"= {default}"
        lines.append(_wrapped(f"{mark} {typer.style(key, bold=True)} {value}  {description}", width, 4))
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int, indent: int) -> str:
    plain = text.replace("``", "'")
    return textwrap.fill(plain, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 6))
