"""The file of a project's sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nlp_retrieval.core import DatabaseFile

__all__ = ["EvidenceDatabase"]

_TABLES = {
    "texts": "CREATE TABLE texts (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, key TEXT NOT NULL UNIQUE, "
    "content TEXT NOT NULL, passage_count INTEGER NOT NULL)",
    "passages": "CREATE TABLE passages (text_id INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, "
    "stop INTEGER NOT NULL, PRIMARY KEY (text_id, number)) WITHOUT ROWID",
    "versions": "CREATE TABLE versions (id INTEGER PRIMARY KEY, canonical TEXT NOT NULL, moment TEXT NOT NULL, "
    "text_id INTEGER NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, quality TEXT NOT NULL, fetch_date TEXT NOT NULL, "
    "given TEXT NOT NULL DEFAULT '')",
    "versions_by_url": "CREATE INDEX versions_by_url ON versions (canonical, moment, id)",
    "versions_by_text": "CREATE INDEX versions_by_text ON versions (text_id)",
    "deleted": "CREATE TABLE deleted (canonical TEXT PRIMARY KEY, moment TEXT NOT NULL) WITHOUT ROWID",
    "counters": "CREATE TABLE counters (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
    "asked": "CREATE TABLE asked (sha256 BLOB PRIMARY KEY) WITHOUT ROWID",
    "pages": "CREATE TABLE pages (text_id INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, "
    "PRIMARY KEY (text_id, number)) WITHOUT ROWID",
    "details": "CREATE TABLE details (version_id INTEGER PRIMARY KEY, content TEXT NOT NULL)",
    "changes": "CREATE TABLE changes (id INTEGER PRIMARY KEY, canonical TEXT NOT NULL, moment TEXT NOT NULL, "
    "field TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL)",
    "changes_by_url": "CREATE INDEX changes_by_url ON changes (canonical, id)",
}


class EvidenceDatabase(DatabaseFile):
    """The file of a project's sources, opened at first use; reading creates nothing, and writing its folder too."""

    tables: ClassVar[Mapping[str, str]] = _TABLES
    application: ClassVar[int] = 0x6E6C7265
    version: ClassVar[int] = 4
    remedy: ClassVar[str] = "add the sources again"
