"""``python -m bench real-files FOLDER``: public topic, judgement and run files, read beside a plain reader of each form.

Every file below FOLDER that is one of these is read by the loaders without a setting, and by the reader here, which shares no
code with them. A file that is refused is read again with the cure that the message names. The result is written to
``bench/REAL_FILES.md``.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import subprocess
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nlp_retrieval import TopicsLoader
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.loaders.judgements import read_judgements

Kind = Literal["topics", "qrels", "runs"]
KINDS: tuple[Kind, ...] = ("topics", "qrels", "runs")
IDS = ("number", "num", "id", "_id", "qid", "query_id", "query-id", "topic_id", "question_id", "identifier", "docno")
TEXTS = {"xml": ("title", "query", "question", "text"), "table": ("text", "query", "question", "title", "query_txt")}
PAGE = Path(__file__).parent / "REAL_FILES.md"


@dataclass(frozen=True)
class Outcome:
    """How one file was read.

    Args:
        file: its path below the folder.
        kind: what it is.
        result: ``equal`` to the plain reader, ``cured`` (refused, and read with the cure), ``refused``, or ``differs``.
        message: why it was refused, or how it differs.
        notes: how many warnings the loader gave.
    """

    file: str
    kind: Kind
    result: Literal["equal", "cured", "refused", "differs"]
    message: str = ""
    notes: int = 0


def measure(folder: Path) -> list[Outcome]:
    """Read every file of these kinds below a folder."""
    outcomes = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        try:
            text = unpacked(path)
        except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError):
            continue
        kind = kind_of(path.relative_to(folder), text)
        if kind is not None:
            outcomes.append(_outcome(path, str(path.relative_to(folder)), kind, text))
    return outcomes


def unpacked(path: Path) -> str:
    """Return the text of a file, whatever it is compressed with."""
    raw = path.read_bytes()
    for magic, unpack in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ", lzma.decompress)):
        if raw.startswith(magic):
            raw = unpack(raw)
    return raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def kind_of(path: Path, text: str) -> Kind | None:
    """Return what a file is, by the names of the file and its folders, or else by its first line; None for anything else."""
    if path.suffix.lower() in (".md", ".py", ".pdf", ".html"):
        return None
    for part in reversed(path.parts):
        for kind in KINDS:
            if part.lower().startswith((kind.rstrip("s") + "s", kind.rstrip("s") + ".", kind + ".")):
                return kind
    first = next((line for line in text.splitlines() if line.strip()), "").split()
    if len(first) == 6 and first[1].upper() == "Q0":
        return "runs"
    return "qrels" if len(first) == 4 and re.fullmatch(r"-?\d+", first[3]) else None


def _outcome(path: Path, name: str, kind: Kind, text: str) -> Outcome:
    expected = REFERENCES[kind](text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read = READERS[kind](path, {})
        except RetrievalError as error:
            message = str(error).replace(str(path), name)
            cured = _cured(path, kind, str(error), expected)
            return Outcome(name, kind, "cured" if cured else "refused", message)
    if read == expected:
        return Outcome(name, kind, "equal", notes=len(caught))
    return Outcome(name, kind, "differs", _difference(read, expected))


def _cured(path: Path, kind: Kind, message: str, expected: Any) -> bool:
    """Return whether the file is read with what the message says to do; several cures may be needed one after the other."""
    settings: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(4):
            if command := re.search(r"awk '.*' OLD > NEW", message):
                cured = Path(folder) / f"{attempt}{path.suffix}"
                done = command.group().replace("OLD", f'"{path}"').replace("NEW", f'"{cured}"')
                path = cured if subprocess.run(["sh", "-c", done], check=False).returncode == 0 else path
            elif re.search(r"bunzip2|unxz|iconv -f UTF-16", message):
                cured = Path(folder) / path.name.removesuffix(".bz2").removesuffix(".xz")
                cured.write_text(unpacked(path), "utf-8")
                path = cured
            elif named := re.search(r'pass (\w+)="([^"]+)"', message):
                settings[named[1]] = named[2]
            elif re.search(r"pass (\w+)= and the name", message) and (found := re.search(r"\(found: (.*?)\)", message)):
                fields = re.findall(r'"([^"]+)"', found[1])
                settings["text_field" if "text_field" in message else "id_field"] = fields[-1]
            else:
                return False
            try:
                read = READERS[kind](path, settings)
            except RetrievalError as error:
                message = str(error)
                continue
            # with another field than the usual one, the ids say whether all are there
            return bool(list(read) == list(expected) if settings else read == expected)
    return False


def _difference(read: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    for name in expected:
        if name not in read:
            return f"{name!r} is missing ({len(read):,} of {len(expected):,})"
        if read[name] != expected[name]:
            return f"{name!r}: {str(read[name])[:80]!r}, where {str(expected[name])[:80]!r} is expected"
    return f"{next(name for name in read if name not in expected)!r} is not expected"


def _topics(path: Path, settings: dict[str, Any]) -> dict[str, str]:
    return {query.query_id: query.text for _, query in TopicsLoader(path, "unused", **settings).read()}


READERS: dict[Kind, Callable[[Path, dict[str, Any]], Any]] = {
    "topics": _topics,
    "qrels": lambda path, _: read_judgements(path),
    "runs": lambda path, _: read_run(path),
}


def plain_topics(text: str) -> dict[str, str]:
    """Return the text of each topic by its number: JSON, lines of tab-separated cells, XML, or TREC's tags."""
    begin = text.lstrip()[:1]
    if begin in "[{":
        rows = json.loads(text) if begin == "[" else [json.loads(line) for line in text.splitlines() if line.strip()]
        return dict(_named(rows, TEXTS["table"]))
    if begin != "<":
        lines = [line.rstrip("\t").split("\t") for line in re.split(r"\r?\n", text) if line.strip()]
        if {cell.strip().lower() for cell in lines[0]} & {*IDS, *TEXTS["table"]}:
            names = [cell.strip() for cell in lines[0]]
            return dict(_named([dict(zip(names, line, strict=False)) for line in lines[1:]], TEXTS["table"]))
        return {line[0]: line[1] if len(line) > 1 else "" for line in lines}
    try:
        root = ET.fromstring(text)
    except ET.ParseError:
        return dict(_tagged(text))
    topics = [element for element in root.iter() if element.tag.lower() in ("topic", "top")]
    rows = [
        dict(topic.attrib)
        | {child.tag.lower(): " ".join("".join(child.itertext()).split()) for child in topic}
        | ({"text": topic.text.strip()} if topic.text and topic.text.strip() else {})
        for topic in topics
    ]
    return dict(_named(rows, TEXTS["xml"]))


