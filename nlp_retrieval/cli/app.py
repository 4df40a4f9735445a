"""The command line, ``nlp-retrieval``: one module per command.

Exit codes: 0 done; 1 it did not work; 2 the input or the configuration cannot be used; 3 the index is missing, does not
fit or is damaged; 4 something has to be installed first; 130 interrupted.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from nlp_retrieval._version import __version__
from nlp_retrieval.cli import (
    add,
    benchmark,
    compact,
    compare,
    components,
    delete,
    demo,
    explain,
    index,
    optimize,
    report,
    rerun,
    search,
    tune,
    verify,
)
from nlp_retrieval.cli.console import say
from nlp_retrieval.errors import DependencyError, IndexStateError, InputError, RetrievalError, RetrievalWarning

app = typer.Typer(
    name="nlp-retrieval",
    help="Compose, search with and honestly compare retrieval pipelines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_COMMANDS = (
    *(demo, index, add, delete, compact, verify, search),
    *(benchmark, compare, explain, report, rerun, tune, optimize, components),
)
for module in _COMMANDS:
    app.command(module.NAME)(module.command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nlp-retrieval {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    del version


def main() -> None:
    """Run a command; errors of the project are one readable line each, and decide the exit code."""
    warnings.showwarning = _show_warning
    try:
        app()
    except RetrievalError as error:
        say(f"error: {error}")
        sys.exit(_exit_code(error))
    except KeyboardInterrupt:
        say("interrupted; files and indexes are whole, as they were before or as they were to become")
        sys.exit(130)


def _exit_code(error: RetrievalError) -> int:
    for kind, code in ((InputError, 2), (IndexStateError, 3), (DependencyError, 4)):
        if isinstance(error, kind):
            return code
    return 1


def _show_warning(  # the signature is Python's
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    del filename, lineno, file, line
    if issubclass(category, RetrievalWarning):
        say(f"note: {message}")
