"""Many claims: reading them from a file, and verifying each once.

A file is read to its end, and anything wrong in it reported with its line, before the first claim is verified.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast

from nlp_retrieval.core import refuse_lone_surrogates
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import JsonObject, quoted, read_json_lines, read_lines, read_rows
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier

MOST_CLAIMS, LONGEST_CLAIM = 100_000, 10_000
_LONGEST_INPUT = 2**30
"""Longest standard input, in bytes."""

_BATCH = 16
"""Number of claims that the verifier judges together."""

_TABLES, _JSON_LINES, _TEXTS = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson"), (".txt", ".text", ".md", "")
_DASHED = re.compile(r"^\s{0,40}[-*+\u2022\u2013]\s+")
_NUMBERED = re.compile(r"^\s{0,40}([0-9]{1,6})[.)]\s+")
_ITEM = re.compile(rf"{_DASHED.pattern}|{_NUMBERED.pattern}")

ClaimType = Literal["C1", "C2", "C3"]


@dataclass(frozen=True)
class FiledClaim:
    """A claim of a file, its id (by default its number), its type, and the other columns of the file."""

    id: str
    claim: str
    claim_type: ClaimType
    fields: dict[str, Any]


def is_claim_file(text: str) -> bool:
    """Return whether a text is no claim, but the path of a file of claims; a SourceError for one that does not exist."""
    if text == "-" or os.path.exists(text):  # noqa: PTH110 -- unlike Path's, it takes a long claim
        return True
    name = text.strip().lower().removesuffix(".gz")
    if name.endswith((*_TABLES, *_JSON_LINES, ".txt")) and not any(char.isspace() for char in name):
        raise SourceError(
            f"{text}: no such file; check the path. A claim is a statement in quotes; a file of claims has one a line, or a "
            "column called claim"
        )
    return False


def read_claims(path: str, claim_type: ClaimType = "C2") -> list[FiledClaim]:
    """Return the claims of a CSV, TSV, JSON lines or text file, or of standard input (``-``); a SourceError names the line."""
    if path != "-" and os.path.isfile(path):  # noqa: PTH113 -- unlike Path's, it does not raise
        return _read(path, claim_type)
    with TemporaryDirectory() as folder:  # a pipe is read once
        copy = Path(folder) / "claims"
        try:
            _copy(path, copy)
            return _read(str(copy), claim_type)
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from None
        except SourceError as error:
            raise SourceError(str(error).replace(str(copy), "standard input" if path == "-" else path)) from None


def _copy(path: str, copy: Path) -> None:
    with sys.stdin.buffer if path == "-" else Path(path).open("rb") as source, copy.open("wb") as file:
        while block := source.read(2**20):
            if file.tell() + len(block) > _LONGEST_INPUT:
                raise SourceError(f"{copy}: longer than {_LONGEST_INPUT >> 20:,} MiB; split it up")
            file.write(block)


def _read(path: str, claim_type: ClaimType) -> list[FiledClaim]:
    filled = (each for each in _rows(path) if any(str(value or "").strip() for value in each[1].values()))
    claims = [_claim_of(number, where, row, claim_type) for number, (where, row) in enumerate(filled, start=1)]
    if not claims:
        raise SourceError(f"{path}: there is no claim in it")
    return claims


def _rows(path: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield where each row of a file is, and its values."""
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    if suffix not in (*_TABLES, *_JSON_LINES, *_TEXTS):
        raise SourceError(
            f"{path}: claims are read from CSV (.csv, .tsv), JSON lines (.jsonl) and text with a claim a line (.txt), not from "
            f"{suffix}; save it as one of these"
        )
    first = "" if suffix else next((line.strip().lower() for _, line in read_lines(path) if line.strip()), "")
    names_columns = any("claim" in [cell.strip().strip('"') for cell in first.split(mark)] for mark in ",;\t|")
    if suffix in _TABLES or names_columns:
        tab = suffix in (".tsv", ".tab")
        return read_rows(path, "\t" if tab else None, None if tab else '"')
    if suffix in _JSON_LINES or first.startswith("{"):
        return read_json_lines(path)
    lines = [(number, line) for number, line in read_lines(path) if line.strip()]
    numbers = [int(found[1]) for _, line in lines if (found := _NUMBERED.match(line))]
    # "3. Mai war nass." begins with no number of a list
    mark = _ITEM if len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1)) else _DASHED
    return ((f"{path}, line {number}", {"claim": mark.sub("", line, count=1)}) for number, line in lines)


def _claim_of(number: int, location: str, row: JsonObject, claim_type: ClaimType) -> FiledClaim:
    if number > MOST_CLAIMS:
        raise SourceError(f"{location}: more than {MOST_CLAIMS:,} claims; split the file up, or take a sample of them")
    column = next((name for name in row if name.lower() == "claim"), None)
    if column is None:
        raise SourceError(f'{location}: no column "claim" (found: {quoted(row)}); give the column of the claims this name')
    claim, name, kind = row.pop(column), row.pop("id", None), row.pop("type", None)
    if not isinstance(claim, str) or not claim.strip():
        raise SourceError(f'{location}: "{column}" has no text; write one statement, or remove the row')
    if len(claim) > LONGEST_CLAIM:
        raise SourceError(f"{location}: a claim of {len(claim):,} characters; at most {LONGEST_CLAIM:,} are read")
    refuse_lone_surrogates(claim, location, SourceError)
    if kind not in ("C1", "C2", "C3", "", None):
        raise SourceError(
            f'{location}: "type" is {kind!r:.40}; a type is C1, C2 or C3, or empty; rename a column of other types'
        )
    return FiledClaim(str(number if name in ("", None) else name), claim.strip(), cast(ClaimType, kind or claim_type), row)


Verdicts = list[tuple[FiledClaim, dict[str, Any]]]


def verdicts_of(claims: Sequence[FiledClaim], verifier: ClaimVerifier) -> Iterator[Verdicts]:
    """Verify claims; yield some of them at a time, in order, each with its verdict as plain values.

    A claim that comes more than once is verified once.
    """
    known: dict[tuple[str, ClaimType], dict[str, Any]] = {}
    for first in range(0, len(claims), _BATCH):
        batch = claims[first : first + _BATCH]
        new: dict[ClaimType, dict[str, None]] = {}
        for each in batch:
            if (each.claim, each.claim_type) not in known:
                new.setdefault(each.claim_type, {})[each.claim] = None
        for claim_type, texts in new.items():
            for verdict in verifier.verify_all(list(texts), claim_type):
                known[verdict.claim, claim_type] = verdict.as_dict()
        yield [(each, known[each.claim, each.claim_type]) for each in batch]
