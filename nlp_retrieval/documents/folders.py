"""Folders of documents, and manifests that describe them.

A folder is read to any depth, in the order of its names. Links (they may lead out of it), devices and unsupported files
are skipped and counted in a warning; names that begin with a dot, and lock files of office programs, without one. A manifest is
a CSV file, which names files below its own folder only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from nlp_retrieval.documents.cleaning import clean_text
from nlp_retrieval.documents.reading import SUFFIXES
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders import quoted, read_rows
from nlp_retrieval.text import counted, printable

_UNSEEN = (".", "~$")


class LeftOut:
    """Files and texts that were skipped, by reason, for one warning each.

    Examples:
        >>> left_out = LeftOut()
        >>> left_out.add("links, devices, pipes and sockets skipped", "a/link")
        >>> left_out.lines()
        ['links, devices, pipes and sockets skipped: a/link']
    """

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._details: list[str] = []
        self.failures: list[str] = []
        """Sources that could not be read or stored, and why."""

    def add(self, reason: str, case: str) -> None:
        """Count one case of a reason."""
        self._found.setdefault(reason, []).append(case)

    def fail(self, reason: str, what: str) -> None:
        """Count a source that could not be read or stored."""
        self.failures.append(what)
        self.add(reason, what)

    def detail(self, where: str, why: str, text: str) -> None:
        """Note a text that was omitted from a source."""
        self._details.append(f"{where}: {why}: {printable(text)}")

    def lines(self) -> list[str]:
        """Return everything that was skipped, a line each."""
        return [f"{reason}: {case}" for reason, cases in self._found.items() for case in cases] + self._details

    def warn(self) -> None:
        """Warn of the number for each reason, and the first case."""
        for reason, cases in self._found.items():
            warnings.warn(f"{reason}: {len(cases):,} (first: {cases[0]})", RetrievalWarning, stacklevel=3)


def is_json_lines(path: Path) -> bool:
    """Return whether a file holds one document per line, by its name.

    Examples:
        >>> is_json_lines(Path("pages.jsonl.gz"))
        True
    """
    return path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def files_in(folder: Path, left_out: LeftOut, known: Collection[Path] = ()) -> Iterator[Path]:
    """Yield the files of a folder that can be read; those that are known to be none are skipped without a warning.

    Examples:
        >>> Path("pages").mkdir()
        >>> _ = Path("pages/krill.txt").write_text("Krill.")
        >>> [path.name for path in files_in(Path("pages"), LeftOut())]
        ['krill.txt']
    """

    def unreadable(error: OSError) -> None:
        left_out.add("folders skipped because they cannot be opened", f"{printable(str(error.filename))}: {error.strerror}")

    for current, folders, names in os.walk(folder, onerror=unreadable):
        here = Path(current)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(_UNSEEN) and name not in links)
        for path in [here / name for name in (*links, *sorted(names))]:
            if path.name.startswith(_UNSEEN) or path in known:
                continue
            if path.is_symlink() or not path.is_file():
                left_out.add("links, devices, pipes and sockets skipped", printable(str(path)))
            elif is_json_lines(path) or path.suffix.lower() in SUFFIXES:
                yield path
            else:
                left_out.add("unsupported files skipped", printable(str(path)))


# Manifests, and the values of front matter.

_FIELDS = {
    "file": "file",
    "filename": "file",
    "url": "url",
    "canonical": "canonical",
    "canonicalurl": "canonical",
    "grade": "quality",
    "quality": "quality",
    "accessed": "fetch_date",
    "fetchdate": "fetch_date",
    "date": "date",
    "title": "title",
    "doi": "doi",
}
_SHOWN_FAULTS = 30
_LONGEST_VALUE = 2_000


def is_date(text: str) -> bool:
    """Return whether a text is a date or time in ISO 8601.

    Examples:
        >>> is_date("2026-01-19")
        True
    """
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Described:
    """What a row of a manifest, or front matter, says about a document.

    Args:
        where: the file, and its line.
        fields: text by name: "file", "url", "canonical", "quality", "fetch_date", "date", "title" and "doi", as far as said.
        metadata: other values.
        file: the absolute path of the file that a row names.

    Examples:
        >>> Described("sources.csv, line 2", {"title": "Krill"}).fields["title"]
        'Krill'
    """

    where: str
    fields: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None


def described(values: Mapping[str, str], where: str) -> Described:
    """Return what some values say, by column or key."""
    cleaned = {name: " ".join(clean_text(value)[0].split())[:_LONGEST_VALUE] for name, value in values.items()}
    fields = {_field_of(name): value for name, value in cleaned.items() if _field_of(name)}
    return Described(where, fields, {name: value for name, value in cleaned.items() if value and not _field_of(name)})


def _field_of(name: str) -> str:
    return _FIELDS.get("".join(char for char in name.casefold() if char.isalnum()), "")


def is_manifest(path: Path) -> bool:
    """Return whether a file lists documents with their files or URLs, by its name.

    Examples:
        >>> is_manifest(Path("sources.csv"))
        True
    """
    return path.suffix.lower() in (".csv", ".tsv")


def read_manifest(path: Path) -> tuple[list[Described], list[str]]:
    """Return the rows of a manifest, and what is wrong with the files that they name.

    Columns are ``file`` or ``url``, ``canonical url``, ``grade``, ``date``, ``title`` and ``doi``, with spaces and case as
    people write them; others become metadata.

    Raises:
        SourceError: a column is missing or twice, or it has no rows.

    Examples:
        >>> _ = Path("krill.txt").write_text("Krill.")
        >>> _ = Path("sources.csv").write_text(chr(10).join(["file,year", "krill.txt,2020"]))
        >>> [(row.file.name, row.metadata) for row in read_manifest(Path("sources.csv"))[0]]
        [('krill.txt', {'year': '2020'})]
    """
    folder = path.parent.resolve()
    rows: list[Described] = []
    faults: list[str] = []
    for number, (where, row) in enumerate(read_rows(path)):
        if not number:
            _check_columns(where, list(row))
        values = {name: str(value) for name, value in row.items() if str(value).strip()}
        if not values:
            continue
        said = described(values, where)
        if name := said.fields.get("file", ""):
            try:
                said = replace(said, file=_file_of(name, folder))
            except (OSError, ValueError, RuntimeError) as error:
                faults.append(f"{where}: '{printable(name)[:120]}' {error}")
        rows.append(said)
    if not rows:
        raise SourceError(f"{path}: it lists no source")
    return rows, faults


def refuse_faults(path: Path, faults: Sequence[str]) -> None:
    """Refuse a manifest for what is wrong with it.

    Raises:
        SourceError: something is; the message lists it.

    Examples:
        >>> refuse_faults(Path("sources.csv"), [])
    """
    if faults:
        more = f"\n  and {len(faults) - _SHOWN_FAULTS:,} more" if len(faults) > _SHOWN_FAULTS else ""
        listed = "".join(f"\n  {fault}" for fault in faults[:_SHOWN_FAULTS])
        raise SourceError(f"{path}: nothing was added, since {counted(len(faults), 'thing')} must be mended:{listed}{more}")


def _check_columns(where: str, columns: Sequence[str]) -> None:
    fields = [field for field in map(_field_of, columns) if field]
    if twice := next((field for field in fields if fields.count(field) > 1), None):
        raise SourceError(f"{where}: several columns mean the {twice}; remove all but one")
    if not {"file", "url", "canonical", "doi"} & set(fields):
        raise SourceError(f'{where}: no column "file" or "url" (found: {quoted(dict.fromkeys(columns))})')


def _file_of(name: str, folder: Path) -> Path:
    """Return the file that a manifest names; a ValueError says what is wrong with it."""
    found = (folder / name).resolve()
    if Path(name).is_absolute() or not found.is_relative_to(folder):
        raise ValueError("leads out of the folder of the manifest; copy it there, and write its path relative to that")
    if not found.is_file():
        raise ValueError(f"is no file in {printable(str(folder))}; check its name, or copy it there")
    if found.suffix.lower() not in SUFFIXES:
        raise ValueError(f"is of a kind that is not read; convert it to one of {', '.join(SUFFIXES)}")
    return found
