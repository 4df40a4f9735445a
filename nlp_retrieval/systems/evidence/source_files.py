"""Reading files, folders, manifests and JSON lines as sources for the index of evidence.

A manifest, or the front matter of a file, says what a person knows of a source: URL, grade, date, title, DOI and more. All of
a manifest is checked before any of its sources is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from nlp_retrieval.documents import (
    LARGEST_TEXT,
    Document,
    LeftOut,
    Removed,
    clean_text,
    clean_title,
    described,
    field_of,
    files_in,
    is_date,
    is_json_lines,
    is_manifest,
    read_document,
    read_file,
    read_manifest,
    refuse_faults,
)
from nlp_retrieval.errors import ConfigurationError, DependencyError, FetchError, InputError, SourceError
from nlp_retrieval.loaders import CONTENT_NAMES, JsonObject, as_text, likely, quoted, read_json_lines
from nlp_retrieval.systems.evidence.grades import GRADES, QualityRules, assess_source_quality
from nlp_retrieval.systems.evidence.index.urls import canonical_url, resolved_doi
from nlp_retrieval.text import printable

_FIELDS = ("url", "content", "text", "title", "quality", "fetch_date")
_URL_NAMES = ("url", "uri", "link", "href", "address", "source")
_URL = re.compile(r"https?://|doi:|10\.[0-9]", re.IGNORECASE)
_DOI_BEFORE_URL = re.compile(r"doi:\s{0,5}(?=https?://)", re.IGNORECASE)


@dataclass(frozen=True)
class SourceDocument:
    """A source in the form that the index of evidence accepts.

    Args:
        content: its plain text, paragraphs separated by blank lines, without anything that its readers do not see.
        url: of the source; ``file://`` for a file.
        title: of the source, or the name of its file.
        quality: its grade, "A" (best) to "E".
        fetch_date: when it was fetched, ISO 8601; empty if unknown.
        given: the values that came from a person, not from a rule, page or clock: "title", "quality", "fetch_date".
        pages: numbers of its pages with text, from 1, and where each begins in the content.
        metadata: more about it, as its DOI: text by name.
        aliases: more URLs that it is cited by.
    """

    content: str
    url: str
    title: str = ""
    quality: str = "C"
    fetch_date: str = ""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    pages: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    metadata: Mapping[str, str] = field(default_factory=dict, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)


class Fetched(Protocol):
    """A fetched page, as a fetcher returns it."""

    @property
    def url(self) -> str: ...
    @property
    def content(self) -> bytes: ...
    @property
    def media_type(self) -> str: ...
    @property
    def fetch_date(self) -> str: ...


def read_sources(
    paths: Iterable[str | Path] | str | Path,
    quality: str | None = None,
    rules: QualityRules | str | Path | None = None,
    fetch_date: str = "",
    url_of: Callable[[Path], str] | None = None,
    left_out: LeftOut | None = None,
    fetch: Callable[[str], Fetched] | None = None,
) -> Iterator[SourceDocument]:
    """Yield the sources in files and folders, in the order given, one at a time.

    A file is a document, a manifest, or JSON lines: an object per line, with ``url``, the text in ``content`` or ``text``, and
    optionally ``title``, ``quality`` and ``fetch_date``. The URL of a document is its ``file://`` address unless ``url_of`` or
    front matter gives one; a page's claim about its own address is ignored, since it may be false. What a manifest says comes
    before front matter.

    A named file that cannot be read is an error, as is a wrong line of it. In a folder or a manifest, files and lines that
    cannot be read are skipped; a warning at the end counts them and says what is wrong with the first.

    Args:
        paths: a file, a folder, or several; a symbolic link is followed if it is named, not in a folder.
        quality: the grade of sources that state none, "A" to "E"; None: by ``rules``.
        rules: as :func:`~nlp_retrieval.systems.evidence.grades.assess_source_quality` takes them.
        fetch_date: when sources were fetched that state no date, ISO 8601.
        url_of: gives the URL of a file by its path.
        left_out: collects what is skipped, to list it; by default a warning counts it.
        fetch: returns the page at a URL, for rows of a manifest without a file; by default these are errors.

    Raises:
        SourceError: a file or folder does not exist or cannot be read, or a line is wrong.
        ConfigurationError: an unknown grade, an invalid date, or wrong rules.
        DependencyError: a package for a kind of file is not installed.
    """
    if quality is not None and quality not in GRADES:
        raise ConfigurationError(f"quality={quality!r} is not a grade; grades are A, B, C, D and E")
    if fetch_date and not is_date(fetch_date):
        raise ConfigurationError(f"fetch_date={fetch_date!r} is not a date in ISO 8601; write it as 2026-01-19T14:30:00Z")
    if isinstance(rules, str | Path):
        rules = QualityRules.read(rules)
    several = [Path(path).expanduser() for path in ([paths] if isinstance(paths, str | Path) else paths)]
    manifests = {path: _manifest(path, fetches=fetch is not None) for path in several if is_manifest(path) and path.is_file()}
    return _Reading(quality, rules, fetch_date, url_of, left_out or LeftOut(), fetch, manifests).read(several)


@dataclass
class _Reading:
    """One reading of files and folders."""

    quality: str | None
    rules: QualityRules | None
    fetch_date: str
    url_of: Callable[[Path], str] | None
    left_out: LeftOut
    fetch: Callable[[str], Fetched] | None = None
    manifests: Mapping[Path, Sequence[_Said]] = field(default_factory=dict)
    _outside: int = 0

    def read(self, paths: list[Path]) -> Iterator[SourceDocument]:
        for path in paths:
            if path.is_dir():
                for file in files_in(path, self.left_out):
                    if is_json_lines(file):
                        yield from self._rows(file, skipping=True)
                    elif (document := self._skipping(partial(self._file, file, follow_link=False))) is not None:
                        yield document
            elif path in self.manifests:
                for row in self.manifests[path]:
                    if (document := self._skipping(partial(self._listed, row))) is not None:
                        yield document
            elif is_json_lines(path) and path.is_file():
                yield from self._rows(path)
            else:
                yield self._file(path, follow_link=True)
        if self._outside:
            self.left_out.counted(f"{self._outside:,} words outside the main text of pages, as navigation")
        self.left_out.warn()

    def _skipping(self, read: Callable[[], SourceDocument]) -> SourceDocument | None:
        try:
            return read()
        except DependencyError:
            raise
        except (InputError, FetchError) as error:
            self.left_out.fail("files skipped because they cannot be read", str(error))
            return None

    def _listed(self, row: _Said) -> SourceDocument:
        if row.file is not None:
            return self._file(row.file, follow_link=False, listed=row)
        if self.fetch is None:  # pragma: no cover -- refused before
            raise SourceError(f"{row.where}: it names no file")
        try:
            page = self.fetch(row.fetch_url)
        except FetchError as error:
            of = "" if row.fetch_url in str(error) else f", {printable(row.fetch_url)}"
            raise SourceError(f"{row.where}{of}: {error}") from None
        moved = () if canonical_url(page.url) == canonical_url(row.fetch_url) else (page.url,)
        named = replace(row, fetch_date=row.fetch_date or page.fetch_date, aliases=(*row.aliases, *moved))
        read = read_document(page.content, name=page.url, media_type=page.media_type)
        return self._document(replace(read, metadata=[]), f"{row.where}, {printable(page.url)}", row.url, named)

    def _file(self, path: Path, follow_link: bool, listed: _Said | None = None) -> SourceDocument:
        shown = printable(str(path))
        read = read_document(read_file(path, follow_link), name=str(path))
        url = self.url_of(path) if self.url_of is not None else Path(os.path.abspath(path)).as_uri()  # noqa: PTH100 -- Path's own follows no ..
        return self._document(replace(read, title=read.title or path.stem), shown, url, listed)

    def _document(self, read: Document, shown: str, url: str, listed: _Said | None) -> SourceDocument:
        """Return a source with the values of a manifest, else of its front matter, else of its page."""
        own, faults = _front_matter(read.metadata, shown)
        if faults:
            self.left_out.add("values of front matter that cannot be used", f"{shown}: {'; '.join(faults)}")
        said = listed or own
        if listed is None and (own.url or own.quality):
            taken = " and ".join(name for name, value in (("URL", own.url), ("grade", own.quality)) if value)
            self.left_out.add("URLs and grades taken from the front matter of files", f"{shown}: {taken}")
        self._note(shown, read.removed)
        title, _ = clean_title(said.title or read.title)
        if listed is not None or self.url_of is None:
            url = said.url or url
        for why, text in read.left_out:
            self._outside += len(text.split()) if why == "outside the main text" else 0
            self.left_out.detail(shown, why, text)
        for note in read.notes:
            self.left_out.add("notes on how files were read", note)
        return SourceDocument(
            read.text,
            url,
            title,
            said.quality or own.quality or self.quality or self._grade(shown, url),
            said.fetch_date or own.fetch_date or self.fetch_date,
            self._given(*said.given, *own.given),
            read.pages,
            {**own.metadata, **said.metadata},
            said.aliases,
        )

    def _given(self, *names: str) -> frozenset[str]:
        """Return the values that a person gave: for all sources, or in a line."""
        for_all = {name for name, value in (("quality", self.quality), ("fetch_date", self.fetch_date)) if value}
        return frozenset(for_all | set(names))

    def _rows(self, path: Path, *, skipping: bool = False) -> Iterator[SourceDocument]:
        try:
            for where, row in read_json_lines(path):
                read = partial(self._row, where, row)
                if (document := self._skipping(read) if skipping else read()) is not None:
                    yield document
        except SourceError as error:  # what follows a line that is no JSON is not read
            if not skipping:
                raise
            self.left_out.fail("files skipped because they cannot be read", str(error))

    def _row(self, where: str, row: JsonObject) -> SourceDocument:
        name = next((name for name in ("content", "text") if name in row), None)
        if name is None:
            likely_name = likely("content", row, CONTENT_NAMES)
            cure = f'rename "{likely_name}" to "content"' if likely_name else "give every line its text under that name"
            raise SourceError(f'{where}: no "content" field (found: {quoted(row)}); {cure}')
        if "url" not in row:
            likely_name = likely("url", row, _URL_NAMES)
            cure = f'rename "{likely_name}" to "url"' if likely_name else "a source is cited by its URL"
            raise SourceError(f'{where}: no "url" field (found: {quoted(row)}); {cure}')
        values = {
            field: "" if row.get(field) is None else as_text(where, field, row[field]) for field in _FIELDS if field in row
        }
        content, removed = clean_text(values[name])
        title, removed_there = clean_title(values.get("title", ""))
        if not content.strip():
            raise SourceError(f'{where}: "{name}" has no visible text; remove the line')
        if len(content) > LARGEST_TEXT:
            raise SourceError(
                f'{where}: "{name}" has {len(content):,} characters; at most {LARGEST_TEXT:,} are read, split it up'
            )
        self._note(where, removed + removed_there)
        date = values.get("fetch_date", "") or self.fetch_date
        if date and not is_date(date):
            raise SourceError(f'{where}: "fetch_date" is {date[:40]!r}, no date in ISO 8601; write it as 2026-01-19T14:30:00Z')
        quality = values.get("quality", "")
        if quality and quality not in GRADES:
            raise SourceError(f'{where}: "quality" is {quality[:40]!r}; grades are A, B, C, D and E')
        url = resolved_doi(values["url"])
        graded = self._grade(where, url)  # even if the grade is not needed: this detects a wrong URL
        provided = self._given(*(name for name in ("title", "quality", "fetch_date") if values.get(name)))
        return SourceDocument(content.strip(), url, title, quality or self.quality or graded, date, provided)

    def _grade(self, where: str, url: str) -> str:
        try:
            return assess_source_quality(url, self.rules)
        except DependencyError:
            raise
        except InputError as error:
            raise SourceError(f"{where}: {error}") from None

    def _note(self, where: str, removed: Removed) -> None:
        if removed.suspicious:
            self.left_out.add("sources with text that readers do not see, which was omitted", f"{where}: {removed.describe()}")


# What a row of a manifest, or front matter, says of a source.


@dataclass(frozen=True)
class _Said:
    """Values of a source that a person wrote down; ``fetch_url`` is where it is to be fetched if it has no file."""

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
        return {name for name in ("title", "quality", "fetch_date") if getattr(self, name)}


def _said(fields: Mapping[str, str], metadata: Mapping[str, str], where: str) -> tuple[_Said, list[str]]:
    """Return what values by field say of a source, and what is wrong with them and left out."""
    faults = []
    kept = dict(metadata) | ({"date": fields["date"]} if fields.get("date") and fields.get("fetch_date") else {})
    grade, date = fields.get("quality", "").upper(), fields.get("fetch_date") or fields.get("date", "")
    if grade and grade not in GRADES:
        faults.append(f"{fields['quality'][:40]!r} is not a grade; grades are A, B, C, D and E")
        grade = ""
    if date and not is_date(date):
        faults.append(f"{date[:40]!r} is not a date in ISO 8601; write it as year-month-day, such as 2026-01-19")
        date = ""
    urls: dict[str, str] = {}
    for name in ("canonical", "doi", "url"):
        if not (address := fields.get(name, "")):
            continue
        if name == "doi":
            address = _DOI_BEFORE_URL.sub("", address.rstrip(".,;"))
        try:
            canonical, fault = canonical_url(address), ""
        except InputError as error:
            canonical, fault = "", str(error)
        if name == "doi" and not canonical.startswith("https://doi.org/10."):
            fault = "it is not a DOI such as 10.1000/182"
        if fault:
            faults.append(f"{name} {printable(address)[:80]!r}: {fault}")
        else:
            urls[name] = canonical if name == "doi" else resolved_doi(address)
    if "doi" in urls:
        kept["doi"] = unquote(urls["doi"].removeprefix("https://doi.org/"))
    url = urls.get("canonical") or urls.get("url") or urls.get("doi", "")
    aliases = tuple(address for address in dict.fromkeys(urls.values()) if address != url)
    return _Said(where, None, url, urls.get("url") or url, aliases, fields.get("title", ""), grade, date, kept), faults


def _manifest(path: Path, *, fetches: bool) -> list[_Said]:
    """Return the sources that a CSV file lists.

    A source is cited by its canonical URL, else its URL, else its DOI; the others are URLs of it, too.

    Raises:
        SourceError: rows are wrong; the message lists all that are.
    """
    listed, faults = read_manifest(path)
    rows = []
    by_url: dict[str, list[_Said]] = {}
    for one in listed:
        row, wrong = _said(one.fields, one.metadata, one.where)
        if one.file is not None:
            row = replace(row, file=one.file, url=row.url or one.file.as_uri())
        elif not one.fields.get("file") and not wrong:
            if not row.fetch_url:
                wrong.append("it names no file and no URL")
            elif not fetches:
                wrong.append("it names no file; add --fetch http to fetch its URL")
        faults += [f"{one.where}: {fault}" for fault in wrong]
        rows.append(row)
        if row.url:
            by_url.setdefault(canonical_url(row.url), []).append(row)
    for url, same in by_url.items():
        dates = [row.fetch_date for row in same]
        if len(same) > 1 and (len(set(dates)) < len(same) or not all(dates)):
            lines = " and ".join(row.where.rpartition(", ")[2] for row in same[:5])
            faults.append(f"{lines}: both are {url}; keep one, or give each the date of its version")
    for row in rows:
        for alias in map(canonical_url, row.aliases):
            if alias in by_url and alias != canonical_url(row.url):
                other = by_url[alias][0].where
                faults.append(f"{row.where}: {alias} leads to {row.url}, but is the URL of {other}; keep one of them")
    refuse_faults(path, faults)
    return rows


def _front_matter(values: Iterable[tuple[str, str]], where: str) -> tuple[_Said, list[str]]:
    """Return what front matter says, and what of it cannot be used."""
    read: dict[str, str] = {}
    wrong: list[str] = []
    fields: set[str] = set()
    named = dict(values)
    for name, value in named.items():
        is_address = name in ("url", "link", "canonical", "permalink", "source")  # often something else
        if is_address and not _URL.match(value):
            wrong += [f"url {printable(value)[:80]!r} is no web address; begin it with https://"] if name == "url" else []
            read[f"{name}_text"] = value
            continue
        own = "url" if name == "source" and is_address and not {"url", "link"} & named.keys() else name
        is_twice = field_of(own) in fields or field_of(own) == "file"
        read[f"{own}_text" if field_of(own) and is_twice else own] = value
        fields.add(field_of(own))
    one = described(read, where)
    said, faults = _said(one.fields, one.metadata, where)
    return said, faults + wrong
