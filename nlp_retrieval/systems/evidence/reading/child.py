"""Reading a source of unknown origin in a child process, ``python -m nlp_retrieval.systems.evidence.reading.child``.

The child has limits of time, memory and output, and not this process's environment. Its input is a line of JSON (the kind of
the source and its name) and the source's bytes, its output one JSON object: the text, or an error message. It limits itself
before it looks at the bytes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeVar

from nlp_retrieval.errors import EngineError, InputError, SourceError
from nlp_retrieval.systems.evidence.reading.document import CHILD_MEMORY, CHILD_SECONDS, LARGEST_TEXT, ReadText

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Answer = TypeVar("Answer")

_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR")
"""Environment variables that Python needs. Others may hold keys, which the reader of an untrusted file must not get."""

_KILLED = (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGXFSZ)


def read_in_child(kind: str, data: bytes, where: str, seconds: float = CHILD_SECONDS) -> ReadText:
    """Read a source in a process of its own, as :func:`call_in_child` describes it."""
    return call_in_child(kind, data, where, ReadText, seconds)


def call_in_child(kind: str, data: bytes, where: str, answer: type[Answer], seconds: float = CHILD_SECONDS) -> Answer:
    """Read a source, a report or a bibliography in a process of its own.

    Args:
        kind: "html", "markdown", "pdf" or "docx"; of a report "report docx" or the like; or "bibliography".
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
    root = str(Path(__file__).parents[4])
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


# In the child.

LARGEST_REPLY = 5 * LARGEST_TEXT
"""Bytes: a character has four at most, and few must be escaped; the omitted parts of a page fit in as well."""


def read_as(kind: str, data: bytes, where: str) -> DataclassInstance:
    """Read what :func:`call_in_child` describes, in this process."""
    if kind.startswith("report "):
        from nlp_retrieval.systems.evidence.citations.parsing import parse_report

        return parse_report(kind.removeprefix("report "), data, where)
    if kind == "bibliography":
        from nlp_retrieval.systems.evidence.citations.bibliography import read_bibliography

        return read_bibliography(data.decode(), where)
    if kind == "docx":
        from nlp_retrieval.systems.evidence.reading.word import read_word

        return read_word(data, where)
    if kind == "pdf":
        from nlp_retrieval.systems.evidence.reading.pdf import read_pdf

        return read_pdf(data, where)
    from nlp_retrieval.systems.evidence.reading.page import read_html, read_markdown

    return (read_html if kind == "html" else read_markdown)(data.decode(), where)


def _limit() -> None:
    import resource

    for what, most in (
        (resource.RLIMIT_AS, CHILD_MEMORY),
        (resource.RLIMIT_CPU, int(CHILD_SECONDS) + 1),
        (resource.RLIMIT_FSIZE, LARGEST_REPLY),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    """Read one source, as described in the module."""
    _limit()
    order = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    try:
        read = read_as(order["kind"], data, order["where"])
        reply: dict[str, object] = asdict(read)
    except InputError as error:
        reply = {"error": str(error)}
    except MemoryError:
        reply = {"error": f"{order['where']}: reading it takes more than {CHILD_MEMORY >> 20:,} MiB of memory; omit it"}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
