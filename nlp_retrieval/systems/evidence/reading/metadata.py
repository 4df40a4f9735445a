"""What a manifest or the front matter of a file says about a source: URL, grade, date, title, DOI and more.

A manifest names files below its own folder only, whatever it says: a path that leads elsewhere is refused, also by a symbolic
link. All of it is checked before any of its sources is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote

from nlp_retrieval.core import parse_yaml
from nlp_retrieval.errors import ConfigurationError, InputError, SourceError
from nlp_retrieval.loaders import likely, quoted, read_rows
from nlp_retrieval.systems.evidence.grades import GRADES
from nlp_retrieval.systems.evidence.index.urls import canonical_url, resolved_doi
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text
from nlp_retrieval.text import printable

_NAMES = {
    "file": "file filename filepath path document",
    "url": "url uri link href address webaddress weburl",
    "canonical": "canonical canonicalurl canonicaluri canonicallink",
    "quality": "grade quality sourcegrade sourcequality",
    "fetch_date": "fetchdate fetched accessed accessdate accesseddate dateaccessed retrieved retrievaldate dateretrieved",
    "date": "date",
    "title": "title headline",
    "doi": "doi",
}
_FIELD_OF = {name: field_name for field_name, names in _NAMES.items() for name in names.split()}
_MOST_ROWS = 100_000
_SHOWN_FAULTS = 30
_LONGEST_VALUE = 2_000
_MOST_VALUES = 50
_LONGEST_FRONT_MATTER = 64 * 2**10
_URL = re.compile(r"https?://|doi:|10\.[0-9]", re.IGNORECASE)
_RULE = re.compile(r"---[ \t]{0,80}\n")
_KEY = re.compile(r"\s{0,9}[\w\"'-]{1,80}\s{0,9}:")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]{0,80}$", re.MULTILINE)


_DAY_FIRST = re.compile(r"([0-9]{1,2})\.\s?([0-9]{1,2})\.\s?([0-9]{4})")
_DOI_BEFORE_URL = re.compile(r"doi:\s{0,5}(?=https?://)", re.IGNORECASE)


def as_iso_date(text: str) -> str:
    """Return a date that is written as in German, "19.1.2026", in ISO 8601; anything else as it is."""
    found = _DAY_FIRST.fullmatch(text)
    return f"{found[3]}-{int(found[2]):02}-{int(found[1]):02}" if found else text


def is_date(text: str) -> bool:
    """Return whether a text is a date or time in ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Description:
    """Values of a source that a person wrote down.

    Args:
        where: the place, for messages.
        file: its file, absolute; None if it is to be fetched, or if it is the file with the front matter itself.
        url: that it is cited by; empty: that of the file.
        fetch_url: where it is to be fetched if it has no file.
        aliases: more URLs of it, as that of its DOI.
        title: may be empty.
        quality: its grade; may be empty.
        fetch_date: ISO 8601; may be empty.
        metadata: other values, text by name.
    """

    where: str
    file: Path | None = None
    url: str = ""
    fetch_url: str = ""
    aliases: tuple[str, ...] = ()
    title: str = ""
    quality: str = ""
    fetch_date: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def given(self) -> set[str]:
        """Return the names of the values that it gives a document."""
        return {name for name in ("title", "quality", "fetch_date") if getattr(self, name)}


def _described(values: Mapping[str, str], where: str) -> tuple[Description, str, list[str]]:
    """Return the description in some values by column or key, the file that it names, and what is wrong with it."""
    fields: dict[str, str] = {}
    metadata: dict[str, str] = {}
    for name, value in values.items():
        field_name = _field_of(name)
        cleaned = " ".join(clean_text(value)[0].split())[:_LONGEST_VALUE]
        if field_name:
            fields[field_name] = cleaned
        elif cleaned:
            metadata[name] = cleaned
    if fields.get("fetch_date"):
        metadata |= {"date": fields["date"]} if fields.get("date") else {}
    else:
        fields["fetch_date"] = fields.get("date", "")
    faults = []
    grade, date = fields.get("quality", "").upper(), as_iso_date(fields["fetch_date"])
    if grade and grade not in GRADES:
        faults.append(f"{fields['quality'][:40]!r} is not a grade; grades are A, B, C, D and E")
    if date and not is_date(date):
        faults.append(
            f"{fields['fetch_date'][:40]!r} is not a date in ISO 8601; write it as year-month-day, such as 2026-01-19"
        )
    urls, wrong = _checked_urls(fields)
    faults += wrong
    if "doi" in urls:
        metadata["doi"] = unquote(urls["doi"].removeprefix("https://doi.org/"))
    url = urls.get("canonical") or urls.get("url") or urls.get("doi", "")
    aliases = tuple(address for address in dict.fromkeys(urls.values()) if address != url)
    description = Description(
        where=where,
        url=url,
        fetch_url=urls.get("url") or url,
        aliases=aliases,
        title=fields.get("title", ""),
        quality=grade,
        fetch_date=date,
        metadata=metadata,
    )
    return description, fields.get("file", ""), faults


