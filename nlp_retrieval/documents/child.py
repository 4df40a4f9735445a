"""Reading a document of unknown origin in a child process with limits of time, memory and output.

The child, ``python -m nlp_retrieval.documents.readers``, does not get this process's environment. Its input is a line of JSON
(the kind of the document and its name) and the document's bytes, its output one JSON object: what was read, or an error
message.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

from nlp_retrieval.errors import EngineError, SourceError

Answer = TypeVar("Answer")

CHILD_SECONDS = 60.0
"""Seconds that a child process may read one document."""

CHILD_MEMORY = 2 * 2**30
"""Bytes of address space that a child process may use."""

LARGEST_REPLY = 100 * 2**20
"""Bytes of an answer."""

_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR")
"""Environment variables that Python needs. Others may hold keys, which the reader of an untrusted file must not get."""

_KILLED = (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGXFSZ)


def read_in_child(kind: str, data: bytes, where: str, answer: type[Answer], seconds: float = CHILD_SECONDS) -> Answer:
    """Read a document or a bibliography in a process of its own.

    Args:
        kind: "html", "markdown", "latex", "pdf", "docx" or "bibliography".
        data: the bytes; those of text are UTF-8.
        where: its name, for messages.
        answer: the dataclass that is returned.
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
            [sys.executable, "-P", "-m", "nlp_retrieval.documents.readers"],
            stdin=order,
            stdout=reply,
            stderr=faults,
            env=_environment(),
            start_new_session=True,
        ) as child:
            try:
                status = child.wait(seconds)
            except subprocess.TimeoutExpired:
                raise SourceError(f"{where}: reading it takes longer than {seconds:g} seconds; omit it") from None
            finally:
                child.kill()
        if status in _KILLED or -status in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            raise SourceError(
                f"{where}: reading it was stopped by the system (signal {-status}): it takes more than {seconds:g} seconds "
                f"or {CHILD_MEMORY >> 20:,} MiB of memory, or it crashes its reader; omit it"
            )
        if status:
            faults.seek(max(0, faults.seek(0, os.SEEK_END) - 500))
            last_line = faults.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            raise EngineError(f"{where}: the process that reads it failed (status {status}): {' '.join(last_line)[:200]}")
        reply.seek(0)
        return _answer(reply.read(), where, answer)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _answer(raw: bytes, where: str, answer: type[Answer]) -> Answer:
    from pydantic import TypeAdapter, ValidationError

    from nlp_retrieval.core import parse_json

    try:
        reply = parse_json(raw, max_bytes=LARGEST_REPLY)
    except ValueError:
        reply = None
    if isinstance(reply, dict) and isinstance(message := reply.get("error"), str):
        raise SourceError(message)
    try:
        return TypeAdapter(answer).validate_python(reply)
    except ValidationError:
        pass
    raise EngineError(f"{where}: the process that reads it gave no valid answer")
