"""The baseline of a gate: what a searcher found when it was last accepted, as text that shows in a diff.

One line of JSON for the head, one per query, and one per item that they found, with the digest of its text. The head has a
checksum of the other lines, so that an edit by hand or a merge of two branches is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.opening import parse_json
from nlp_retrieval.errors import SourceError

FORMAT = 4
RENEW = "renew the baseline with `nlp-retrieval gate GATE.yaml --update --reason TEXT`"
"""What to do where a baseline cannot be used."""


def digest(text: str) -> str:
    """Return 12 hexadecimal digits that tell a text from others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True)
class BaselineQuery:
    """What was found for a query: digests of its text and gold (empty without), and ids of its hits."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    query_id: str
    text: str
    gold: str
    hits: tuple[str, ...]


@dataclass(frozen=True)
class BaselineItem:
    """An item that was found: the digest of its text, and its title if gold names titles."""

    digest: str
    title: str = ""


@dataclass(frozen=True)
class Baseline:
    """Results of a searcher that were accepted: k hits a query, the items in them, and what they depend on."""

    reason: str
    k: int
    queries: dict[str, BaselineQuery]
    items: dict[str, BaselineItem]
    identity: dict[str, Any]


@dataclass(frozen=True)
class _Head:
    __pydantic_config__ = ConfigDict(extra="forbid")

    format: int
    reason: str
    k: Annotated[int, Field(ge=1)]
    identity: dict[str, Any]
    sha256: str


_HEAD, _QUERY, _ITEM = TypeAdapter(_Head), TypeAdapter(BaselineQuery), TypeAdapter(tuple[str, str, str])


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline; a reader sees the old file or the complete new one."""
    lines = [_line(asdict(query)) for query in baseline.queries.values()]
    lines += [_line([item_id, item.digest, item.title]) for item_id, item in sorted(baseline.items.items())]
    head = _Head(FORMAT, baseline.reason, baseline.k, baseline.identity, _checksum(lines))
    write_output(path, "\n".join([_line(asdict(head)), *lines, ""]).encode())


def read_baseline(path: Path) -> Baseline:
    """Read a baseline; a SourceError says that it is missing, edited, merged, of another format or damaged."""
    try:
        lines = path.read_text("utf-8").rstrip("\n").split("\n")
    except FileNotFoundError:
        raise SourceError(f"there is no baseline {path}; make it with `nlp-retrieval gate GATE.yaml --update`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read ({error}); {RENEW}") from None
    for number, line in enumerate(lines, start=1):
        if line.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
            raise SourceError(
                f"{path}:{number} has the mark of a merge conflict ({line[:7]}): two branches changed it, and lines of both "
                f"make no baseline; take one side whole, or {RENEW}"
            )
    try:
        first, *rest = map(parse_json, lines)
    except ValueError:
        first, rest = None, []
    if not isinstance(first, dict) or "format" not in first:
        raise SourceError(f"{path} is no baseline, or a line of it was lost; {RENEW}")
    if first["format"] != FORMAT:
        raise SourceError(f"{path} was made by another version of nlp_retrieval; {RENEW}")
    if first.get("sha256") != _checksum(lines[1:]):
        raise SourceError(f"{path} was edited since it was written: its lines do not have its checksum; {RENEW}")
    try:
        head = _HEAD.validate_python(first)
        queries = [_QUERY.validate_python(each) for each in rest if isinstance(each, dict)]
        items = [_ITEM.validate_python(each) for each in rest if not isinstance(each, dict)]
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise SourceError(f"{path} is damaged ({'.'.join(map(str, fault['loc']))}: {fault['msg']}); {RENEW}") from None
    known = {item_id: BaselineItem(text, title) for item_id, text, title in items}
    if not queries or any(not known.keys() >= set(each.hits) for each in queries):
        raise SourceError(f"{path} is damaged: it lacks queries or items; {RENEW}")
    return Baseline(head.reason, head.k, {each.query_id: each for each in queries}, known, head.identity)


def _line(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _checksum(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
