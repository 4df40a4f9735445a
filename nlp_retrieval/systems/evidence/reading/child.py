"""The child process that reads one source of unknown origin: ``python -m nlp_retrieval.systems.evidence.reading.child``.

It takes a line of JSON (the kind of the source and its name) and the source's bytes from its input, and writes one JSON object
to its output: the text, or an error message. It limits itself before it looks at the bytes.
"""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import asdict

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.reading.limits import CHILD_MEMORY, CHILD_SECONDS, LARGEST_TEXT
from nlp_retrieval.systems.evidence.reading.markup.page import read_html, read_markdown
from nlp_retrieval.systems.evidence.reading.pdf import read_pdf
from nlp_retrieval.systems.evidence.reading.read_text import ReadText

LARGEST_REPLY = 5 * LARGEST_TEXT
"""Bytes: a character has four at most, and few must be escaped; the omitted parts of a page fit in as well."""


def read_as(kind: str, data: bytes, where: str) -> ReadText:
    """Read a source of a kind.

    Args:
        kind: "html", "markdown" or "pdf".
        data: the bytes; those of HTML and Markdown are UTF-8.
        where: its name, for messages.

    Raises:
        SourceError: it cannot be read.
    """
    if kind == "pdf":
        return read_pdf(data, where)
    return (read_html if kind == "html" else read_markdown)(data.decode(), where)


def _limit() -> None:
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
    except SourceError as error:
        reply = {"error": str(error)}
    except MemoryError:
        reply = {"error": f"{order['where']}: reading it takes more than {CHILD_MEMORY >> 20:,} MiB of memory; leave it out"}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
