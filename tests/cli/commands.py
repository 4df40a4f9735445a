"""The command as a shell runs it."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("nlp-retrieval"))

_STREAMS = ("in", "out", "err")
_IMPORTED = [
    "pandas", "pyarrow.compute", "pyarrow.parquet", "rich.console", "rich.progress", "rich.table", "nlp_retrieval.cli.app",
    "nlp_retrieval.benchmarks.benchmarker", "nlp_retrieval.reports.write",
]  # fmt: skip
"""What most commands import, and what starts no threads; pyarrow imports pandas when it makes its first array."""

_READ_AT_START = ("PYTHON", "LC_", "LANG", "OMP_", "OPENBLAS_", "ARROW_")
"""Variables that interpreter and libraries read when they start."""


def run(
    *words: str, stdin: str | bytes = "", folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process of its own, without a network."""
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    seen = os.environ | {"HF_HUB_OFFLINE": "1"} | environment
    forking, started = _forking()
    if sys.platform != "linux" or "\0" in "".join(words) or started != _read_at_start(seen):
        done = subprocess.run([COMMAND, *words], input=given, capture_output=True, cwd=folder, env=seen, check=False)
        return subprocess.CompletedProcess([COMMAND, *words], done.returncode, done.stdout.decode(), done.stderr.decode())
    with tempfile.TemporaryDirectory() as streams:
        for name in _STREAMS:
            Path(streams, name).write_bytes(given if name == "in" else b"")
        command = forking.Process(target=_perform, args=([COMMAND, *words], str(folder or Path.cwd()), seen, streams))
        command.start()
        command.join()
        out, err = (Path(streams, name).read_text("utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess([COMMAND, *words], command.exitcode or 0, out, err)


def refused(done: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """The command ended with this code, one readable message, and nothing on standard output."""
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    for part in said:
        assert part in done.stderr, done.stderr


def _read_at_start(environment: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in environment.items() if name.startswith(_READ_AT_START)))


@cache
def _forking() -> tuple[ForkServerContext, tuple[tuple[str, str], ...]]:
    """A process that has the command imported and forks a child for every call, and what it read when it started."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)  # most of a short command is its imports
    return context, _read_at_start(dict(os.environ))


def _perform(words: Sequence[str], folder: str, environment: dict[str, str], streams: str) -> None:
    """Run the command as the interpreter would: its streams, its environment, and what is done at the end of a process."""
    from nlp_retrieval.cli.app import main as command

    for number, name in enumerate(_STREAMS):
        opened = os.open(Path(streams, name), os.O_RDWR | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", encoding=of.encoding, errors=of.errors, closefd=False)
        for number, of in ((1, sys.stdout), (2, sys.stderr))
    )
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.path[0], sys.argv = str(Path(sys.executable).parent), list(words)
    try:
        command()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
