"""Sources of a project: texts by their content, and versions by URL and time of fetching.

A text is stored once however many URLs it has. The versions of a URL are ordered by when they were fetched (or added, if that
is unknown), and only the newest is searched: a text is live while it is the newest version of some URL. Older versions stay,
and can be cited by date.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

from nlp_retrieval.core import DatabaseRow, normalize, parse_json, refuse_lone_surrogates
from nlp_retrieval.errors import IndexDamagedError, InputError, ItemError, QueryError, nearest
from nlp_retrieval.systems.evidence.grades import GRADES, QualityRules, assess_source_quality, check_grade
from nlp_retrieval.systems.evidence.index.database import EvidenceDatabase
from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans
from nlp_retrieval.systems.evidence.index.urls import anchor_of, canonical_url, resolved_doi
from nlp_retrieval.systems.evidence.reading.document import SourceDocument

# Dates of fetching: parsing them, and the moments by which versions are ordered.


def moment_of(text: str, *, last: bool = False) -> str:
    """Return the moment of an ISO 8601 date or time, in UTC, as text that sorts by time.

    Args:
        text: "2026-01-19", "2026-01-19T14:30:00Z"; without an offset it is UTC.
        last: for a date without a time, return the end of that day, else its beginning.

    Raises:
        InputError: it is not such a date.
    """
    if not isinstance(text, str):
        raise InputError(f"a date is a string in ISO 8601 such as 2026-01-19, not {type(text).__name__}")
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        if last and _is_date(text):
            moment += timedelta(days=1, microseconds=-1)
    except (ValueError, OverflowError):
        raise InputError(f"{text[:60]!r} is not a date in ISO 8601; write 2026-01-19 or 2026-01-19T14:30:00Z") from None
    return _written(moment)


def now() -> str:
    """Return the present moment, in the form of :func:`moment_of`."""
    return _written(datetime.now(UTC))


def after(moment: str) -> str:
    """Return the moment after a moment in the form of :func:`moment_of`, or the same if there is none."""
    try:
        return _written(datetime.fromisoformat(moment) + timedelta(microseconds=1))
    except (ValueError, OverflowError):
        return moment


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


# Checks of new sources before anything is stored.

FIELDS = ("content", "url", "title", "source_quality", "fetch_date")
"""The fields of a document."""

_NEEDED = ("content", "url")
_LONGEST_TITLE = 500


def checked_source(
    content: str,
    url: str,
    title: str = "",
    source_quality: str | None = None,
    fetch_date: str = "",
    rules: QualityRules | None = None,
) -> NewSource:
    """Return a source in the form for storage.

    Raises:
        InputError: a value cannot be used.
    """
    canonical = canonical_url(url)
    url = resolved_doi(url)
    if source_quality is None:
        grade: str = assess_source_quality(url, rules)
    else:
        grade = check_grade(source_quality, "source_quality")
    shown = _title(title)
    provided = {name for name, value in (("quality", source_quality), ("title", shown)) if value}
    moment = "" if fetch_date == "" else moment_of(fetch_date)
    anchor = anchor_of(url)
    return NewSource(normal_text(content), canonical, url, shown, grade, fetch_date, moment, frozenset(provided), anchor)


def read_source(document: SourceDocument) -> NewSource:
    """Return a source that was read from a file or a page, in the form for storage.

    Raises:
        InputError: it cannot be used.
    """
    source = checked_source(document.content, document.url, document.title, document.quality, document.fetch_date)
    moment = source.moment if "fetch_date" in document.given else ""
    return replace(
        source,
        given=source.given & document.given,
        moment=moment,
        pages=_pages(document, source.text),
        metadata=dict(document.metadata),
    )


def _pages(document: SourceDocument, text: str) -> tuple[tuple[int, int], ...]:
    """Return the pages of a source by their beginnings in the stored text; none if a page is not found in it."""
    pages: list[tuple[int, int]] = []
    begin = 0
    if not document.pages:
        return ()
    ends = [start for _, start in document.pages[1:]] + [len(document.content)]
    for (number, start), end in zip(document.pages, ends, strict=True):
        page = "\n".join(line.rstrip() for line in normal_line(document.content[start:end]).split("\n"))
        at = text.find(page, begin)
        if at < 0:
            return ()
        pages.append((number, at))
        begin = at + len(page)
    return tuple(pages)


def checked_document(document: object, rules: QualityRules | None = None) -> NewSource:
    """Return a source that is a mapping from :data:`FIELDS` to strings.

    Raises:
        InputError: it is not a mapping, lacks its content or URL, or has another field.
    """
    if not isinstance(document, Mapping):
        raise ItemError(f'a document is a mapping such as {{"content": ..., "url": ...}}, not {type(document).__name__}')
    for name in document:
        if name not in FIELDS:
            raise ItemError(f"there is no field {str(name)[:40]!r}; {nearest(str(name)[:40], FIELDS)}")
    if lacking := [field for field in _NEEDED if field not in document]:
        raise ItemError(f'the field "{lacking[0]}" is missing (found: {", ".join(document) or "none"})')
    return checked_source(**document, rules=rules)


def normal_line(text: str) -> str:
    """Return a piece of text in the form of a stored text."""
    return normalize("NFC", text).strip()


def checked_title(title: str) -> str:
    """Return a title that a person gave, in the form for storage.

    Raises:
        InputError: it is empty, or not a string.
    """
    shown = _title(title)
    if not shown:
        raise InputError("the title is empty; write one")
    return shown


def _title(title: str) -> str:
    if not isinstance(title, str):
        raise InputError(f"a title is a string, not {type(title).__name__}")
    refuse_lone_surrogates(title, "the title", InputError)
    return " ".join(normalize("NFC", title).replace("\0", " ").split())[:_LONGEST_TITLE].rstrip()


_VERSION = (
    "SELECT t.sha256, t.key, t.passage_count, v.canonical, v.url, v.title, v.quality, v.fetch_date, v.id, v.moment, "
    "NOT EXISTS (SELECT 1 FROM versions n WHERE n.canonical = v.canonical AND (n.moment, n.id) > (v.moment, v.id)) "
    "FROM versions v JOIN texts t ON t.id = v.text_id"
)
_SPANS = "SELECT t.sha256, p.start, p.stop FROM passages p JOIN texts t ON t.id = p.text_id"
_TYPES = (str, str, int, str, str, str, str, str, int, str, int)
_MOST_VALUES = 500


@dataclass(frozen=True)
class NewSource:
    """A checked source to be added.

    Args:
        text: normalised.
        canonical: form of the URL.
        url: as it was given.
        title: of the page; may be empty.
        quality: its grade.
        fetch_date: as it was given; may be empty.
        moment: when it was fetched, if a person said so; else empty, and it counts as the newest version.
        given: its values that came from a person, not from a rule or page: "quality", "title", both or none.
        anchor: the fragment of the URL, ``#place``; may be empty.
        pages: numbers of its pages, and where each begins in the text.
        metadata: more about it, text by name.
    """

    text: str
    canonical: str
    url: str
    title: str
    quality: str
    fetch_date: str
    moment: str
    given: frozenset[str] = frozenset()
    anchor: str = ""
    pages: tuple[tuple[int, int], ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One value of a source that a person changed.

    Args:
        date: when, ISO 8601, in UTC.
        field: "title", "quality" or "fetch_date".
        before: the value until then.
        after: the value from then on.
    """

    date: str
    field: str
    before: str
    after: str


