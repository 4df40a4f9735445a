"""Many claims: reading them from a file, verifying each once, and a table that grows by whole rows.

A file is read to its end, and anything wrong in it reported with its line, before the first claim is verified.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal, Self, cast

from nlp_retrieval.core import refuse_lone_surrogates, write_output
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError
from nlp_retrieval.loaders import JsonObject, likely, quoted, read_json_lines, read_lines, read_rows
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.text import spreadsheet_cell

MOST_CLAIMS = 100_000
"""Most claims of a file."""

LONGEST_CLAIM = 10_000
"""Longest claim, in characters."""

_LONGEST_INPUT = 2**30
"""Longest standard input, in bytes."""

_BATCH = 16
"""Number of claims that the verifier judges together."""

_TABLES = (".csv", ".tsv", ".tab")
_JSON_LINES = (".jsonl", ".ndjson")
_TEXTS = (".txt", ".text", ".md", "")
_OTHER_NAMES = ("claims", "claim_text", "statement", "sentence", "text")
_STANDARD_INPUT = "standard input"
_DASHED = re.compile(r"\s{0,40}[-*+\u2022\u2013]\s+")
_NUMBERED = re.compile(r"\s{0,40}([0-9]{1,6})[.)]\s+")
_ITEM = re.compile(rf"{_DASHED.pattern}|{_NUMBERED.pattern}")

COLUMNS = (
    "id",
    "claim",
    "type",
    "status",
    "rule",
    "supporting_quote",
    "supporting_url",
    "supporting_page",
    "contradicting_quote",
    "contradicting_url",
    "contradicting_page",
    "supporting_origins",
    "contradicting_origins",
    "supporting_passages",
    "contradicting_passages",
    "weak_passages",
    "neutral_passages",
)
"""Columns of the table, before those of the file of claims."""

ClaimType = Literal["C1", "C2", "C3"]


@dataclass(frozen=True)
class FiledClaim:
    """A claim of a file.

    Args:
        number: from 1, in the order of the file.
        id: from the file; by default the number.
        claim: the statement.
        claim_type: "C1", "C2" or "C3".
        fields: other columns of the file.
    """

    number: int
    id: str
    claim: str
    claim_type: ClaimType
    fields: dict[str, Any]


class ClaimFile:
    """Claims of a file, read and checked.

    Args:
        path: a CSV or TSV file with a column ``claim``, JSON lines with a key ``claim``, or text with a claim a line; ``-`` for
            standard input, whose first line says which of them it is. ``id`` and ``type`` are optional; other columns are kept.
        claim_type: of claims without a type.

    Attributes:
        claims: in the order of the file.
        column: of the file that holds them.
        fields: names of the other columns.

    Raises:
        SourceError: it cannot be read, has no claim or too many, or one of them is not a claim; the message names the line.
    """

    def __init__(self, path: str, claim_type: ClaimType = "C2") -> None:
        self.path = _STANDARD_INPUT if path == "-" else path
        self.column = "claim"
        self.claims: list[FiledClaim] = []
        if os.path.isfile(path):  # noqa: PTH113 -- unlike Path's, it does not raise
            self._read(path, claim_type)
        else:  # a pipe is read once
            with TemporaryDirectory() as folder:
                self._read(_copied(path, Path(folder)), claim_type)
        self.fields = list(dict.fromkeys(name for each in self.claims for name in each.fields))

    def __len__(self) -> int:
        """Return the number of claims."""
        return len(self.claims)

    def verdicts(self, verifier: ClaimVerifier, after: int = 0) -> Iterator[list[tuple[FiledClaim, dict[str, Any]]]]:
        """Verify the claims; yield some of them at a time, in order, each with its verdict as plain values.

        A claim that the file has more than once is verified once.

        Args:
            verifier: verifies them.
            after: number of claims at the beginning to leave out.
        """
        known: dict[tuple[str, ClaimType], dict[str, Any]] = {}
        for first in range(after, len(self.claims), _BATCH):
            batch = self.claims[first : first + _BATCH]
            new: dict[ClaimType, dict[str, None]] = {}
            for each in batch:
                if (each.claim, each.claim_type) not in known:
                    new.setdefault(each.claim_type, {})[each.claim] = None
            for claim_type, claims in new.items():
                for verdict in verifier.verify_all(list(claims), claim_type):
                    known[verdict.claim, claim_type] = verdict.as_dict()
            yield [(each, known[each.claim, each.claim_type]) for each in batch]

    def _read(self, path: str, claim_type: ClaimType) -> None:
        try:
            filled = (each for each in _rows(path) if any(str(value or "").strip() for value in each[1].values()))
            for number, (location, row) in enumerate(filled, start=1):
                if number == 1:
                    self.column = _claim_column(path, row)
                self.claims.append(_claim_of(number, location, row, self.column, claim_type))
        except SourceError as error:
            raise SourceError(str(error).replace(path, self.path)) from None
        if not self.claims:
            raise SourceError(f"{self.path}: there is no claim in it")


def _claim_of(number: int, location: str, row: JsonObject, column: str, claim_type: ClaimType) -> FiledClaim:
    if number > MOST_CLAIMS:
        raise SourceError(f"{location}: more than {MOST_CLAIMS:,} claims; split the file up, or take a sample of them")
    claim, name, kind = row.pop(column, None), row.pop("id", None), row.pop("type", None)
    if not isinstance(claim, str) or not claim.strip():
        raise SourceError(f'{location}: "{column}" has no text; write one statement, or remove the row')
    if len(claim) > LONGEST_CLAIM:
        raise SourceError(f"{location}: a claim of {len(claim):,} characters; at most {LONGEST_CLAIM:,} are read")
    refuse_lone_surrogates(claim, location, SourceError)
    if kind not in ("C1", "C2", "C3", "", None):
        raise SourceError(
            f'{location}: "type" is {kind!r:.40}; a type is C1, C2 or C3, or empty; rename a column of other types'
        )
    return FiledClaim(
        number, str(number if name in ("", None) else name), claim.strip(), cast(ClaimType, kind or claim_type), row
    )


def is_claim_file(text: str) -> bool:
    """Return whether an argument of the command line is no claim, but the path of a file of claims: one that exists, or ``-``.

    Raises:
        SourceError: it is the name of a file that does not exist.
    """
    if text == "-" or os.path.exists(text):  # noqa: PTH110 -- unlike Path's, it takes a long claim
        return True
    name = text.strip().lower().removesuffix(".gz")
    if name.endswith((*_TABLES, *_JSON_LINES, ".txt")) and not any(char.isspace() for char in name):
        raise SourceError(
            f"{text}: no such file; check the path. A claim is a statement in quotes; a file of claims has one a line, or a "
            "column called claim"
        )
    return False


def _copied(path: str, folder: Path) -> str:
    """Copy standard input, or what a pipe holds, into a file, and return its path."""
    copy = folder / "claims"
    try:
        with sys.stdin.buffer if path == "-" else Path(path).open("rb") as source, copy.open("wb") as file:
            while block := source.read(2**20):
                if file.tell() + len(block) > _LONGEST_INPUT:
                    raise SourceError(f"{copy}: longer than {_LONGEST_INPUT >> 20:,} MiB; split it up")
                file.write(block)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from None
    return str(copy)


def _rows(path: str) -> Iterator[tuple[str, JsonObject]]:
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    if suffix and suffix not in (*_TABLES, *_JSON_LINES, *_TEXTS):
        raise SourceError(
            f"{path}: claims are read from CSV (.csv, .tsv), JSON lines (.jsonl) and text with a claim a line (.txt), not from "
            f"{suffix}; save it as one of these"
        )
    if suffix in _TABLES or (not suffix and _has_header(path)):
        tab = suffix in (".tsv", ".tab")
        return read_rows(path, "\t" if tab else None, None if tab else '"')
    if suffix in _JSON_LINES or (not suffix and _first_line(path).startswith("{")):
        return read_json_lines(path)
    bullet = _bullet_of(path)
    lines = ((number, bullet.sub("", line, count=1)) for number, line in read_lines(path))
    return ((f"{path}, line {number}", {"claim": line}) for number, line in lines if line.strip())


def _bullet_of(path: str) -> re.Pattern[str]:
    """Return the pattern of what begins an item of a list in a text; numbers do if each is one more than the last, from 1."""
    numbers = [int(found[1]) for _, line in read_lines(path) if (found := _NUMBERED.match(line))]
    return _ITEM if len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1)) else _DASHED


def _first_line(path: str) -> str:
    return next((line.strip() for _, line in read_lines(path) if line.strip()), "")


def _has_header(path: str) -> bool:
    """Return whether the first line names columns, one of them ``claim``."""
    line = _first_line(path).lower()
    return any("claim" in [cell.strip().strip('"') for cell in line.split(mark)] for mark in ",;\t|")


def _claim_column(path: str, row: Mapping[str, Any]) -> str:
    by_case = {name.lower(): name for name in row}
    named = next((by_case[name] for name in ("claim", *_OTHER_NAMES) if name in by_case), None)
    if named is None:
        meant = likely("claim", row, ())
        cure = f'call "{meant}" so' if meant else "give the column of the claims this name"
        raise SourceError(f'{path}: no column "claim" (found: {quoted(row)}); {cure}')
    return named


# The table of verdicts: one row per claim.


def row_of(each: FiledClaim, verdict: Mapping[str, Any], fields: Sequence[str]) -> list[object]:
    """Return the row of a claim: the values of :data:`COLUMNS`, then other columns of the file."""
    sides: dict[str, object] = {}
    for side in ("supporting", "contradicting"):
        best: dict[str, object] = next(iter(verdict[f"{side}_evidence"]), {})
        sides |= {f"{side}_{key}": best.get(key, "") for key in ("quote", "url", "page")}
        sides[f"{side}_origins"] = len(verdict[f"{side}_origins"])
        sides[f"{side}_passages"] = len(verdict[f"{side}_evidence"])
    values = sides | {
        "id": each.id,
        "claim": each.claim,
        "type": each.claim_type,
        "status": verdict["verification_status"],
        "weak_passages": len(verdict["weak_evidence"]),
        "rule": verdict["rule"],
        "neutral_passages": len(verdict["neutral_evidence"]),
    }
    return [values[name] for name in COLUMNS] + [each.fields.get(name, "") for name in fields]


class VerdictTable:
    """A CSV file of verdicts, to which whole rows are added: after an interruption it holds what was done.

    Args:
        path: of the file.
        claims: whose verdicts it holds.
        resume: whether to keep the rows of the file, which must be of the first of these claims.

    Raises:
        OutputError: it cannot be written.
        ConfigurationError: its rows are not of these claims.
    """

    def __init__(self, path: Path, claims: ClaimFile, *, resume: bool = False) -> None:
        self.path = path
        self._fields = claims.fields
        header = [*COLUMNS, *(f"input_{name}" if name in COLUMNS else name for name in self._fields)]
        self.statuses: Counter[str] = Counter()
        self.done = self._kept(header, claims) if resume and path.exists() else 0
        if not self.done:
            write_output(path, _written([header]))
        try:
            self._file: BinaryIO = path.open("ab", buffering=0)
        except OSError as error:
            raise OutputError(f"{path} cannot be written ({error.strerror}); choose another path") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, verdicts: Sequence[tuple[FiledClaim, Mapping[str, Any]]]) -> None:
        """Add rows: all of them, or none if they cannot be written.

        Raises:
            OutputError: they cannot be written.
        """
        content = _written([row_of(each, verdict, self._fields) for each, verdict in verdicts])
        end = self._file.seek(0, os.SEEK_END)
        try:
            while content:
                content = content[self._file.write(content) or 0 :]  # a full disk takes a part first
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            raise OutputError(f"{self.path} cannot be written ({error.strerror}); free some space and add --resume") from error

    def _kept(self, header: list[str], claims: ClaimFile) -> int:
        """Return the number of claims that have a row; what was cut off after them is removed."""
        content = self.path.read_bytes().decode("utf-8", "replace")
        rows: list[list[str]] = []
        with suppress(csv.Error):  # a last row that was cut off within quotation marks
            for row in csv.reader(io.StringIO(content, newline=""), strict=True):
                rows.append(row)
            rows = rows if content.endswith("\n") else rows[:-1]
        if not rows and not _written([header]).startswith(content.encode()):
            raise self._other(claims, 1)
        for number, (row, expected) in enumerate(zip_longest(rows, [header, *map(_key, claims.claims)][: len(rows)]), start=1):
            if expected is None or row[: len(expected)] != expected:
                raise self._other(claims, number)
        write_output(self.path, _csv(rows))
        self.statuses.update(row[COLUMNS.index("status")] for row in rows[1:])
        return max(0, len(rows) - 1)

    def _other(self, claims: ClaimFile, number: int) -> ConfigurationError:
        return ConfigurationError(
            f"{self.path}, row {number}: not a row of the claims in {claims.path}; resume with the file of claims and the type "
            "that it was begun with, or leave out --resume"
        )


def _key(each: FiledClaim) -> list[str]:
    return [_cell(value) for value in (each.id, each.claim, each.claim_type)]


def _written(rows: Iterable[Sequence[object]]) -> bytes:
    return _csv([_cell(value) for value in row] for row in rows)


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> str:
    """Return a value as a cell."""
    return spreadsheet_cell("" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