def _checked_urls(fields: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the URLs in some values by field, that of a DOI in its canonical form, and what is wrong with the others."""
    urls: dict[str, str] = {}
    faults = []
    for name in ("canonical", "doi", "url"):
        if address := fields.get(name, ""):
            if name == "doi":
                address = _DOI_BEFORE_URL.sub("", address.rstrip(".,;"))
            try:
                canonical = canonical_url(address)
            except InputError as error:
                canonical, fault = "", str(error)
            if name == "doi" and not canonical.startswith("https://doi.org/10."):
                faults.append(f"doi {printable(address)[:80]!r}: it is not a DOI such as 10.1000/182")
            elif not canonical:
                faults.append(f"{name} {printable(address)[:80]!r}: {fault}")
            else:
                urls[name] = canonical if name == "doi" else resolved_doi(address)
    return urls, faults


def _field_of(name: str) -> str:
    return _FIELD_OF.get("".join(char for char in name.casefold() if char.isalnum()), "")


# Manifests.


def is_manifest(path: Path) -> bool:
    """Return whether a file lists sources with their files or URLs, by its name."""
    return path.suffix.lower() in (".csv", ".tsv")


def read_manifest(path: Path, suffixes: Iterable[str], *, fetches: bool) -> list[Description]:
    """Return the sources that a CSV file lists.

    Columns are ``file`` or ``url``, ``canonical url``, ``grade``, ``date``, ``title`` and ``doi``, with spaces and case as
    people write them; others become metadata. A source is cited by its canonical URL, else its URL, else its DOI; the others
    are URLs of it, too.

    Args:
        path: of the file.
        suffixes: of files that can be read.
        fetches: whether rows without a file will be fetched.

    Raises:
        SourceError: a row is wrong; the message lists all that are.
    """
    folder = path.parent.resolve()
    rows: list[Description] = []
    faults: list[str] = []
    for where, row in read_rows(path):
        if not rows and not faults:
            _check_columns(where, list(row))
        values = {name: str(value) for name, value in row.items() if str(value).strip()}
        if not values:
            continue
        described, name, wrong = _described(values, where)
        if name:
            found = _file_of(name, folder, frozenset(suffixes))
            if isinstance(found, str):
                wrong.append(found)
            else:
                described = Description(**(vars(described) | {"file": found, "url": described.url or found.as_uri()}))
        elif not described.fetch_url and not wrong:
            wrong.append("it names no file and no URL")
        elif not fetches and not wrong:
            wrong.append("it names no file; add --fetch http to fetch its URL")
        faults += [f"{where}: {fault}" for fault in wrong]
        rows.append(described)
        if len(rows) > _MOST_ROWS:
            raise SourceError(f"{path}: more than {_MOST_ROWS:,} rows; split it up")
    if not rows and not faults:
        raise SourceError(f"{path}: it lists no source")
    faults += _conflicts(rows)
    if faults:
        more = f"\n  and {len(faults) - _SHOWN_FAULTS:,} more" if len(faults) > _SHOWN_FAULTS else ""
        listed = "".join(f"\n  {fault}" for fault in faults[:_SHOWN_FAULTS])
        counted = "1 thing is" if len(faults) == 1 else f"{len(faults):,} things are"
        raise SourceError(f"{path}: nothing was added, since {counted} wrong:{listed}{more}")
    return rows


def _check_columns(where: str, columns: Sequence[str]) -> None:
    fields = [_field_of(column) for column in columns]
    for number, name in enumerate(fields):
        if name and name in fields[:number]:
            first = columns[fields.index(name)]
            raise SourceError(f"{where}: the columns {first!r} and {columns[number]!r} both mean the {name}; remove one")
    if not {"file", "url", "canonical", "doi"} & set(fields):
        raise SourceError(f'{where}: no column "file" or "url" (found: {quoted(dict.fromkeys(columns))})')
    lacking = [name for name in ("file", "url", "grade", "date", "title", "doi") if _FIELD_OF[name] not in fields]
    for column, name in zip(columns, fields, strict=True):
        meant = next((other for other in lacking if likely(other, [column], ())), None)
        if not name and meant is not None:
            raise SourceError(f"{where}: there is no column {column[:40]!r}; rename it to {meant!r}, or to something else")


def _file_of(name: str, folder: Path, suffixes: frozenset[str]) -> Path | str:
    """Return the file that a manifest names, or what is wrong with it."""
    shown = printable(name)[:120]
    fault = ""
    try:
        found = (folder / name).resolve()
        if "\\" in name and not found.exists():  # as Windows writes it
            found = (folder / name.replace("\\", "/")).resolve()
        if Path(name).is_absolute() or (PureWindowsPath(name).anchor and not found.exists()):
            fault = "is an absolute path; write it relative to the folder of the manifest"
        elif not found.is_relative_to(folder):
            fault = "leads out of the folder of the manifest; copy it there"
        elif found.is_dir():
            fault = "is a folder; list its files, or add the folder itself"
        elif not found.is_file():
            fault = f"is no file in {printable(str(folder))}; check its name, or copy it there"
        elif found.suffix.lower() not in suffixes:
            fault = f"is of a kind that is not read; convert it to one of {', '.join(sorted(suffixes))}"
    except (OSError, ValueError, RuntimeError) as error:
        return f"'{shown}' is not the name of a file ({error})"
    return f"'{shown}' {fault}" if fault else found


def _conflicts(rows: Sequence[Description]) -> Iterator[str]:
    """Yield what is wrong with rows together: one URL for two sources, and cycles of canonical URLs."""
    line = {id(row): row.where.rpartition(", ")[2] for row in rows}
    leads: dict[str, tuple[str, Description]] = {}
    by_url: dict[str, list[Description]] = {}
    for row in rows:
        own = _canonical(row.url)
        by_url.setdefault(own, []).append(row)
        for alias in map(_canonical, row.aliases):
            if alias != own:
                leads.setdefault(alias, (own, row))
    reported: set[str] = set()
    for start in leads:
        walked = [start]
        while walked[-1] in leads and len(walked) <= len(leads):
            walked.append(leads[walked[-1]][0])
            if walked[-1] == start:
                break
        if len(walked) > 1 and walked[-1] == start and start not in reported:
            reported.update(walked)
            lines = ", ".join(line[id(leads[url][1])] for url in walked[:-1])
            yield f"{lines}: a cycle of URLs, each the canonical one of another: {' -> '.join(walked)}"
    for url, (target, row) in leads.items():
        if url in by_url and url not in reported:
            yield f"{row.where}: {url} leads to {target}, but is the URL of {line[id(by_url[url][0])]}; keep one of them"
    for url, same in by_url.items():
        dates = [row.fetch_date for row in same]
        if url and len(same) > 1 and (len(set(dates)) < len(same) or not all(dates)):
            lines = " and ".join(line[id(row)] for row in same[:5])
            yield f"{lines}: both are {url}; keep one, or give each the date of its version"


def _canonical(url: str) -> str:
    try:
        return canonical_url(url)
    except InputError:  # reported with its row
        return ""


# Front matter: YAML between lines of three hyphens, at the beginning of a text.


def split_front_matter(text: str, where: str, *, strict: bool) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the values of the YAML front matter of a text by lower-case names, and the text after it.

    Args:
        text: of a file; without front matter it is returned as it is.
        where: its name, for messages.
        strict: whether a block that is not plain YAML is an error; else it belongs to the text.

    Raises:
        SourceError: the block is not plain YAML (tags, too many aliases, a key twice), or has more than 64 KiB.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n") if text[:6].lstrip("\ufeff").startswith("---") else text
    begin = _RULE.match(text)
    end = _END.search(text, begin.end()) if begin else None
    if begin is None or end is None:
        return (), text
    block = text[begin.end() : end.start()]
    if strict and len(block) > _LONGEST_FRONT_MATTER and _KEY.match(block):
        raise SourceError(f"{where}: the YAML at its beginning cannot be read (more than 64 KiB); shorten or remove it")
    try:
        values = parse_yaml(block[: _LONGEST_FRONT_MATTER + 1], "front matter")
    except ConfigurationError as error:
        if strict and _KEY.match(block):
            raise SourceError(f"{where}: the YAML at its beginning cannot be read ({error}); correct or remove it") from None
        return (), text
    if not isinstance(values, dict):
        return (), text
    found = {str(name).strip().lower()[:100]: _as_text(value) for name, value in list(values.items())[:_MOST_VALUES]}
    return tuple((name, value) for name, value in found.items() if name and value), text[end.end() :].lstrip("\n")


def _as_text(value: object) -> str:
    if isinstance(value, list):
        parts = [_as_text(each) for each in value[:_MOST_VALUES] if not isinstance(each, list | dict)]
        return "; ".join(filter(None, parts))[:_LONGEST_VALUE]
    return "" if value is None or isinstance(value, dict) else str(value)[:_LONGEST_VALUE]


def describe_front_matter(values: Iterable[tuple[str, str]], where: str) -> tuple[Description, list[str]]:
    """Return the description in front matter, and what of it cannot be used."""
    read = dict(values)
    no_url = [read["url"]] if "url" in read and not _URL.match(read["url"]) else []
    for name in ("url", "link", "canonical", "permalink", "source"):  # often something else
        if name in read and not _URL.match(read[name]):
            read[f"{name}_text"] = read.pop(name)
    if "source" in read and not {"url", "link"} & read.keys():
        read["url"] = read.pop("source")
    by_field: dict[str, str] = {}
    for name in list(read):
        if (field_name := _field_of(name)) and by_field.setdefault(field_name, name) != name:
            read[f"{name}_text"] = read.pop(name)
    read.pop("file", None)
    description, _, faults = _described(read, where)
    faults += [f"url {printable(url)[:80]!r} is no web address; begin it with https://" for url in no_url]
    kept = (
        {}
        if not faults
        else {
            "quality": description.quality if description.quality in GRADES else "",
            "fetch_date": description.fetch_date if is_date(description.fetch_date) else "",
            "url": ""
            if any(_canonical(url) == "" for url in (description.url, *description.aliases) if url)
            else description.url,
            "aliases": tuple(url for url in description.aliases if _canonical(url)),
        }
    )
    return Description(**(vars(description) | kept)), faults