@dataclass(frozen=True)
class StoredVersion:
    """One text under one URL, from a moment on. ``number`` is the order of adding; ``newest``: no version is later."""

    sha256: str
    key: str
    passage_count: int
    canonical: str
    url: str
    title: str
    quality: str
    fetch_date: str
    number: int
    moment: str
    newest: bool


@dataclass(frozen=True)
class StoredText:
    """One text, for results.

    Args:
        first: the first added of its live versions, or of all if none is live.
        quality: the best grade among its live versions.
        live: whether it is the newest version of some URL.
        urls: canonical forms of all URLs that ever had it, in the order of adding.
    """

    first: StoredVersion
    quality: str
    live: bool
    urls: tuple[str, ...]

    @property
    def shown(self) -> StoredVersion:
        """Return the first version, with the best grade."""
        return replace(self.first, quality=self.quality)


class EvidenceStore:
    """The sources of one project."""

    shortest_key = 12
    """Characters of a shown key; as many more as it takes to be unique."""

    def __init__(self, path: Path) -> None:
        self.database = EvidenceDatabase(path)

    def add(self, source: NewSource) -> bool:
        """Add a source, and return whether the URL got a new version.

        If the URL had this text at that time already, or has it next, only its title (unless empty), grade and date (unless
        older or empty) are updated. A value given by a person stays until a person gives another, for a new text of the URL
        too. A source without a date is the newest of its URL, whatever the clock says. Two fragments of one page (``#a``,
        ``#b``) with different texts are two sources.
        """
        sha256 = hashlib.sha256(source.text.encode()).hexdigest()
        spans = passage_spans(source.text)  # before the transaction, which other processes wait for
        with self.database.changing() as connection:
            text = self._text_id(connection, sha256, source.text, spans)
            connection.executemany(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", ((text, number, start) for number, start in source.pages)
            )
            source = _placed(connection, source, text)
            source = _dated(connection, source)
            connection.execute("DELETE FROM deleted WHERE canonical = ?", (source.canonical,))
            here = "SELECT id, text_id, moment FROM versions WHERE canonical = ? AND moment"
            before = connection.execute(f"{here} <= ? ORDER BY moment DESC, id DESC LIMIT 1", (source.canonical, source.moment))
            after = connection.execute(f"{here} > ? ORDER BY moment, id LIMIT 1", (source.canonical, source.moment))
            same = next((row for row in (before.fetchone(), after.fetchone()) if row is not None and row[1] == text), None)
            if same is not None:
                _refresh(connection, same[0], source)
                _describe(connection, same[0], source.metadata)
                return False
            source = _kept(connection, source)
            provided = " ".join(sorted(source.given))
            version = connection.execute(
                "INSERT INTO versions (canonical, moment, text_id, url, title, quality, fetch_date, given) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (source.canonical, source.moment, text, source.url, source.title, source.quality, source.fetch_date, provided),
            ).lastrowid
            _describe(connection, int(version or 0), source.metadata)
        return True

    def edit(self, canonical: str, values: Mapping[str, str]) -> list[Change]:
        """Change values of the newest version of a URL, and return those that changed; each stays in the history.

        Args:
            canonical: form of the URL.
            values: by "title", "quality" or "fetch_date", checked; such a title and grade stay for new versions.

        Raises:
            QueryError: the URL has no version.
        """
        with self.database.changing() as connection:
            newest = connection.execute(
                "SELECT id, given, title, quality, fetch_date FROM versions WHERE canonical = ? "
                "ORDER BY moment DESC, id DESC LIMIT 1",
                (canonical,),
            ).fetchone()
            if newest is None:
                raise QueryError(f"no text is stored under {canonical[:200]!r}; nothing was changed")
            version, given, *before = newest
            stored = dict(zip(("title", "quality", "fetch_date"), before, strict=True))
            moment = now()
            changes = [Change(moment, name, stored[name], value) for name, value in values.items() if stored[name] != value]
            for change in changes:
                connection.execute(
                    "INSERT INTO changes (canonical, moment, field, before, after) VALUES (?, ?, ?, ?, ?)",
                    (canonical, moment, change.field, change.before, change.after),
                )
                if change.field == "fetch_date" and change.after:
                    connection.execute("UPDATE versions SET moment = ? WHERE id = ?", (moment_of(change.after), version))
            provided = set(given.split()) | (values.keys() & {"title", "quality"})
            connection.execute(
                "UPDATE versions SET title = ?, quality = ?, fetch_date = ?, given = ? WHERE id = ?",
                (*(stored | dict(values)).values(), " ".join(sorted(provided)), version),
            )
        return changes

    def changes(self, canonical: str) -> list[Change]:
        """Return what people changed of a URL's source, oldest first."""
        select = "SELECT moment, field, before, after FROM changes WHERE canonical = ? ORDER BY id"
        return [Change(*map(str, row)) for row in self.database.rows(select, (canonical,))]

    def details(self, numbers: Iterable[int]) -> dict[int, dict[str, str]]:
        """Return what more is known of some versions, by their number."""
        rows = self._selected("SELECT version_id, content FROM details WHERE version_id", numbers)
        return {int(number): _metadata(content) for number, content in rows}

    def pages(self, sha256: str) -> list[tuple[int, int]]:
        """Return the numbers of a text's pages, and where each begins in it; empty if it has none."""
        select = "SELECT p.number, p.start FROM pages p JOIN texts t ON t.id = p.text_id WHERE t.sha256 = ?"
        pages = self.database.rows(f"{select} ORDER BY p.start, p.number", (sha256,))
        if any(type(value) is not int for page in pages for value in page):
            raise self._damaged("a page of a text begins nowhere")
        return [(number, start) for number, start in pages]

    def page_counts(self, sha256s: Iterable[str]) -> dict[str, int]:
        """Return the last page number of those of some texts that have pages, by their SHA-256."""
        select = "SELECT t.sha256, max(p.number) FROM pages p JOIN texts t ON t.id = p.text_id WHERE t.sha256"
        return {str(sha256): int(number) for sha256, number in self._selected(select, sha256s, "GROUP BY p.text_id")}

    def version_counts(self, canonicals: Iterable[str]) -> dict[str, int]:
        """Return the number of versions of some URLs."""
        rows = self._selected("SELECT canonical, count(*) FROM versions WHERE canonical", canonicals, "GROUP BY canonical")
        return {str(canonical): int(count) for canonical, count in rows}

    def delete(self, canonical: str) -> int:
        """Delete all versions of a URL, and the texts that are left without a URL; return the number of versions."""
        if not self.versions(canonical):
            return 0
        with self.database.changing() as connection:
            texts = connection.execute("SELECT DISTINCT text_id FROM versions WHERE canonical = ?", (canonical,)).fetchall()
            connection.execute(
                "DELETE FROM details WHERE version_id IN (SELECT id FROM versions WHERE canonical = ?)", (canonical,)
            )
            connection.execute("DELETE FROM changes WHERE canonical = ?", (canonical,))
            count = connection.execute("DELETE FROM versions WHERE canonical = ?", (canonical,)).rowcount
            for text in texts:
                if connection.execute("SELECT 1 FROM versions WHERE text_id = ? LIMIT 1", text).fetchone() is None:
                    connection.execute("DELETE FROM passages WHERE text_id = ?", text)
                    connection.execute("DELETE FROM pages WHERE text_id = ?", text)
                    connection.execute("DELETE FROM texts WHERE id = ?", text)
            if count:
                connection.execute("INSERT OR REPLACE INTO deleted VALUES (?, ?)", (canonical, now()))
        return count

    def was_deleted(self, canonical: str) -> bool:
        """Return whether a URL had versions that were deleted, and has none now."""
        return bool(self.database.rows("SELECT 1 FROM deleted WHERE canonical = ?", (canonical,)))

    def any_deleted(self) -> bool:
        """Return whether some URL had versions that were deleted, and has none now."""
        return bool(self.database.rows("SELECT 1 FROM deleted LIMIT 1"))

    def versions(self, canonical: str) -> list[StoredVersion]:
        """Return the versions of a URL, oldest first."""
        rows = self.database.rows(f"{_VERSION} WHERE v.canonical = ? ORDER BY v.moment, v.id", (canonical,))
        return _versions(rows)

    def at_place(self, canonical: str, anchor: str) -> str:
        """Return the URL under which the text of a place in a page is stored: its own, or that of the page."""
        own = canonical + anchor
        return own if anchor and self.database.rows("SELECT 1 FROM versions WHERE canonical = ? LIMIT 1", (own,)) else canonical

    def newest_at(self, canonicals: Sequence[str]) -> list[str]:
        """Return the SHA-256 of the texts that are the newest versions of some URLs."""
        return [version.sha256 for version in self._among("v.canonical", canonicals) if version.newest]

    def all_versions(self) -> list[StoredVersion]:
        """Return every version of every URL, in the order of adding."""
        return _versions(self.database.rows(f"{_VERSION} ORDER BY v.id"))

    def texts(self, sha256s: Iterable[str] | None = None) -> dict[str, StoredText]:
        """Return texts for results, by their SHA-256."""
        if sha256s is None:
            return _texts(self.all_versions())
        return _texts(self._among("t.sha256", sha256s))

    def sha256_of(self, key: str) -> str | None:
        """Return the SHA-256 of the text with a shown key, or with this SHA-256; None if there is none."""
        rows = self.database.rows("SELECT sha256 FROM texts WHERE key = ? OR sha256 = ?", (key, key))
        return None if not rows else str(rows[0][0])

    def content(self, sha256: str) -> str | None:
        """Return a text; None if it does not exist.

        Raises:
            IndexDamagedError: it does not match its SHA-256.
        """
        rows = self.database.rows("SELECT content FROM texts WHERE sha256 = ?", (sha256,))
        if not rows:
            return None
        content = rows[0][0]
        if not isinstance(content, str) or hashlib.sha256(content.encode()).hexdigest() != sha256:
            raise self._damaged(f"the text {sha256[:12]} does not match its checksum")
        return content

    def spans(self, sha256: str | None = None) -> dict[str, list[tuple[int, int]]]:
        """Return the spans of the passages by the SHA-256 of their text, in order."""
        values = () if sha256 is None else (sha256,)
        of_one = "WHERE t.sha256 = ? " if values else ""
        spans: dict[str, list[tuple[int, int]]] = {}
        for text, start, end in self.database.rows(f"{_SPANS} {of_one}ORDER BY p.text_id, p.number", values):
            if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end):
                raise self._damaged(f"a passage of the text {str(text)[:12]} begins or ends nowhere")
            spans.setdefault(text, []).append((start, end))
        return spans

    def _among(self, column: Literal["t.sha256", "v.canonical"], values: Iterable[str]) -> list[StoredVersion]:
        """Return versions with one of some values."""
        return _versions(self._selected(f"{_VERSION} WHERE {column}", values, "ORDER BY v.id"))

    def _selected(self, select: str, values: Iterable[object], rest: str = "") -> list[DatabaseRow]:
        """Return the rows of a statement whose last column is one of some values."""
        wanted = list(dict.fromkeys(values))
        rows: list[DatabaseRow] = []
        for begin in range(0, len(wanted), _MOST_VALUES):
            part = wanted[begin : begin + _MOST_VALUES]
            rows += self.database.rows(f"{select} IN ({', '.join('?' * len(part))}) {rest}", part)
        return rows

    def _text_id(self, connection: sqlite3.Connection, sha256: str, text: str, spans: list[tuple[int, int]]) -> int:
        known = connection.execute("SELECT id FROM texts WHERE sha256 = ?", (sha256,)).fetchone()
        if known is not None:
            return int(known[0])
        key = next(
            sha256[:length]
            for length in range(self.shortest_key, len(sha256) + 1)
            if connection.execute("SELECT 1 FROM texts WHERE key = ?", (sha256[:length],)).fetchone() is None
        )
        number = connection.execute(
            "INSERT INTO texts (sha256, key, content, passage_count) VALUES (?, ?, ?, ?)", (sha256, key, text, len(spans))
        ).lastrowid
        connection.executemany(
            "INSERT INTO passages VALUES (?, ?, ?, ?)", ((number, position, *span) for position, span in enumerate(spans))
        )
        return int(number or 0)

    def _damaged(self, what: str) -> IndexDamagedError:
        return IndexDamagedError(
            f"{self.database.path}: {what}; put back a copy of it, or move it away and add the sources again"
        )


