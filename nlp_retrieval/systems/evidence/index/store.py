"""Sources of a project: texts by their content, and versions by URL and time of fetching.

A text is stored once however many URLs it has, and is live while it is the newest version of some URL; older ones stay.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, NamedTuple

import orjson

from nlp_retrieval.core import DatabaseFile, normalize, refuse_lone_surrogates
from nlp_retrieval.errors import IndexDamagedError, IndexLockedError, IndexWriteError, InputError
from nlp_retrieval.systems.evidence.grades import GRADES, assess_source_quality, check_grade
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage, normal_text, passage_spans
from nlp_retrieval.systems.evidence.index.urls import canonical_url, resolved_doi

# Dates of fetching, and the moments by which versions are ordered.


def moment_of(text: str) -> str:
    """Return the moment of an ISO 8601 date or time, in UTC, as text that sorts by time; of a date its beginning."""
    if not isinstance(text, str):
        raise InputError(f"a date is a string in ISO 8601 such as 2026-01-19, not {type(text).__name__}")
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text[:60]!r} is not a date in ISO 8601; write 2026-01-19 or 2026-01-19T14:30:00Z") from None
    return moment.isoformat(timespec="microseconds")


def now() -> str:
    """Return the present moment, in the form of :func:`moment_of`."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _after(moment: str) -> str:
    try:
        return (datetime.fromisoformat(moment) + timedelta(microseconds=1)).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        return moment


# New sources, and what is checked before anything of them is stored.

_LONGEST_TITLE = 500


@dataclass(frozen=True)
class SourceDocument:
    """A source as the index takes it; ``given`` names the values of a person, ``pages`` are numbers and where each begins."""

    content: str
    url: str
    title: str = ""
    quality: str = "C"
    fetch_date: str = ""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    pages: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)


def source_of(
    content: str, url: str, title: str = "", source_quality: str | None = None, fetch_date: str = ""
) -> SourceDocument:
    """Return a source that a person gave, in the form for storage, graded by its address if no grade is given."""
    values = {"quality": source_quality, "title": title, "fetch_date": fetch_date}
    given = frozenset(name for name, value in values.items() if value)
    grade = assess_source_quality(url) if source_quality is None else check_grade(source_quality, "source_quality")
    return normalized(SourceDocument(content, url, title, grade, fetch_date, given))


def normalized(source: SourceDocument) -> SourceDocument:
    """Return a source in the form for storage; this is idempotent."""
    canonical_url(source.url)
    check_grade(source.quality, "quality")
    if source.fetch_date != "":
        moment_of(source.fetch_date)
    title, text = normal_title(source.title), normal_text(source.content)
    given = source.given if title else source.given - {"title"}
    pages = _pages(source, text)
    return replace(source, content=text, url=resolved_doi(source.url), title=title, given=given, pages=pages)


def _pages(source: SourceDocument, text: str) -> tuple[tuple[int, int], ...]:
    """Return the pages of a source by their beginnings in the stored text; none if a page is not found in it."""
    pages: list[tuple[int, int]] = []
    begin = 0
    for (number, start), (_, end) in pairwise([*source.pages, (0, len(source.content))]):
        page = "\n".join(line.rstrip() for line in normalize("NFC", source.content[start:end]).strip().split("\n"))
        at = text.find(page, begin)
        if at < 0:
            return ()
        pages.append((number, at))
        begin = at + len(page)
    return tuple(pages)


def normal_title(title: str) -> str:
    """Return a title in one line of at most 500 characters."""
    if not isinstance(title, str):
        raise InputError(f"a title is a string, not {type(title).__name__}")
    refuse_lone_surrogates(title, "the title", InputError)
    return " ".join(normalize("NFC", title).replace("\0", " ").split())[:_LONGEST_TITLE].rstrip()


@dataclass(frozen=True)
class SourceVersion:
    """One text under one URL, from a moment on; its key is the first characters of its SHA-256, its pages are counted."""

    key: str
    url: str
    title: str
    quality: str
    fetch_date: str
    passage_count: int
    pages: int = 0
    version_count: int = 1
    sha256: str = ""
    canonical: str = ""
    moment: str = ""
    newest: bool = True


class StoredText(NamedTuple):
    """A text by its SHA-256, the spans of its passages, and the numbers of its pages with where each begins."""

    sha256: str
    content: str
    spans: list[tuple[int, int]]
    pages: list[tuple[int, int]]

    def passage(
        self, source: SourceVersion, span: tuple[int, int], score: float = 0.0, signals: Mapping[str, float] | None = None
    ) -> EvidencePassage:
        """Return a passage in the form that users see."""
        (start, end), begins = span, itemgetter(1)
        on = self.pages[max(0, bisect_right(self.pages, start, key=begins) - 1) : bisect_left(self.pages, end, key=begins)]
        return EvidencePassage(
            content=self.content[start:end],
            url=source.url,
            title=source.title,
            quality=source.quality,
            fetch_date=source.fetch_date,
            score=score,
            key=source.key,
            start=start,
            end=end,
            signals=dict(signals or {}),
            pages=[number for number, _ in on],
            page_breaks=[begin - start for _, begin in on[1:]],
        )


