"""What a manifest or the front matter of a file says about a source: URL, grade, date, title, DOI and more.

All of a manifest is checked before any of its sources is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from nlp_retrieval.documents import described, field_of, is_date, refuse_faults
from nlp_retrieval.documents import read_manifest as read_rows_of
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.grades import GRADES
from nlp_retrieval.systems.evidence.index.urls import canonical_url, resolved_doi
from nlp_retrieval.text import printable

_URL = re.compile(r"https?://|doi:|10\.[0-9]", re.IGNORECASE)
_DOI_BEFORE_URL = re.compile(r"doi:\s{0,5}(?=https?://)", re.IGNORECASE)


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


def _checked(fields: Mapping[str, str], metadata: Mapping[str, str], where: str) -> tuple[Description, list[str]]:
    """Return the description in some values by field, and what is wrong with it."""
    faults = []
    kept = dict(metadata) | ({"date": fields["date"]} if fields.get("date") and fields.get("fetch_date") else {})
    grade, date = fields.get("quality", "").upper(), fields.get("fetch_date") or fields.get("date", "")
    if grade and grade not in GRADES:
        faults.append(f"{fields['quality'][:40]!r} is not a grade; grades are A, B, C, D and E")
    if date and not is_date(date):
        faults.append(f"{date[:40]!r} is not a date in ISO 8601; write it as year-month-day, such as 2026-01-19")
    urls, wrong = _checked_urls(fields)
    if "doi" in urls:
        kept["doi"] = unquote(urls["doi"].removeprefix("https://doi.org/"))
    url = urls.get("canonical") or urls.get("url") or urls.get("doi", "")
    aliases = tuple(address for address in dict.fromkeys(urls.values()) if address != url)
    fetch_url = urls.get("url") or url
    title = fields.get("title", "")
    return Description(where, None, url, fetch_url, aliases, title, grade, date, kept), faults + wrong


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


def read_manifest(path: Path, *, fetches: bool) -> list[Description]:
    """Return the sources that a CSV file lists.

    A source is cited by its canonical URL, else its URL, else its DOI; the others are URLs of it, too.

    Args:
        path: of the file.
        fetches: whether rows without a file will be fetched.

    Raises:
        SourceError: a row is wrong; the message lists all that are.
    """
    listed, faults = read_rows_of(path)
    rows = []
    for said in listed:
        row, wrong = _checked(said.fields, said.metadata, said.where)
        if said.file is not None:
            row = replace(row, file=said.file, url=row.url or said.file.as_uri())
        elif not said.fields.get("file") and not wrong:
            if not row.fetch_url:
                wrong.append("it names no file and no URL")
            elif not fetches:
                wrong.append("it names no file; add --fetch http to fetch its URL")
        faults += [f"{said.where}: {fault}" for fault in wrong]
        rows.append(row)
    refuse_faults(path, [*faults, *_conflicts(rows)])
    return rows


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
        if (field_name := field_of(name)) and by_field.setdefault(field_name, name) != name:
            read[f"{name}_text"] = read.pop(name)
    said = described({name: value for name, value in read.items() if field_of(name) != "file"}, where)
    description, faults = _checked(said.fields, said.metadata, where)
    faults += [f"url {printable(url)[:80]!r} is no web address; begin it with https://" for url in no_url]
    if description.quality not in GRADES:
        description = replace(description, quality="")
    if not is_date(description.fetch_date):
        description = replace(description, fetch_date="")
    return description, faults