def _placed(connection: sqlite3.Connection, source: NewSource, text: int) -> NewSource:
    """Give a fragment of a page a source of its own if another fragment has another text."""
    query = "SELECT text_id, url FROM versions WHERE canonical = ? ORDER BY moment DESC, id DESC LIMIT 1"
    own = source.canonical + source.anchor
    if source.anchor and connection.execute(query, (own,)).fetchone() is not None:
        return replace(source, canonical=own)
    row = connection.execute(query, (source.canonical,)).fetchone()
    if row is None or row[0] == text:
        return source
    return source if anchor_of(row[1]) == source.anchor or not source.anchor else replace(source, canonical=own)


def _dated(connection: sqlite3.Connection, source: NewSource) -> NewSource:
    """Give an undated source the present moment, or the next one after all versions of its URL."""
    if source.moment:
        return source
    (newest,) = connection.execute("SELECT max(moment) FROM versions WHERE canonical = ?", (source.canonical,)).fetchone()
    return replace(source, moment=max(now(), (newest and after(newest)) or ""))


def _kept(connection: sqlite3.Connection, source: NewSource) -> NewSource:
    """Keep the values that a person gave for the version before."""
    select = (
        "SELECT title, quality, given FROM versions WHERE canonical = ? AND moment <= ? ORDER BY moment DESC, id DESC LIMIT 1"
    )
    before = connection.execute(select, (source.canonical, source.moment)).fetchone()
    provided = set() if before is None else set(before[2].split())
    if "quality" in provided - source.given:
        source = replace(source, quality=before[1], given=source.given | {"quality"})
    if before is not None and ("title" in provided - source.given or not source.title):
        source = replace(source, title=before[0], given=source.given | (provided & {"title"}))
    return source


