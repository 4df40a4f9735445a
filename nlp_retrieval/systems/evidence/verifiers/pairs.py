"""Judged pairs of claim and passage, from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import read_json_lines
from nlp_retrieval.systems.evidence.verifiers.base import Span

Label = Literal["support", "contradict", "neutral", "not_support"]


@dataclass(frozen=True)
class JudgedPair:
    """A claim and a passage, judged by a person; pairs of one family are on one side of a split."""

    claim: str
    passage: str
    label: Label
    family: str = ""
    rationale: tuple[Span, ...] = ()
    collection: str = ""


def read_pairs(path: str | Path) -> list[JudgedPair]:
    """Read judged pairs from a file of JSON lines (``.gz`` too), or from the ``train.jsonl`` in each folder of a folder."""
    source = Path(path)
    if source.is_dir():
        files = sorted([*source.glob("train.jsonl*"), *source.glob("*/train.jsonl*")])
        if not files:
            raise SourceError(f"{source} has no train.jsonl or train.jsonl.gz, nor has a folder in it; name a file")
    else:
        files = [source]
    return [_pair(row, where, file.parent.name) for file in files for where, row in read_json_lines(file)]


def _pair(row: dict[str, Any], where: str, collection: str) -> JudgedPair:
    for key in ("claim", "passage", "label"):
        if not isinstance(row.get(key), str):
            raise SourceError(f'{where}: no text "{key}" (found: {", ".join(map(repr, row))[:200]})')
    if row["label"] not in get_args(Label):
        raise SourceError(f"{where}: label {row['label']!r}; it must be one of {', '.join(get_args(Label))}")
    return JudgedPair(
        row["claim"],
        row["passage"],
        row["label"],
        f"{collection}/{row.get('family') or row['passage']}",
        _rationale(row, where),
        collection,
    )


def _rationale(row: dict[str, Any], where: str) -> tuple[Span, ...]:
    sentences, numbers = row.get("sentences") or [], row.get("rationale") or []
    try:
        spans = [(int(begin), int(end)) for begin, end in sentences]
        chosen = tuple(spans[number] for number in numbers if number >= 0)
    except (TypeError, ValueError, IndexError) as error:
        raise SourceError(f"{where}: sentences and rationale do not fit ({error})") from None
    if any(not 0 <= begin <= end <= len(row["passage"]) for begin, end in chosen):
        raise SourceError(f"{where}: a sentence's span is outside the passage")
    return chosen