def _named(rows: Iterable[Mapping[str, Any]], texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for row in rows:
        number = str(next((row[name] for name in IDS if name in row), ""))
        yield re.sub(r"^\s*Number:\s*", "", number), str(next((row[name] for name in texts if name in row), ""))


def _tagged(text: str) -> Iterator[tuple[str, str]]:
    """Topics of TREC's classic form: a field ends with its closing tag, or where a line begins with another tag."""
    for begun in re.split(r"<(?:top|doc)\b[^>]*>", text, flags=re.IGNORECASE)[1:]:
        topic = re.split(r"</(?:top|doc)>", begun, flags=re.IGNORECASE)[0]
        number = re.search(r"<num>\s*(?:Number:)?\s*([^\s<]+)|<docno>\s*([^\s<]+)\s*</docno>", topic, re.IGNORECASE)
        title = re.search(r"<(title|query)>(?:\s*Topic:)?(.*?)(?=</\1>|\n\s*<[a-z]|\Z)", topic, re.IGNORECASE | re.DOTALL)
        own = re.sub(r"<(docno|num|docid|url)>.*?(</\1>|$)", "", topic, flags=re.IGNORECASE | re.DOTALL)
        if number:
            written = title[2] if title else "" if "<" in own else own
            yield number[1] or number[2], " ".join(unescape(re.sub(r"</?[a-z]+/?>", "", written)).split())


def plain_qrels(text: str) -> dict[str, dict[str, int]]:
    """Return the grades by query and item: four columns, or three; of several grades the highest."""
    judged: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        columns = line.split()
        if not columns or not re.fullmatch(r"[+-]?\d+(\.0*)?", columns[-1]):
            continue
        query, item, grade = columns[0], columns[-2], int(float(columns[-1]))
        judged.setdefault(query, {})[item] = max(grade, judged.get(query, {}).get(item, grade))
    return judged


def plain_run(text: str) -> dict[str, list[tuple[str, float]]]:
    """Return the hits of each query in trec_eval's order: by score as a 32-bit float, then by id, both descending."""
    hits: dict[str, list[tuple[str, float]]] = {}
    for line in text.splitlines():
        columns = line.split()
        if len(columns) == 3:  # query, item and rank, as MS MARCO's runs have them
            hits.setdefault(columns[0], []).append((columns[1], float(f"{1 / float(columns[2]):.6g}")))
        elif columns:
            hits.setdefault(columns[0], []).append((columns[2], float(columns[4])))
    order: Callable[[tuple[str, float]], tuple[float, bytes]] = lambda hit: (float(np.float32(hit[1])), hit[0].encode())  # noqa: E731
    return {query: sorted(listed, key=order, reverse=True) for query, listed in hits.items()}


REFERENCES: dict[Kind, Callable[[str], Any]] = {"topics": plain_topics, "qrels": plain_qrels, "runs": plain_run}


def page_of(outcomes: list[Outcome]) -> str:
    """Return the page that says how the files were read."""
    lines = [
        "# Public topic, judgement and run files",
        "",
        "Written by `python -m bench real-files FOLDER`: every file is read without a setting and compared with a plain reader",
        "of its form, which shares no code with the loaders. What is refused is read again with the cure in its message.",
        "",
        f"Last run: {datetime.now(UTC):%Y-%m-%d}.",
        "",
        "| kind | files | equal | refused, read with the cure | refused | differ |",
        "|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        counts = Counter(outcome.result for outcome in outcomes if outcome.kind == kind)
        cells = (counts.total(), counts["equal"], counts["cured"], counts["refused"], counts["differs"])
        lines.append(f"| {kind} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    others = [outcome for outcome in outcomes if outcome.result != "equal"]
    if others:
        lines += ["", "## Files that are not equal", ""]
        lines += [f"- `{outcome.file}`, {outcome.result}: {outcome.message}" for outcome in others]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Measure a folder, print and write the page; 0 where no file differs and every refusal has a cure that works."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python -m bench real-files FOLDER   (a folder of topics, qrels and runs)")
        return 2
    outcomes = measure(Path(arguments[0]))
    page = page_of(outcomes)
    PAGE.write_text(page, "utf-8")
    print(page, end="")
    return int(not outcomes or any(outcome.result in ("refused", "differs") for outcome in outcomes))
