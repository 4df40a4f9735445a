"""Many claims: reading them from a file, and verifying each once.

A file is read to its end, and anything wrong in it reported with its line, before the first claim is verified.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from nlp_retrieval.core import refuse_lone_surrogates
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import JsonObject, quoted, read_json_lines, read_lines, read_rows
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier

MOST_CLAIMS, LONGEST_CLAIM = 100_000, 10_000

_BATCH = 16
"""Number of claims that the verifier judges together."""

_TABLES, _JSON_LINES, _TEXTS = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson"), (".txt", ".text", ".md", "")

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
    if os.path.exists(text):  # noqa: PTH110 -- unlike Path's, it takes a long claim
        return True
    name = text.strip().lower().removesuffix(".gz")
    if name.endswith((*_TABLES, *_JSON_LINES, ".txt")) and not any(char.isspace() for char in name):
        raise SourceError(
            f"{text}: no such file; check the path. A claim is a statement in quotes; a file of claims has one a line, or a "
            "column called claim"
        )
    return False


def read_claims(path: str, claim_type: ClaimType = "C2") -> list[FiledClaim]:
    """Return the claims of a CSV, TSV, JSON lines or text file; a SourceError names the line."""
    filled = (each for each in _rows(path) if any(str(value or "").strip() for value in each[1].values()))
    claims = [_claim_of(number, where, row, claim_type) for number, (where, row) in enumerate(filled, start=1)]
    if not claims:
        raise SourceError(f"{path}: there is no claim in it")
    return claims


def _rows(path: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield where each row of a file is, and its values."""
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    if suffix in _TABLES:
        return read_rows(path, None if suffix == ".csv" else "\t", '"' if suffix == ".csv" else None)
    if suffix in _JSON_LINES:
        return read_json_lines(path)
    if suffix not in _TEXTS:
        raise SourceError(
            f"{path}: claims are read from CSV (.csv, .tsv), JSON lines (.jsonl) and text with a claim a line (.txt), not from "
            f"{suffix}; save it as one of these"
        )
    return ((f"{path}, line {number}", {"claim": line}) for number, line in read_lines(path) if line.strip())


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
