"""The baseline of a gate: what a searcher found when it was last accepted, as text that shows in a diff.

One line of JSON for the head, one per query, and one per item that they found, with the digest of its text. The head has a
checksum of the other lines, so that an edit by hand or a merge of two branches is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.errors import SourceError

FORMAT = 2
RENEW = "renew the baseline with `nlp-retrieval gate GATE.yaml --update --reason TEXT`"
"""What to do where a baseline cannot be used."""
_MOST_BYTES = 100_000_000


def digest(text: str) -> str:
    """Return 12 hexadecimal digits that tell a text from others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True)
class BaselineQuery:
    """What was found for a query: digests of its text and gold (empty without), ids of its hits, its measures."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    query_id: str
    text: str
    gold: str
    hits: tuple[str, ...]
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BaselineItem:
    """An item that was found: the digest of its text, and its title if gold names titles."""

    digest: str
    title: str = ""


@dataclass(frozen=True)
class Baseline:
    """Results of a searcher that were accepted.

    Args:
        reason: why they were, in the words of a person.
        k: number of hits that are kept of each query.
        queries: by id, in order.
        items: those in the hits, by id.
        identity: what they depend on: corpus, configuration, models, versions.
        costs: bytes of the index, tokens a query.
    """

    reason: str
    k: int
    queries: dict[str, BaselineQuery]
    items: dict[str, BaselineItem]
    identity: dict[str, Any]
    costs: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Head:
    __pydantic_config__ = ConfigDict(extra="forbid")

    format: int
    reason: str
    k: int
    identity: dict[str, Any]
    costs: dict[str, float]
    sha256: str


_HEAD, _QUERY, _ITEM = TypeAdapter(_Head), TypeAdapter(BaselineQuery), TypeAdapter(tuple[str, str, str])


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline; a reader sees the old file or the complete new one.

    Raises:
        OutputError: it cannot be written.
    """
    lines = []
    for query in baseline.queries.values():
        lines.append(_line(asdict(query) | {"measures": {name: round(value, 6) for name, value in query.measures.items()}}))
    lines += [_line([item_id, item.digest, item.title]) for item_id, item in sorted(baseline.items.items())]
    head = _Head(FORMAT, baseline.reason, baseline.k, baseline.identity, baseline.costs, _checksum(lines))
    write_output(path, "\n".join([_line(asdict(head)), *lines, ""]).encode())


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        SourceError: it is missing, was edited or merged, is of another format, or is damaged.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        lines = content.decode().rstrip("\n").split("\n")
    except FileNotFoundError:
        raise SourceError(f"there is no baseline {path}; make it with `nlp-retrieval gate GATE.yaml --update`") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a folder; name a file in it as 'baseline'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read ({error}); {RENEW}") from None
    if len(content) > _MOST_BYTES:
        raise SourceError(f"{path} has more than {_MOST_BYTES:,} bytes, which no baseline needs; {RENEW}")
    for number, line in enumerate(lines, start=1):
        if line.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
            raise SourceError(
                f"{path}:{number} has the mark of a merge conflict ({line[:7]}): two branches changed it, and lines of both "
                f"make no baseline; take one side whole, or {RENEW}"
            )
    first = _parsed(lines[0])
    if not isinstance(first, dict) or "format" not in first:
        raise SourceError(f"{path} is no baseline, or its first line was lost: that must be JSON with 'format'; {RENEW}")
    if first["format"] != FORMAT:
        raise SourceError(f"{path} was made by another version of nlp_retrieval; {RENEW}")
    if first.get("sha256") != _checksum(lines[1:]):
        raise SourceError(f"{path} was edited since it was written: its lines do not have its checksum; {RENEW}")
    try:
        head, rest = _HEAD.validate_python(first), [_parsed(line) for line in lines[1:]]
        queries = [_QUERY.validate_python(each) for each in rest if isinstance(each, dict)]
        items = [_ITEM.validate_python(each) for each in rest if not isinstance(each, dict)]
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise SourceError(f"{path} is damaged ({'.'.join(map(str, fault['loc']))}: {fault['msg']}); {RENEW}") from None
    known = {item_id: BaselineItem(text, title) for item_id, text, title in items}
    wrong = first_repeated([each.query_id for each in queries])
    wrong = wrong or next((each.query_id for each in queries if not known.keys() >= set(each.hits)), None)
    if wrong is not None or not queries or head.k < 1:
        raise SourceError(f"{path} is damaged (query {wrong!r}); {RENEW}")
    return Baseline(head.reason, head.k, {each.query_id: each for each in queries}, known, head.identity, head.costs)


def _line(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _parsed(line: str) -> Any:
    try:
        return parse_json(line, max_bytes=_MOST_BYTES)
    except ValueError:
        return None


def _checksum(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
