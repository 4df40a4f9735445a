"""``nlp-retrieval gate``: fail where search became worse than an accepted baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import echo, say

if TYPE_CHECKING:
    from nlp_retrieval.gate.checking import GateReport


def command(
    config: Annotated[Path, typer.Argument(help="YAML: baseline, queries, margins, searcher, index, corpus.")],
    update: Annotated[bool, typer.Option("--update", help="Accept what is found now as the baseline.")] = False,
    reason: Annotated[str, typer.Option(help="Why it is accepted, with --update; kept in the baseline.")] = "",
    accept_losses: Annotated[
        bool, typer.Option("--accept-losses", help="With --update: accept losses and missing gold.")
    ] = False,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Also write Markdown, for a pull request.")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write JSON.")] = None,
) -> None:
    """Fail if a searcher is worse than its accepted baseline.

    Exits with 1 if a measure is worse, or fell by more than its margin, or, with cannot_tell: fail, if there are too few
    queries to tell.
    """
    from nlp_retrieval.core.files.atomic import check_file_for_output, write_output
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.gate.checking import Gate
    from nlp_retrieval.gate.settings import read_gate
    from nlp_retrieval.gate.writing import as_json, junit, lines_of, markdown

    if (reason or accept_losses) and not update:
        raise ConfigurationError("--reason and --accept-losses are for --update")
    writers: list[tuple[Path | None, Callable[[GateReport], str | bytes]]] = [
        (markdown_file, markdown),
        (junit_file, junit),
        (json_file, as_json),
    ]
    files = [(path, write) for path, write in writers if path is not None]
    for path, _ in files:
        check_file_for_output(path)
    gate = Gate(read_gate(config))
    if update:
        for line in gate.update(reason or "accepted", accept_losses=accept_losses):
            say(line)
        say(f"written: {gate.settings.baseline}")
        return
    report = gate.check()
    echo(lines_of(report))
    for path, write in files:
        content = write(report)
        write_output(path, content if isinstance(content, bytes) else content.encode())
    if not report.passes:
        raise typer.Exit(1)
