"""Children of this process, made by a fork: what they return, and that they end."""

from __future__ import annotations

import json
import os
import signal
import traceback
import warnings
from collections.abc import Callable

from readable import is_readable

HANGS_AFTER = 60.0


def forked(call: Callable[[], object]) -> object:
    """Return what a call gives in a child that ``os.fork`` makes, as plain JSON values."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:
        _answer(call, writing)
    os.close(writing)
    try:
        told = b""
        while is_readable(reading, HANGS_AFTER):
            part = os.read(reading, 2**16)
            if not part:
                break
            told += part
        else:
            raise AssertionError("the child hangs")
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    answer = json.loads(told)
    assert "error" not in answer, answer["error"]
    return answer["found"]


def _answer(call: Callable[[], object], writing: int) -> None:
    try:
        answer = {"found": call()}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    with os.fdopen(writing, "w") as pipe:
        json.dump(answer, pipe)
    os._exit(0)
