"""The command as a shell runs it."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from . import warm

COMMAND = str(Path(sys.executable).with_name("nlp-retrieval"))

_READ_AT_START = ("PYTHON", "LC_", "LANG", "OMP_", "OPENBLAS_", "ARROW_")
"""Variables that interpreter and libraries read when they start."""


def run(
    *words: str, stdin: str | bytes = "", folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process of its own, without a network."""
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    seen = os.environ | {"HF_HUB_OFFLINE": "1"} | environment
    call = {"words": [COMMAND, *words], "folder": str(folder or Path.cwd()), "environment": seen}
    message, start = json.dumps(call).encode(), _read_at_start(seen)
    alone = sys.platform != "linux" or len(message) > warm.LONGEST or "\0" in "".join(words)
    if alone or start != _read_at_start(dict(os.environ)):
        done = subprocess.run([COMMAND, *words], input=given, capture_output=True, cwd=folder, env=seen, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code, out, err = next(_warm(os.getpid(), start)).run(message, given)
    return subprocess.CompletedProcess([COMMAND, *words], code, out.decode(), err.decode())


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
def _warm(process: int, read_at_start: tuple[tuple[str, str], ...]) -> Iterator[_Warm]:
    """Two, in turn, so that sets are in another order in the next command, as they are between processes."""
    del process, read_at_start
    return itertools.cycle([_Warm(), _Warm()])


class _Warm:
    """A process of :mod:`cli.warm`."""

    def __init__(self) -> None:
        self._calls, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, warm.__file__, str(theirs.fileno())]
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        atexit.register(self._end)

    def run(self, message: bytes, stdin: bytes) -> tuple[int, bytes, bytes]:
        """Exit code, output and error of a call."""
        with ExitStack() as opened:
            given, out, err = (opened.enter_context(os.fdopen(os.memfd_create(name), "w+b")) for name in ("in", "out", "err"))
            given.write(stdin)
            given.seek(0)
            ended, told = os.pipe()
            code = opened.enter_context(os.fdopen(ended, "rb"))
            with os.fdopen(told, "wb"):
                socket.send_fds(self._calls, [message], [given.fileno(), out.fileno(), err.fileno(), told])
            said = code.read()
            out.seek(0)
            err.seek(0)
            return int(said), out.read(), err.read()

    def _end(self) -> None:
        self._calls.close()
        self._process.wait()
