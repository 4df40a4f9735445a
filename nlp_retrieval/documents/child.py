"""Reading a document by its kind: in this process, or in a child process with limits of time, memory and output.

The child, ``python -m nlp_retrieval.documents.child``, does not get this process's environment, and limits itself before it
looks at the bytes. Its input is a line of JSON and the document's bytes, its output one JSON value.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

from nlp_retrieval.errors import EngineError, InputError, SourceError

Answer = TypeVar("Answer")

CHILD_SECONDS = 60  # that a child process may read one document
_MEMORY = 2 * 2**30
_LARGEST_REPLY = 100 * 2**20
_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")
"""Environment variables that Python needs. Others may hold keys, which the reader of an untrusted file must not get."""


def read_as(kind: str, data: bytes, where: str) -> Any:
    """Read a document or bibliography of a kind in this process; the bytes of text are UTF-8."""
    module = import_module(f"nlp_retrieval.documents.{'markdown' if kind == 'text' else kind}")
    read = getattr(module, f"read_{kind}")
    return read(data if kind in ("pdf", "docx") else data.decode(), where)


def read_in_child(kind: str, data: bytes, where: str, answer: type[Answer]) -> Answer:
    """Read a document or bibliography in a process of its own, and return it as a value of a type."""
    from pydantic import TypeAdapter

    from nlp_retrieval.core import parse_json

    # files instead of pipes: no deadlock, and the system itself stops a reply that grows too long
    with TemporaryFile() as order, TemporaryFile() as reply, TemporaryFile() as faults:
        order.write(json.dumps({"kind": kind, "where": where}).encode() + b"\n" + data)
        order.seek(0)
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "nlp_retrieval.documents.child"],
                stdin=order,
                stdout=reply,
                stderr=faults,
                env=_environment(),
                start_new_session=True,
                timeout=CHILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SourceError(f"{where}: reading it takes longer than {CHILD_SECONDS} seconds; omit it") from None
        if done.returncode < 0:
            limits = f"{CHILD_SECONDS} seconds or {_MEMORY >> 20:,} MiB of memory"
            raise SourceError(f"{where}: reading it takes more than {limits}, or crashes its reader; omit it")
        if done.returncode:
            faults.seek(max(0, faults.seek(0, os.SEEK_END) - 500))
            last_line = " ".join(faults.read().decode("utf-8", "replace").strip().splitlines()[-1:])[:200]
            raise EngineError(f"{where}: the process that reads it failed (status {done.returncode}): {last_line}")
        reply.seek(0)
        read = parse_json(reply.read(), max_bytes=_LARGEST_REPLY)
    if isinstance(read, dict) and "error" in read:
        raise SourceError(str(read["error"]))
    return TypeAdapter(answer).validate_python(read)


def _environment() -> dict[str, str]:
    paths = [str(Path(__file__).parents[2]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _limit() -> None:
    from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, RLIMIT_FSIZE, getrlimit, setrlimit

    limits = {RLIMIT_CPU: CHILD_SECONDS + 1, RLIMIT_AS: _MEMORY, RLIMIT_FSIZE: _LARGEST_REPLY, RLIMIT_CORE: 0}
    for what, most in limits.items():
        hard = getrlimit(what)[1]
        setrlimit(what, (most if hard == RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    """Read the document that standard input holds, as :func:`read_in_child` orders it."""
    _limit()
    from pydantic_core import to_jsonable_python

    order = json.loads(sys.stdin.buffer.readline())
    try:
        reply = to_jsonable_python(read_as(order["kind"], sys.stdin.buffer.read(), order["where"]))
    except InputError as error:
        reply = {"error": str(error)}
    except MemoryError:
        reply = {"error": f"{order['where']}: reading it takes more than {_MEMORY >> 20:,} MiB of memory; omit it"}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
