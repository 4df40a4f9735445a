"""Figures of an index: counts of its searches, and the file ``index_metadata.json``, which is written and never read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypedDict

from filelock import FileLock, Timeout

from nlp_retrieval.core import STOP_WORDS, clear_asides, replace_file
from nlp_retrieval.errors import IndexLockedError, IndexWriteError, RetrievalWarning
from nlp_retrieval.systems.evidence.index.database import EvidenceDatabase
from nlp_retrieval.systems.evidence.index.store import StoredText, StoredVersion
from nlp_retrieval.systems.evidence.index.urls import registrable_domain

# Counts of the searches of an index, kept over restarts and shared by all of its readers.

_WORD = re.compile(r"\w+")
_ADD = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"


@dataclass(frozen=True)
class QueryStatistics:
    """Counts of the searches so far; the average is of :func:`relevance_of`, 0 to 10, over the searches with results."""

    queries: int
    results: int
    without_results: int
    repeated: int
    average_relevance: float


def relevance_of(query: str, passage: str) -> float:
    """Return how much of a query its best passage is about, from 0 to 10.

    Ten times the share of the query's distinct words, without the most common English ones, that occur in the passage. It
    says whether the passage is on the subject, and nothing about whether it supports the query.
    """
    words = set(_WORD.findall(query.casefold()))
    asked = (words - STOP_WORDS) or words
    return 10 * len(asked & set(_WORD.findall(passage.casefold()))) / len(asked) if asked else 0.0


class QueryCounters:
    """The counters of a project; of queries, only their SHA-256 is stored."""

    def __init__(self, database: EvidenceDatabase) -> None:
        self._database = database

    def count(self, searches: Iterable[tuple[str, int, float]]) -> None:
        """Count searches, unless the project cannot be written to or stays locked.

        Args:
            searches: of each the query, the number of results, and the relevance of the first.
        """
        if not self._database.path.exists():  # looking creates nothing
            return
        with suppress(IndexWriteError, IndexLockedError), self._database.changing(durable=False) as connection:
            for query, n_results, relevance in searches:
                digest = hashlib.sha256(" ".join(query.casefold().split()).encode()).digest()
                known = connection.execute("INSERT OR IGNORE INTO asked VALUES (?)", (digest,)).rowcount == 0
                counted = (("queries", 1), ("results", n_results), ("without", not n_results), ("repeated", known))
                connection.executemany(_ADD, [*((name, float(value)) for name, value in counted), ("relevance", relevance)])

    def read(self) -> QueryStatistics:
        """Return the counts so far."""
        counts: dict[object, object] = dict(self._database.rows("SELECT name, value FROM counters"))
        value = {name: float(count) if isinstance(count := counts.get(name), int | float) else 0.0 for name in _NAMES}
        answered = value["queries"] - value["without"]
        return QueryStatistics(
            queries=int(value["queries"]),
            results=int(value["results"]),
            without_results=int(value["without"]),
            repeated=int(value["repeated"]),
            average_relevance=min(10.0, value["relevance"] / answered) if answered > 0 else 0.0,
        )


_NAMES = ("queries", "results", "without", "repeated", "relevance")


# Figures of an index, and the file ``index_metadata.json``, which is written and never read.

_WAIT = 60.0


class _RetrievalStats(TypedDict):
    total_queries: int
    avg_results_per_query: float
    cache_hit_rate: float


class _SourceEntry(TypedDict):
    url: str
    title: str
    quality: str
    fetch_date: str
    passage_count: int


class IndexMetadata(TypedDict):
    """Content of ``index_metadata.json``.

    ``index_built`` says whether there is an index to search; ``document_count`` counts texts, however many URLs each has, and
    ``sources`` has one entry for each, by its key; ``indexed_hashes`` are the full keys of those that the index holds.
    ``cache_hit_rate`` is the share of searches that repeated an earlier query: answers are not cached, so it is the most that
    a cache could have saved.
    """

    index_built: bool
    document_count: int
    indexed_hashes: list[str]
    sources: dict[str, _SourceEntry]
    retrieval_stats: _RetrievalStats


class IndexStatistics(TypedDict):
    """Figures of an index.

    The texts, their URLs (``source_count``), the passages, the registrable domains (``unique_domains``, and one for all
    files), the bytes on the disk, and the searches; relevance is defined in
    :func:`nlp_retrieval.systems.evidence.index.statistics.relevance_of`. All stored texts count, also replaced ones and those
    that wait for ``build_index``; keys that begin with ``indexed`` count only searchable texts.
    """

    index_built: bool
    document_count: int
    indexed_count: int
    source_count: int
    passage_count: int
    indexed_passage_count: int
    unique_domains: int
    indexed_domains: int
    bytes: int
    total_queries: int
    zero_result_queries: int
    avg_results_per_query: float
    average_relevance: float
    cache_hit_rate: float


def metadata_of(
    texts: Mapping[str, StoredText], held: Mapping[str, int], asked: QueryStatistics, *, built: bool
) -> IndexMetadata:
    """Describe an index."""
    firsts = {text.first.key: text for text in texts.values()}
    return {
        "index_built": built,
        "document_count": len(texts),
        "indexed_hashes": [key for key, text in firsts.items() if is_held(text, held)],
        "sources": {
            key: {
                "url": text.first.url,
                "title": text.first.title,
                "quality": text.quality,
                "fetch_date": text.first.fetch_date,
                "passage_count": text.first.passage_count,
            }
            for key, text in firsts.items()
        },
        "retrieval_stats": {
            "total_queries": asked.queries,
            "avg_results_per_query": _ratio(asked.results, asked.queries),
            "cache_hit_rate": _ratio(asked.repeated, asked.queries),
        },
    }


def statistics_of(
    texts: Mapping[str, StoredText],
    versions: Sequence[StoredVersion],
    held: Mapping[str, int],
    asked: QueryStatistics,
    *,
    built: bool,
    n_bytes: int,
) -> IndexStatistics:
    """Count what an index holds."""
    domains = {url: registrable_domain(url) for url in {version.canonical for version in versions}}
    indexed = {sha256: text for sha256, text in texts.items() if is_held(text, held)}
    indexed_domains = {domains[version.canonical] for version in versions if version.newest and version.sha256 in indexed}
    return {
        "index_built": built,
        "document_count": len(texts),
        "indexed_count": len(indexed),
        "source_count": len(domains),
        "passage_count": sum(text.first.passage_count for text in texts.values()),
        "indexed_passage_count": sum(text.first.passage_count for text in indexed.values()),
        "unique_domains": len(set(domains.values())),
        "indexed_domains": len(indexed_domains),
        "bytes": n_bytes,
        "total_queries": asked.queries,
        "zero_result_queries": asked.without_results,
        "avg_results_per_query": _ratio(asked.results, asked.queries),
        "average_relevance": round(asked.average_relevance, 4),
        "cache_hit_rate": _ratio(asked.repeated, asked.queries),
    }


def bytes_on_disk(*paths: Path) -> int:
    """Return the total size of files and of all files in folders, without those that are removed meanwhile."""
    inside = [Path(folder, name) for path in paths for folder, _, names in os.walk(path) for name in names]
    total = 0
    for file in [*paths, *inside]:
        with suppress(OSError):
            status = file.stat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def is_held(text: StoredText, held: Mapping[str, int]) -> bool:
    """Return whether the index holds all searchable passages of a text."""
    return text.live and held.get(text.first.sha256, 0) == text.first.passage_count


def write_metadata(path: Path, described: Callable[[], IndexMetadata]) -> None:
    """Replace the file; a failure only warns, because all of its content is stored elsewhere.

    It does not wait for the disk: after a power failure this file alone may be cut off until the next change.

    Args:
        path: of the file.
        described: returns the content; called while no other process writes, so that the last writer is up to date.
    """
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=_WAIT):
            clear_asides(path, seconds=0)
            replace_file(path, f"{_indented(described())}\n".encode())
    except (OSError, Timeout) as error:
        warnings.warn(
            f"{path} could not be written ({error}); the sources are stored, and the next change writes it again",
            RetrievalWarning,
            stacklevel=2,
        )


def _indented(metadata: IndexMetadata) -> str:
    """Return the same as ``json.dumps(metadata, indent=2)``, whose encoder is slow enough to delay adding a source."""
    entries = [
        f"    {_plain(key)}: {{\n      {_plain(entry, separators=(_NEXT, ': '))[1:-1]}\n    }}"
        for key, entry in metadata["sources"].items()
    ]
    whole = json.dumps({**metadata, "sources": {}}, indent=2, ensure_ascii=False)
    before, _, after = whole.rpartition('"sources": {}')
    return f'{before}"sources": {{\n{_BETWEEN.join(entries)}\n  }}{after}' if entries else whole


_plain = partial(json.dumps, ensure_ascii=False)
_NEXT, _BETWEEN = ",\n      ", ",\n"


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
