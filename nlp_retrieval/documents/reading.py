"""Reading a document of any kind from its bytes, within limits.

A document may come from anyone. One that exceeds a limit is refused with a message that names the limit, and never cut. PDF,
DOCX, LaTeX and large pages are read in a child process with limits of time and memory.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import Any, TypeVar

from nlp_retrieval.core.files.opening import open_regular
from nlp_retrieval.documents.bibliography import read_bibliography
from nlp_retrieval.documents.blocks import Document, Reference
from nlp_retrieval.errors import DependencyError, EngineError, InputError, SourceError, install
from nlp_retrieval.text import printable

LARGEST_FILE = 50 * 2**20  # bytes
LARGEST_TEXT = 20 * 2**20
"""Characters of text of one document."""

_KINDS = {  # suffixes, media types, and the most bytes that this process reads itself: even a malicious text takes only seconds
    "text": (".txt", "text/plain", LARGEST_FILE),
    "markdown": (".md .markdown", "text/markdown", 2**15),
    "html": (".html .htm .xhtml", "text/html application/xhtml+xml", 2**18),
    "latex": (".tex .latex", "", 0),
    "pdf": (".pdf", "application/pdf", 0),
    "docx": (".docx .docm", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", 0),
    "bibliography": ("", "", 100_000),
}
SUFFIXES = {suffix: kind for kind, (suffixes, _, _) in _KINDS.items() for suffix in suffixes.split()}
MEDIA_TYPES = {media_type: kind for kind, (_, media_types, _) in _KINDS.items() for media_type in media_types.split()}
READ_HERE = {kind: most for kind, (_, _, most) in _KINDS.items()}
_NEEDED = ("lxml", "trafilatura", "w3lib", "cssselect2", "markdown_it", "mdit_py_plugins", "pylatexenc", "pypdf", "mammoth")
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Word file, or a DOCX with a password; save it as DOCX without one",
    b"{\\rtf": "RTF; save it as DOCX",
}
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32"}  # before UTF-16, whose mark begins with the same bytes
_MARKS |= {codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def decode_text(data: bytes, declared: str = "", where: str = "this source") -> str:
    """Return the text of some bytes, without a byte order mark.

    A byte order mark decides, then UTF-8 if the bytes are valid, then the encoding that the source or its server declares;
    nothing is guessed.

    Raises:
        SourceError: no encoding fits; the message names the first byte that does not.

    Examples:
        >>> decode_text("Krill".encode("utf-16"))
        'Krill'
    """
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "")
    encoding = marked or (declared.strip() and _known(declared)) or "utf-8"
    # the bytes of iso2022_jp are valid UTF-8 as well, and mean something else
    for tried in [encoding] if marked or encoding == "iso2022_jp" else ["utf-8", encoding]:
        try:
            return data.decode(tried).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            place = f"byte 0x{data[min(error.start, len(data) - 1)]:02x} at {error.start:,} is not {encoding.upper()}"
    raise SourceError(f"{where}: {place}; save it as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8")


def _known(label: str) -> str:
    """Return Python's name of the encoding that browsers mean by a label; empty if they know none."""
    from webencodings import lookup

    encoding = lookup(label.strip())
    return "" if encoding is None or encoding.name in ("replacement", "x-user-defined") else str(encoding.codec_info.name)


def read_document(data: bytes, name: str = "", media_type: str = "", kind: str = "") -> Document:
    """Return what a document says, as its readers see it.

    Visible text is kept as it is; text that readers would not see is removed and counted.

    Args:
        data: all bytes of the document.
        name: of the file, or the URL.
        media_type: from a server, with its charset if there is one; it decides the kind, or else the suffix of the name.
        kind: "text", "markdown", "html", "latex", "pdf" or "docx", which overrules both.

    Raises:
        SourceError: it cannot be read, exceeds a limit, or holds no text.
        DependencyError: a package for this kind is not installed.

    Examples:
        >>> read_document(b"<p>Krill live in <b>cold</b> water<sup>[1]</sup>.", "krill.html").text
        'Krill live in cold water.'
    """
    where = printable(name)[-200:] or "this source"
    for start, what in _OTHERS.items():
        if data.startswith(start):
            raise SourceError(f"{where}: {what}")
    kind = kind or _kind_of(data, name, media_type, where)
    if missing := [package for package in _NEEDED if kind != "text" and find_spec(package) is None]:
        raise DependencyError(f"reading {kind} needs {', '.join(missing)}: {install('evidence')}")
    if not data or data.isspace():
        raise SourceError(f"{where}: it is empty; there is nothing to read")
    if len(data) > LARGEST_FILE:
        raise SourceError(f"{where}: larger than {LARGEST_FILE >> 20} MiB; split it up")
    if kind not in ("pdf", "docx"):
        data = decode_text(data, _declared(kind, data, media_type), where).encode("utf-8", "replace")
    in_child = len(data) > READ_HERE[kind]
    read: Document = read_in_child(kind, data, where, Document) if in_child else read_as(kind, data, where)
    if not read.text:
        raise SourceError(f"{where}: it has no visible text")
    if len(read.text) > LARGEST_TEXT:
        raise SourceError(f"{where}: it holds more than {LARGEST_TEXT:,} characters of text; split it up")
    return read


