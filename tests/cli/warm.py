"""A process that has the command imported and forks a child for every call: most of a short command is its imports.

``python warm.py DESCRIPTOR``: a socket of packets. Each is a call as JSON (``words``, ``folder``, ``environment``), with
descriptors of its standard input, output and error, and of a pipe that receives the exit code. It ends with the socket.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

LONGEST = 100_000
"""Bytes of a call."""

_IMPORTED = (
    "pandas", "pyarrow.compute", "pyarrow.parquet", "rich.console", "rich.progress", "rich.table", "nlp_retrieval.cli.app",
    "nlp_retrieval.benchmarks.benchmarker", "nlp_retrieval.reports.write",
)  # fmt: skip
"""What most commands import, and what starts no threads; pyarrow imports pandas when it makes its first array."""


def main(descriptor: int) -> None:
    """Fork for every call until the socket is closed."""
    sys.path[0] = str(Path(sys.executable).parent)  # as of the command's script
    for name in _IMPORTED:
        import_module(name)

    os.set_inheritable(descriptor, False)
    calls = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who waits for a command ends unseen
    while True:
        message, descriptors, _, _ = socket.recv_fds(calls, LONGEST, 4)
        if not message:
            return
        if os.fork() == 0:
            calls.close()
            _wait(json.loads(message), descriptors)
        for one in descriptors:
            os.close(one)


def _wait(call: dict[str, Any], descriptors: Sequence[int]) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, ended = descriptors
    child = os.fork()
    if child == 0:
        os.close(ended)
        _perform(call, streams)
    _, status = os.waitpid(child, 0)
    os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _perform(call: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Run the command as the interpreter would: its streams, its environment, and what is done at the end of a process."""
    from nlp_retrieval.cli.app import main as command

    code = 1
    try:
        for number, one in enumerate(streams):
            os.dup2(one, number)
            os.close(one)
        sys.stdin = os.fdopen(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False)
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", encoding=of.encoding, errors=of.errors, closefd=False)
            for number, of in ((1, sys.stdout), (2, sys.stderr))
        )
        os.environ.clear()
        os.environ.update(call["environment"])
        time.tzset()
        os.chdir(call["folder"])
        sys.argv = call["words"]
        command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:  # as the interpreter tells it
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
