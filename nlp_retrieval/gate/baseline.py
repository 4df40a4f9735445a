"""The baseline of a gate: what a searcher found when it was last accepted, as text that shows in a diff.

One line of JSON for the head, one per query, and one per item that they found, with the digest of its text. The head has a
checksum of the other lines, so that an edit by hand or a merge of two branches is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.errors import SourceError

FORMAT = 1
_MOST_BYTES = 100_000_000
RENEW = "renew the baseline with `nlp-retrieval gate GATE.yaml --update --reason TEXT`"
"""What to do where a baseline cannot be used."""


def digest(text: str) -> str:
    """Return 12 hexadecimal digits that tell a text from others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True)
class BaselineQuery:
    """What was found for a query.

    Args:
        query_id: of the query.
        text: digest of its text.
        gold: digest of its gold; empty if it has none.
        hits: ids of the first k items, best first.
        measures: value of each measure; empty without gold.
    """

    query_id: str
    text: str
    gold: str
    hits: tuple[str, ...]
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BaselineItem:
    """An item that was found.

    Args:
        digest: of its text.
        title: of it, if gold names titles; else empty.
    """

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


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    reason: str
    k: int = Field(ge=1)
    identity: dict[str, Any]
    costs: dict[str, float]
    sha256: str


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    query: str
    text: str
    gold: str
    hits: list[str]
    measures: dict[str, float]


class _Item(RootModel[tuple[str, str, str]]):
    """Id, digest and title of an item."""


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline; a reader sees the old file or the complete new one.

    Raises:
        OutputError: it cannot be written.
    """
    lines = [
        _line(
            {
                "query": query.query_id,
                "text": query.text,
                "gold": query.gold,
                "hits": list(query.hits),
                "measures": {name: round(value, 6) for name, value in query.measures.items()},
            }
        )
        for query in baseline.queries.values()
    ]
    lines += [_line([item_id, item.digest, item.title]) for item_id, item in sorted(baseline.items.items())]
    head = {
        "format": FORMAT,
        "reason": baseline.reason,
        "k": baseline.k,
        "identity": baseline.identity,
        "costs": baseline.costs,
        "sha256": _checksum(lines),
    }
    write_output(path, "\n".join([_line(head), *lines, ""]).encode())


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        SourceError: it is missing, was edited or merged, is of another format, or is damaged.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        text = content.decode()
    except FileNotFoundError:
        raise SourceError(f"there is no baseline {path}; make it with `nlp-retrieval gate GATE.yaml --update`") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a folder; name a file in it as 'baseline'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read ({error}); {RENEW}") from None
    if len(content) > _MOST_BYTES:
        raise SourceError(f"{path} has more than {_MOST_BYTES:,} bytes, which no baseline needs; {RENEW}")
    lines = text.rstrip("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        if line.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
            raise SourceError(
                f"{path}:{number} has the mark of a merge conflict ({line[:7]}): two branches changed it, and lines of both "
                f"make no baseline; take one side whole, or {RENEW}"
            )
    if not lines:
        raise SourceError(f"{path} is empty; {RENEW}")
    try:
        first = parse_json(lines[0], max_bytes=_MOST_BYTES)
    except ValueError:
        first = None
    if not isinstance(first, dict) or "format" not in first:
        raise SourceError(f"{path} is no baseline, or its first line was lost: that must be JSON with 'format'; {RENEW}")
    if first["format"] != FORMAT:
        raise SourceError(f"{path} has format {first['format']!r}, and this version reads {FORMAT}; {RENEW}")
    head = _checked(_Head, first, path, 1)
    if head.sha256 != _checksum(lines[1:]):
        raise SourceError(f"{path} was edited since it was written: its lines do not have its checksum; {RENEW}")
    rest = [(number, _parsed(line, path, number)) for number, line in enumerate(lines[1:], start=2)]
    queries = [_checked(_Query, content, path, number) for number, content in rest if isinstance(content, dict)]
    items = [_checked(_Item, content, path, number).root for number, content in rest if not isinstance(content, dict)]
    _check_whole(path, queries, {item_id for item_id, *_ in items})
    return Baseline(
        head.reason,
        head.k,
        {each.query: BaselineQuery(each.query, each.text, each.gold, tuple(each.hits), each.measures) for each in queries},
        {item_id: BaselineItem(text, title) for item_id, text, title in items},
        head.identity,
        head.costs,
    )


def _check_whole(path: Path, queries: Sequence[_Query], items: set[str]) -> None:
    """Raise an error if a query is there twice, there is none, or a hit has no line of its own."""
    ids = [each.query for each in queries]
    wrong = first_repeated(ids) or next((each.query for each in queries if not items.issuperset(each.hits)), None)
    if wrong is not None or not queries:
        raise SourceError(f"{path} is damaged (query {wrong!r}); {RENEW}")


def _line(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _checksum(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _parsed(line: str, path: Path, number: int) -> Any:
    try:
        return parse_json(line, max_bytes=_MOST_BYTES)
    except ValueError as error:
        raise SourceError(f"{path}:{number} is not JSON ({error}); {RENEW}") from None


def _checked(model: Any, content: object, path: Path, number: int) -> Any:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SourceError(f"{path}:{number} is damaged ({place}: {first['msg']}); {RENEW}") from None
