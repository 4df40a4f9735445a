"""The command line, ``nlp-retrieval``: one module per family of commands.

Exit codes: 0 success; 1 failure; 2 the input or the configuration cannot be used; 3 the index is missing, does not
match or is damaged; 4 something has to be installed first; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nlp_retrieval._version import __version__
from nlp_retrieval.cli import agents, components, demo, gate, indexes, judge, runs, search, serve, tune
from nlp_retrieval.cli.console import OPTIONS, fail_safe_streams, say
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import DependencyError, IndexStateError, InputError, RetrievalError, RetrievalWarning
from nlp_retrieval.lm.counting import record_calls

_INTERRUPTED = 130
_LONGEST = 500

_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # of the click that typer bundles


class _KnownOptions(TyperGroup):
    """Stores the options of the command being called, for messages."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, called, rest = super().resolve_command(ctx, args)
        OPTIONS.clear()
        OPTIONS["replace"] = "--replace"  # of the command index, which another command may advise
        OPTIONS.update({str(parameter.name): max(parameter.opts, key=len) for parameter in (called.params if called else ())})
        return name, called, rest


class _Commands(_KnownOptions):
    """The library's commands, and those that installed packages add by entry points of ``nlp_retrieval.commands``.

    An added command is a ``typer.Typer``: a group, or a single command without a callback. It is imported when it is
    called, or listed by ``--help``. Errors are reported here: typer exits silently on some (a broken pipe, an early end of a
    file, Ctrl-C).
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted(_added().keys() - self.commands.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = None if cmd_name in self.commands else _added().get(cmd_name)
        return super().get_command(ctx, cmd_name) if entry is None else _loaded(entry)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's own copy of the class
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except _USAGE_ERROR as error:
            if not (message := error.format_message()):  # of a group called alone, whose help was printed
                raise
            called = error.ctx.command_path if error.ctx is not None else "nlp-retrieval"
            say(f"error: {message.replace('Value error, ', '').rstrip('.')}; {called} --help lists what there is")
            raise typer.Exit(2) from error
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(_report_error(error, debug=ctx.params["debug"])) from error


@cache
def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="nlp_retrieval.commands")}


@cache
def _loaded(entry: EntryPoint) -> Any:
    """Return the command that an installed package adds; a broken package does not break other commands."""
    try:
        added = entry.load()
        added.info.cls = _KnownOptions
    except Exception as error:
        added = _broken(entry, f"{type(error).__name__}: {error}")
    added.rich_markup_mode = "markdown"
    command: Any = typer.main.get_command(added)
    command.name, command.rich_help_panel = entry.name, "Systems and plug-ins"
    return command


def _broken(entry: EntryPoint, reason: str) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command(help=f"Cannot be loaded: {reason}"[:_LONGEST])
    def broken() -> None:
        raise DependencyError(
            f"the command {entry.name!r} of {entry.value} cannot be loaded ({reason}); reinstall or remove it"
        )

    return app


app = typer.Typer(
    name="nlp-retrieval",
    cls=_Commands,
    help="Compose, search with and compare retrieval pipelines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Start": {"demo": demo.command, "components": components.command},
    "Index": {
        "index": indexes.index,
        "add": indexes.add,
        "delete": indexes.delete,
        "compact": indexes.compact,
        "verify": indexes.verify,
    },
    "Search": {"search": search.search, "answer": search.answer, "serve": serve.command},
    "Compare": {
        "benchmark": runs.benchmark,
        "compare": runs.compare,
        "diff": runs.diff,
        "tune": tune.command,
        "gate": gate.command,
    },
}
for _title, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        _settings = {"auto_envvar_prefix": serve.VARIABLES} if _name == "serve" else None
        app.command(_name, rich_help_panel=_title, context_settings=_settings)(_command)
for _name, _group in (("judge", judge.app), ("agents", agents.app)):
    app.add_typer(_group, name=_name, cls=_KnownOptions, rich_help_panel="Compare")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nlp-retrieval {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    del version, debug  # _Commands reads debug
    if quiet:
        DISPLAY.mode = "off"


def main() -> None:
    """Run a command; an error is printed as one readable line and determines the exit code."""
    warnings.showwarning = _show_warning
    DISPLAY.mode = "lines"
    with fail_safe_streams() as output:
        try:
            code = _run()
        finally:
            DISPLAY.mode = "auto"
        sys.stdout.flush()
        if output.lost:
            say(f"error: standard output could not be written ({output.lost}); files and indexes are whole")
    sys.exit(code or int(bool(output.lost)))


def _run() -> int:
    for number, word in enumerate(sys.argv[1:], start=1):
        if find_lone_surrogate(word) is not None:
            found = f"argument {number} is not text in {sys.getfilesystemencoding()}: {os.fsencode(word)!r}"
            return _report_error(InputError(f"{found}; convert it, or give the file another name"), debug=False)
    with record_calls() as asked:
        try:
            app()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        except (Exception, KeyboardInterrupt) as error:
            return _report_error(error, debug=False)
    if not code and asked.failure is not None:
        say(f"error: no question to a language model was answered ({asked.failure})")
        return 1
    return code


def _report_error(error: BaseException, *, debug: bool) -> int:
    """Report an error in one line, and return the exit code."""
    if debug:
        say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, KeyboardInterrupt):
        whole = "files and indexes are whole; what was finished is kept, and the same command goes on from there"
        say(f"interrupted; {error.args[0] if error.args else whole}")
        return _INTERRUPTED
    if isinstance(error, RetrievalError):
        say(f"error: {error}")
        return next((code for kind, code in _CODES.items() if isinstance(error, kind)), 1)
    if isinstance(error, MemoryError):
        say("error: there is not enough memory for this; take fewer queries, a smaller k, or a larger machine")
        return 1
    if isinstance(error, OSError) and error.filename is not None:  # a name that no file can have, or no permission
        say(f"error: {str(error.filename)[:_LONGEST]} cannot be read or written ({error.strerror}); check the path")
        return 2
    reason = (str(error).splitlines() or [""])[0][:_LONGEST]
    say(f"error: unexpected {type(error).__name__}: {reason} (a defect: please report it with `nlp-retrieval --debug COMMAND`)")
    return 1


_CODES = {InputError: 2, IndexStateError: 3, DependencyError: 4}


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, RetrievalWarning):
        say(f"note: {message}")
