"""The readers of each kind of document, and the program of the child process that runs them.

The child limits itself before it looks at the bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from nlp_retrieval.documents.blocks import Document
from nlp_retrieval.documents.child import CHILD_MEMORY, CHILD_SECONDS, LARGEST_REPLY
from nlp_retrieval.errors import InputError


def read_as(kind: str, data: bytes, where: str) -> Document:
    """Read a document in this process.

    Args:
        kind: "text", "markdown", "html", "latex", "pdf" or "docx".
        data: the bytes; those of text are UTF-8.
        where: its name, for messages.

    Raises:
        SourceError: it cannot be read.
    """
    if kind == "docx":
        from nlp_retrieval.documents.docx import read_docx

        return read_docx(data, where)
    if kind == "pdf":
        from nlp_retrieval.documents.pdf import read_pdf

        return read_pdf(data, where)
    return _text_reader(kind)(data.decode(), where)


def _text_reader(kind: str) -> Callable[[str, str], Document]:
    if kind == "html":
        from nlp_retrieval.documents.html import read_html

        return read_html
    if kind == "latex":
        from nlp_retrieval.documents.latex import read_latex

        return read_latex
    from nlp_retrieval.documents.markdown import read_markdown, read_plain

    return read_markdown if kind == "markdown" else read_plain


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
    """Read one document or bibliography, as :func:`~nlp_retrieval.documents.child.read_in_child` orders it."""
    _limit()
    order = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    try:
        if order["kind"] == "bibliography":
            from nlp_retrieval.documents.bibliography import read_bibliography

            reply: dict[str, object] = asdict(read_bibliography(data.decode(), order["where"]))
        else:
            reply = asdict(read_as(order["kind"], data, order["where"]))
    except InputError as error:
        reply = {"error": str(error)}
    except MemoryError:
        reply = {"error": f"{order['where']}: reading it takes more than {CHILD_MEMORY >> 20:,} MiB of memory; omit it"}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