class EvidenceDatabase(DatabaseFile):
    """The file of a project's sources."""

    tables: ClassVar[Mapping[str, str]] = {
        "texts": "CREATE TABLE texts (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, key TEXT NOT NULL UNIQUE, "
        "content TEXT NOT NULL, passage_count INTEGER NOT NULL, spans TEXT NOT NULL, pages TEXT NOT NULL, "
        "last_page INTEGER NOT NULL)",
        "versions": "CREATE TABLE versions (id INTEGER PRIMARY KEY, canonical TEXT NOT NULL, moment TEXT NOT NULL, "
        "text_id INTEGER NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, quality TEXT NOT NULL, "
        "fetch_date TEXT NOT NULL, given TEXT NOT NULL)",
        "versions_by_url": "CREATE INDEX versions_by_url ON versions (canonical, moment, id)",
        "versions_by_text": "CREATE INDEX versions_by_text ON versions (text_id)",
        "deleted": "CREATE TABLE deleted (canonical TEXT PRIMARY KEY) WITHOUT ROWID",
        "counters": "CREATE TABLE counters (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
    }
    application: ClassVar[int] = 0x6E6C7265
    version: ClassVar[int] = 8
    remedy: ClassVar[str] = "add the sources again"


_VERSION = (
    "SELECT t.key, v.url, v.title, v.quality, v.fetch_date, t.passage_count, t.last_page, "
    "(SELECT count(*) FROM versions n WHERE n.canonical = v.canonical), t.sha256, v.canonical, v.moment, "
    "NOT EXISTS (SELECT 1 FROM versions n WHERE n.canonical = v.canonical AND (n.moment, n.id) > (v.moment, v.id)) "
    "FROM versions v JOIN texts t ON t.id = v.text_id"
)
_TYPES = (str, str, str, str, str, int, int, int, str, str, str, int)


