"""The command line, ``nlp-retrieval``: one module per family of commands.

Exit codes: 0 success; 1 failure; 2 the input or the configuration cannot be used; 3 the index is missing, does not
match or is damaged; 4 something has to be installed first; 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nlp_retrieval._version import __version__
from nlp_retrieval.cli import agents, components, demo, gate, indexes, judge, runs, search, serve, tune
from nlp_retrieval.cli.console import OPTIONS, say
from nlp_retrieval.cli.streams import fail_safe_streams
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import DependencyError, IndexStateError, InputError, RetrievalError, RetrievalWarning
from nlp_retrieval.lm.counting import record_calls

_INTERRUPTED = 130
_LONGEST = 500

_ADDED = "Systems and plug-ins"

_OF_TYPER: tuple[type[BaseException], ...] = (typer.Exit, typer.Abort, *typer.BadParameter.__mro__[1:3])
"""Exceptions that typer handles itself; the last is the base of usage errors, in the click that typer uses or bundles."""


_METAVARS = {"str": "TEXT", "path": "PATH", "int": "N", "int range": "N", "float": "X", "float range": "X", "bool": ""}


class _Command(TyperCommand):
    """A command whose help names arguments and values in capitals, and has its options in groups (``rich_help_panel``)."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub(r"[{}]", "", piece).upper() for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                name = record[0].split()[0].upper() if is_argument else re.sub(r" <(?:list\[)?(.+?)\]?>$", _metavar, record[0])
                panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault(panel, []).append((name, record[1]))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _metavar(match: re.Match[str]) -> str:
    return f" {_METAVARS.get(match[1], match[1])}"


class _KnownOptions(TyperGroup):
    """Stores the options of the command being called."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                title = getattr(command, "rich_help_panel", None) or (_ADDED if name in _added() else "Commands")
                sections.setdefault(title, []).append((name, command))
        width = max((len(name) for commands in sections.values() for name, _ in commands), default=0)
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{width}}", command.get_short_help_str(formatter.width - width - 6)) for name, command in commands]
                )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        options = args[: args.index("--")] if "--" in args else args
        if "--quiet" in options[1:]:
            _be_quiet(True)
            args = [word for word in options if word != "--quiet"] + args[len(options) :]
        name, called, rest = super().resolve_command(ctx, args)
        OPTIONS.clear()
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
        except _OF_TYPER:
            raise
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
    except Exception as error:
        added = _broken(entry, f"{type(error).__name__}: {error}")
    if not isinstance(added, typer.Typer):
        added = _broken(entry, "it is no typer.Typer")
    _with_own_help(added)
    if len(added.registered_commands) == 1 and not added.registered_groups and added.registered_callback is None:
        command = typer.main.get_command(added)
    else:
        added.info.cls = _KnownOptions
        command = typer.main.get_group(added)
    command.name = entry.name
    return command


def _with_own_help(added: typer.Typer) -> None:
    for registered in added.registered_commands:
        registered.cls = _Command if registered.cls in (None, TyperCommand) else registered.cls
    for group in added.registered_groups:
        if group.typer_instance is not None:
            group.cls = _KnownOptions
            _with_own_help(group.typer_instance)


def _broken(entry: EntryPoint, reason: str) -> typer.Typer:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

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
    rich_markup_mode=None,
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
        "report": runs.report,
        "tune": tune.command,
        "gate": gate.command,
    },
}
for _title, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        _settings = {"auto_envvar_prefix": serve.VARIABLES} if _name == "serve" else None
        app.command(_name, cls=_Command, rich_help_panel=_title, context_settings=_settings)(_command)
for _name, _group in (("judge", judge.app), ("agents", agents.app)):
    _with_own_help(_group)
    app.add_typer(_group, name=_name, cls=_KnownOptions, rich_help_panel="Compare")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nlp-retrieval {__version__}")
        raise typer.Exit


def _be_quiet(wanted: bool) -> None:
    if wanted:
        DISPLAY.mode = "off"


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", callback=_be_quiet, help="Show no progress; also after a command's name.")
    ] = False,
) -> None:
    del version, debug, quiet  # _Commands reads debug


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
    with record_calls() as asked:
        try:
            check_words(sys.argv[1:])
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


def check_words(words: Sequence[str]) -> None:
    """Raise an error if a command line contains bytes that are not text.

    Raises:
        InputError: one of the words is not text; the message shows its bytes.
    """
    for number, word in enumerate(words, start=1):
        if find_lone_surrogate(word) is not None:
            raise InputError(
                f"argument {number} is not text in {sys.getfilesystemencoding()}: {os.fsencode(word)!r}; convert it, or "
                "give the file another name"
            )


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
        return _exit_code(error)
    if isinstance(error, MemoryError):
        say("error: there is not enough memory for this; take fewer queries, a smaller k, or a larger machine")
        return 1
    reason = (str(error).splitlines() or [""])[0][:_LONGEST]
    say(
        f"error: unexpected {type(error).__name__}: {reason} (a defect of nlp-retrieval: please report it to its developers, "
        "with the output of `nlp-retrieval --debug COMMAND ...`)"
    )
    return 1


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
