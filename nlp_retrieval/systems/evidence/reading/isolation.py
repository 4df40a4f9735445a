"""Reading a source in a child process with limits of time, memory and output, and without this process's environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

from pydantic import TypeAdapter, ValidationError

from nlp_retrieval.core import parse_json
from nlp_retrieval.errors import EngineError, SourceError
from nlp_retrieval.systems.evidence.reading.limits import CHILD_MEMORY, CHILD_SECONDS
from nlp_retrieval.systems.evidence.reading.read_text import ReadText

__all__ = ["read_in_child"]

_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR")
"""Environment variables that Python needs. Others may hold keys, which the reader of an untrusted file must not get."""

_READ_TEXT = TypeAdapter(ReadText)
_KILLED = (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGXFSZ)


def read_in_child(kind: str, data: bytes, where: str, seconds: float = CHILD_SECONDS) -> ReadText:
    """Read a source in a process of its own.

    Args:
        kind: "html", "markdown" or "pdf".
        data: the bytes; those of HTML and Markdown are UTF-8.
        where: its name, for messages.
        seconds: limit of time.

    Raises:
        SourceError: it cannot be read, or exceeds the limit of time or memory.
        EngineError: the child process failed.
    """
    # files instead of pipes: no deadlock, and the system itself stops a reply that grows too long
    with TemporaryFile() as order, TemporaryFile() as reply, TemporaryFile() as faults:
        order.write(json.dumps({"kind": kind, "where": where}).encode() + b"\n" + data)
        order.seek(0)
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "nlp_retrieval.systems.evidence.reading.child"],
            stdin=order,
            stdout=reply,
            stderr=faults,
            env=_environment(),
            start_new_session=True,
        ) as child:
            try:
                status = child.wait(seconds)
            except subprocess.TimeoutExpired:
                raise SourceError(f"{where}: reading it takes longer than {seconds:g} seconds; leave it out") from None
            finally:
                child.kill()
        if status in _KILLED or -status in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            raise SourceError(
                f"{where}: reading it was stopped by the system (signal {-status}): it takes more than {seconds:g} seconds "
                f"or {CHILD_MEMORY >> 20:,} MiB of memory, or is made to end its reader; leave it out"
            )
        if status:
            faults.seek(max(0, faults.seek(0, os.SEEK_END) - 500))
            said = faults.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            raise EngineError(f"{where}: the process that reads it failed (status {status}): {' '.join(said)[:200]}")
        reply.seek(0)
        return _answer(reply.read(), where)


def _environment() -> dict[str, str]:
    here = str(Path(__file__).parents[4])
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _answer(raw: bytes, where: str) -> ReadText:
    try:
        reply = parse_json(raw)
    except ValueError:
        reply = None
    if isinstance(reply, dict) and isinstance(message := reply.get("error"), str):
        raise SourceError(message)
    try:
        return _READ_TEXT.validate_python(reply)
    except ValidationError:
        pass
    raise EngineError(f"{where}: the process that reads it gave no answer that can be understood")