class EvidenceStore:
    """The sources of one project."""

    shortest_key = 12
    """Characters of a shown key; as many more as it takes to be unique."""

    def __init__(self, path: Path) -> None:
        self.database = EvidenceDatabase(path)

    def add(self, source: SourceDocument) -> bool:
        """Add a source in the form for storage, as ``EvidenceIndex.add_document`` says; return whether it is a new version."""
        canonical, spans = canonical_url(source.url), passage_spans(source.content)
        with self.database.changing() as connection:
            text = self._text_id(connection, source, spans)
            connection.execute("DELETE FROM deleted WHERE canonical = ?", (canonical,))
            history = connection.execute(
                "SELECT id, text_id, moment, title, quality, fetch_date, given FROM versions WHERE canonical = ? "
                "ORDER BY moment, id",
                (canonical,),
            ).fetchall()
            if source.fetch_date and "fetch_date" in source.given:
                moment = moment_of(source.fetch_date)
            else:
                moment = max([now(), *(_after(row[2]) for row in history[-1:])])
            before, after = [row for row in history if row[2] <= moment], [row for row in history if row[2] > moment]
            same = [row for row in (*before[-1:], *after[:1]) if row[1] == text][:1]
            title, quality, fetch_date = source.title, source.quality, source.fetch_date
            given = source.given & {"title", "quality"}
            for _, _, _, known_title, known_quality, _, known in same or before[-1:]:
                stays = set(known.split()) - source.given
                title = known_title if not title or "title" in stays else title
                quality = known_quality if "quality" in stays else quality
                given |= stays
            if not same:
                connection.execute(
                    "INSERT INTO versions (canonical, moment, text_id, url, title, quality, fetch_date, given) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (canonical, moment, text, source.url, title, quality, fetch_date, " ".join(sorted(given))),
                )
                return True
            ((version, _, _, _, _, kept, _),) = same
            if not fetch_date or (kept and moment_of(kept) >= moment):
                fetch_date = kept
            connection.execute(
                "UPDATE versions SET moment = min(moment, ?), title = ?, quality = ?, fetch_date = ?, given = ? WHERE id = ?",
                (moment, title, quality, fetch_date, " ".join(sorted(given)), version),
            )
        return False

    def _text_id(self, connection: sqlite3.Connection, source: SourceDocument, spans: Sequence[tuple[int, int]]) -> int:
        sha256 = hashlib.sha256(source.content.encode()).hexdigest()
        known = connection.execute("SELECT id FROM texts WHERE sha256 = ?", (sha256,)).fetchone()
        if known is not None:
            if source.pages:
                connection.execute(
                    "UPDATE texts SET pages = ?, last_page = ? WHERE id = ?",
                    (json.dumps(source.pages), source.pages[-1][0], known[0]),
                )
            return int(known[0])
        key = next(
            sha256[:length]
            for length in range(self.shortest_key, len(sha256) + 1)
            if connection.execute("SELECT 1 FROM texts WHERE key = ?", (sha256[:length],)).fetchone() is None
        )
        last_page = source.pages[-1][0] if source.pages else 0
        added = connection.execute(
            "INSERT INTO texts (sha256, key, content, passage_count, spans, pages, last_page) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (sha256, key, source.content, len(spans), json.dumps(spans), json.dumps(source.pages), last_page),
        )
        return int(added.lastrowid or 0)

    def delete(self, canonical: str) -> int:
        """Delete all versions of a URL, and the texts that are left without a URL; return the number of versions."""
        if not self.versions(canonical):
            return 0
        with self.database.changing() as connection:
            texts = connection.execute("SELECT DISTINCT text_id FROM versions WHERE canonical = ?", (canonical,)).fetchall()
            count = connection.execute("DELETE FROM versions WHERE canonical = ?", (canonical,)).rowcount
            for text in texts:
                connection.execute(
                    "DELETE FROM texts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM versions WHERE text_id = ?1)", text
                )
            connection.execute("INSERT OR REPLACE INTO deleted VALUES (?)", (canonical,))
        return count

    def deleted(self) -> set[str]:
        """Return the URLs that had versions which were deleted, and have none now."""
        return {str(canonical) for (canonical,) in self.database.rows("SELECT canonical FROM deleted")}

    def versions(self, canonical: str) -> list[SourceVersion]:
        """Return the versions of a URL, oldest first."""
        return self._versions("WHERE v.canonical = ? ORDER BY v.moment, v.id", canonical)

    def all_versions(self) -> list[SourceVersion]:
        """Return every version of every URL, in the order of adding."""
        return self._versions("ORDER BY v.id")

    def texts(self, key: str | None = None) -> dict[str, SourceVersion]:
        """Return how texts are shown, by their SHA-256: as the first of their newest versions, with the best grade of these."""
        by_text: dict[str, list[SourceVersion]] = {}
        for version in self.all_versions() if key is None else self.versions_of(key):
            by_text.setdefault(version.sha256, []).append(version)
        shown = {}
        for sha256, of_text in by_text.items():
            live = [version for version in of_text if version.newest] or of_text
            shown[sha256] = replace(live[0], quality=min(version.quality for version in live))
        return shown

    def versions_of(self, key: str) -> list[SourceVersion]:
        """Return the versions that have a text, by its key or SHA-256, in the order of adding."""
        return self._versions("WHERE t.key = ?1 OR t.sha256 = ?1 ORDER BY v.id", key)

    def _versions(self, rest: str, *values: str) -> list[SourceVersion]:
        rows = self.database.rows(f"{_VERSION} {rest}", values)
        if any(tuple(map(type, row)) != _TYPES or row[3] not in GRADES for row in rows):
            raise self._damaged("it holds a version that this package did not write")
        return [SourceVersion(*[*columns, bool(newest)]) for *columns, newest in rows]

    def stored(self, key: str) -> StoredText | None:
        """Return the text with a shown key, or with this SHA-256, which it matches; None if there is none."""
        rows = self.database.rows("SELECT sha256, content, spans, pages FROM texts WHERE key = ?1 OR sha256 = ?1", (key,))
        if not rows:
            return None
        sha256, content, spans, pages = rows[0]
        if not isinstance(content, str) or hashlib.sha256(content.encode()).hexdigest() != sha256:
            raise self._damaged(f"the text {str(sha256)[:12]} does not match its checksum")
        return StoredText(str(sha256), content, self._pairs(sha256, spans), self._pairs(sha256, pages))

    def spans(self) -> dict[str, list[tuple[int, int]]]:
        """Return the spans of the passages of all texts, by the SHA-256, in order."""
        rows = self.database.rows("SELECT sha256, spans FROM texts ORDER BY id")
        return {sha256: self._pairs(sha256, spans) for sha256, spans in rows}

    def _pairs(self, sha256: object, written: object) -> list[tuple[int, int]]:
        try:
            pairs = orjson.loads(str(written))
            if all(type(number) is int and number >= 0 for pair in pairs for number in pair):
                return [(first, second) for first, second in pairs]
        except (ValueError, TypeError):
            pass
        raise self._damaged(f"a passage or page of the text {str(sha256)[:12]} begins or ends nowhere")

    def count_searches(self, searches: Iterable[tuple[int, float]]) -> None:
        """Count searches by their number of results and the relevance of the first, unless the project cannot be written to."""
        if not self.database.path.exists():  # looking creates nothing
            return
        add = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        with suppress(IndexWriteError, IndexLockedError), self.database.changing(durable=False) as connection:
            for n_results, relevance in searches:
                counted = {"queries": 1, "results": n_results, "without": not n_results, "relevance": relevance}
                connection.executemany(add, [(name, float(value)) for name, value in counted.items()])

    def searches(self) -> dict[str, float]:
        """Return the counts so far: "queries", "results", "without" results, and the sum of the "relevance"."""
        counts = {"queries": 0.0, "results": 0.0, "without": 0.0, "relevance": 0.0}
        return counts | dict(self.database.rows("SELECT name, value FROM counters"))

    def _damaged(self, what: str) -> IndexDamagedError:
        return IndexDamagedError(
            f"{self.database.path}: {what}; put back a copy of it, or move it away and add the sources again"
        )