def bibliography_of(text: str, where: str = "the bibliography") -> list[Reference]:
    """Return the entries of a bibliography; a large one is read in a child process with limits.

    Raises:
        InputError: it cannot be read.

    Examples:
        >>> bibliography_of('[{"id": "frisch1965", "title": "The dance", "DOI": "10.1000/dance"}]')[0].url
        'https://doi.org/10.1000/dance'
    """
    if len(text) < READ_HERE["bibliography"]:
        return read_bibliography(text, where)
    return read_in_child("bibliography", text.encode("utf-8", "replace"), where, list[Reference])


def _kind_of(data: bytes, name: str, media_type: str, where: str) -> str:
    if data.startswith(b"%PDF-"):
        return "pdf"
    stated = media_type.partition(";")[0].strip().lower()
    if stated in MEDIA_TYPES:
        return MEDIA_TYPES[stated]
    suffix = PurePath(name.partition("?")[0].partition("#")[0] if "://" in name else name).suffix.lower()
    if stated in ("", "application/octet-stream") and suffix in SUFFIXES:
        return SUFFIXES[suffix]
    description = f"media type {printable(stated)[:80]!r}" if stated else f"name ending {printable(suffix)[:20]!r}"
    raise SourceError(f"{where}: {description} is not read; convert it to one of {', '.join(SUFFIXES)}")


def _declared(kind: str, data: bytes, media_type: str) -> str:
    """Return the encoding that the server, or else the page itself, declares; empty if none does."""
    if charset := re.search(r";\s*charset\s*=\s*[\"']?([^\s\"';]{1,40})", media_type, re.IGNORECASE):
        return charset[1]
    if kind != "html":
        return ""
    from w3lib.encoding import html_body_declared_encoding

    return html_body_declared_encoding(data[:4096]) or ""


def read_file(path: Path, follow_link: bool) -> bytes:
    """Return the bytes of a file.

    Raises:
        SourceError: it is no regular file, cannot be opened or is too large; or it is a link, unless ``follow_link``.

    Examples:
        >>> _ = Path("krill.txt").write_text("Krill.")
        >>> read_file(Path("krill.txt"), follow_link=False)
        b'Krill.'
    """
    shown = printable(str(path))
    try:
        with open_regular(path, 0 if follow_link else os.O_NOFOLLOW) as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise SourceError(f"{shown}: no such file; check the path, or list a URL in a CSV file") from None
    except IsADirectoryError:
        raise SourceError(f"{shown}: this is a folder; pass the path of a file in it") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{shown}: cannot be opened ({error}); make it a file that this user may read") from None
    if len(data) > LARGEST_FILE:
        raise SourceError(f"{shown}: larger than {LARGEST_FILE >> 20} MiB; split it up")
    return data


# Reading in this process, or in a child process with limits of time, memory and output.
#
# The child, ``python -m nlp_retrieval.documents.reading``, does not get this process's environment, and limits itself before it
# looks at the bytes. Its input is a line of JSON and the document's bytes, its output one JSON value.

Answer = TypeVar("Answer")

CHILD_SECONDS = 60  # that a child process may read one document
_MEMORY = 2 * 2**30
_LARGEST_REPLY = 100 * 2**20
_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")  # Python needs them; others may hold keys, which no file may get


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
                [sys.executable, "-P", "-m", "nlp_retrieval.documents.reading"],
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