def _refresh(connection: sqlite3.Connection, version: int, source: NewSource) -> None:
    title, quality, given_before = connection.execute(
        "SELECT title, quality, given FROM versions WHERE id = ?", (version,)
    ).fetchone()
    provided = set(given_before.split())
    if source.title and ("title" in source.given or "title" not in provided):
        title = source.title
    if "quality" in source.given or "quality" not in provided:
        quality = source.quality
    connection.execute(
        "UPDATE versions SET quality = ?, moment = min(moment, ?), title = ?, given = ? WHERE id = ?",
        (quality, source.moment, title, " ".join(sorted(provided | source.given)), version),
    )
    if source.fetch_date:
        (dated,) = connection.execute("SELECT fetch_date FROM versions WHERE id = ?", (version,)).fetchone()
        if not dated or moment_of(dated) < source.moment:
            connection.execute("UPDATE versions SET fetch_date = ? WHERE id = ?", (source.fetch_date, version))


def _describe(connection: sqlite3.Connection, version: int, metadata: Mapping[str, str]) -> None:
    """Store more values of a version; those it has stay unless given again."""
    if not metadata:
        return
    known = connection.execute("SELECT content FROM details WHERE version_id = ?", (version,)).fetchone()
    content = (_metadata(known[0]) if known is not None else {}) | dict(metadata)
    connection.execute("INSERT OR REPLACE INTO details VALUES (?, ?)", (version, json.dumps(content, ensure_ascii=False)))


def _metadata(content: object) -> dict[str, str]:
    try:
        values = parse_json(str(content).encode())
    except ValueError:
        values = None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise IndexDamagedError("the database of sources holds details that this package did not write; it was tampered with")
    return {str(name): str(value) for name, value in values.items()}


def _versions(rows: list[DatabaseRow]) -> list[StoredVersion]:
    for row in rows:
        if tuple(map(type, row)) != _TYPES or row[6] not in GRADES:
            raise IndexDamagedError(
                "the database of sources holds a version that this package did not write; it was tampered with"
            )
    return [StoredVersion(*(*row[:-1], bool(row[-1]))) for row in rows]


def _texts(versions: list[StoredVersion]) -> dict[str, StoredText]:
    by_text: dict[str, list[StoredVersion]] = {}
    for version in versions:
        by_text.setdefault(version.sha256, []).append(version)
    texts = {}
    for sha256, of_text in by_text.items():
        live = [version for version in of_text if version.newest]
        shown = live or of_text
        urls = tuple(dict.fromkeys(version.canonical for version in of_text))
        texts[sha256] = StoredText(shown[0], min(version.quality for version in shown), bool(live), urls)
    return texts
