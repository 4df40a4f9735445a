"""Output of the commands: results on standard output, everything else on standard error.

A closed pipe or a full device does not stop a command half-way: output that cannot be written is dropped, the work goes on, and
the command reports it. A closed pipe is not an error: the reader has what it wanted, like ``head`` in a pipe.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from nlp_retrieval.errors import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from nlp_retrieval.core.components.component import Component
    from nlp_retrieval.core.search.retriever import BaseRetriever
    from nlp_retrieval.lm.language_model import LanguageModel

T = TypeVar("T", bound="Component")

_SETTING = re.compile(r"\b(?P<verb>pass|with) (?P<name>[a-z_]{2,40})=(?P<value>\.{3}|[\w'\"/-]{0,100})(?!\[)")

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Let the manifest choose code, files, packages and servers, which is refused otherwise."),
]
"""The option of a command that allows what a manifest may not decide."""

OPTIONS: dict[str, str] = {}
"""Spelling of the current command's parameters, by name, for messages."""


def say(message: str) -> None:
    """Write a message to standard error: in command-line terms, without secrets or terminal control characters.

    Args:
        message: as in Python.

    Examples:
        >>> say("3 items in index (0.1 s)")  # on standard error
    """
    from nlp_retrieval.core.progress_bars import DISPLAY
    from nlp_retrieval.core.secrets import without_secrets

    DISPLAY.clear()
    message = _SETTING.sub(_as_option, message)
    typer.echo(_harmless(str(without_secrets(message))), err=True)


def one_line(text: str) -> str:
    """Return untrusted text as a line, or part of one, that neither a terminal nor a CI runner takes for a command."""
    from nlp_retrieval.text.printing import not_a_command, printable

    return not_a_command(printable(text))


def _harmless(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))


def echo(lines: Iterable[str]) -> None:
    """Print lines that contain names or text from outside."""
    for line in lines:
        typer.echo(_harmless(line))


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield rows of cells as lines, with the cells of a column below each other."""
    from rich.cells import cell_len

    listed = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*listed, strict=True)]
    for row in listed:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _as_option(setting: re.Match[str]) -> str:
    """A setting that a message says to pass (``replace=True``) as an option: ``--replace``, or ``-o KEY=VALUE``."""
    verb, name, value = setting.groups()
    if (option := OPTIONS.get(name, "")).startswith("--"):
        return f"{verb} {option}" + ("" if value == "True" else f" {value}")
    return f"{verb} -o {name}={value or '...'}" if "option" in OPTIONS else setting[0]


def say_progress(message: str) -> None:
    """Write a message about what begins now, unless ``--quiet`` was given."""
    from nlp_retrieval.core.progress_bars import DISPLAY

    if DISPLAY.mode != "off":
        say(message)


def parse_options(options: Sequence[str]) -> dict[str, Any]:
    """Turn ``key=value`` words into parameters: JSON, a list or mapping (``[bm25, faiss]``) as YAML, or text."""
    parsed: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{option!r} is not key=value")
        parsed[key.strip()] = _value(option, value)
    return parsed


def _value(option: str, value: str) -> Any:
    from nlp_retrieval.core.files.opening import parse_json
    from nlp_retrieval.core.files.yaml_text import parse_yaml

    try:
        return int(value) if re.fullmatch("-?[1-9][0-9]+", value) else parse_json(value)  # JSON is read to 64 bits
    except ValueError:
        return parse_yaml(value, f"{option[:80]!r}") if value.lstrip().startswith(("[", "{")) else value


def parse_component(text: str) -> dict[str, Any]:
    """Turn ``name`` or ``name:key=value,key=value`` into the settings of a component; commas in brackets do not separate."""
    name, _, options = text.partition(":")
    parts, depth = [""], 0
    for character in options:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return {"name": name} | parse_options([part for part in parts if part])


def built(base: type[T], option: str, text: str) -> T:
    """Build the component that an option names.

    Args:
        base: the class that it must be of, which says its kind.
        option: for messages, such as ``--retriever``.
        text: ``name`` or ``name:key=value,key=value``.

    Raises:
        ConfigurationError: there is no such component, it is of another class, or a setting is wrong.

    Examples:
        >>> from nlp_retrieval.core import BaseRetriever
        >>> built(BaseRetriever, "--retriever", "bm25:k1=1.2")
        Bm25Retriever(k1=1.2)
    """
    from nlp_retrieval.core.components.registry import build_as

    return build_as(base, base.kind, parse_component(text), option)


def language_model(text: str) -> LanguageModel:
    """Build the language model that ``--lm`` names: ``openai/gpt-4o-mini``, or ``openai/NAME:base_url=http://...``."""
    from nlp_retrieval.core.components.registry import build_as
    from nlp_retrieval.lm.language_model import LanguageModel

    settings = parse_component(text)
    return build_as(LanguageModel, LanguageModel.kind, settings | {"name": "dspy", "model": settings["name"]}, "--lm")


def default_lexical_retriever() -> BaseRetriever:
    """Return Lucene's BM25 if pyserini and a recent enough Java are installed, else bm25."""
    from nlp_retrieval.retrievers.pyserini.jvm import available

    if available() is None:
        from nlp_retrieval.retrievers.pyserini.retriever import PyseriniRetriever

        return PyseriniRetriever()
    from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

    return Bm25Retriever()


class FailSafeStream(io.FileIO):
    """A file that accepts all writes, and remembers the first error."""

    failure: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as much as possible; after the first failure, the rest is dropped."""
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes

    @property
    def lost(self) -> str:
        """Return why output was lost that its reader still expects; empty if none was."""
        if self.failure is None or self.failure.errno == errno.EPIPE:
            return ""
        return os.strerror(self.failure.errno or errno.EIO)


@contextmanager
def fail_safe_streams() -> Iterator[FailSafeStream]:
    """Wrap standard output and error in such files, if they are the process's own; yields the wrapper of the output."""
    _fill_closed()
    output, errors = FailSafeStream(1, "wb", closefd=False), FailSafeStream(2, "wb", closefd=False)
    before = sys.stdin, sys.stdout, sys.stderr
    if sys.stdin is None:  # Python's value for a closed stream
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(output, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(errors, sys.stderr)
    try:
        yield output
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def takes_all_text() -> bool:
    """Return whether standard output has an encoding for every character."""
    return (sys.stdout.encoding or "").replace("-", "").lower() in {"utf8", ""}


def _text(file: FailSafeStream, before: TextIO | None) -> TextIO:
    encoding = before.encoding if before is not None else "utf-8"
    lines = before is not None and before.isatty()
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, "backslashreplace", line_buffering=lines)


def _fill_closed() -> None:
    """Fill closed standard streams, so that the next file opened does not take their place and receive messages."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number
