"""Figures of an index: counts of its searches, and the file ``index_metadata.json``, which is written and never read."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

import orjson
from filelock import FileLock, Timeout

from nlp_retrieval.core import STOP_WORDS, clear_asides, write_atomically
from nlp_retrieval.errors import IndexLockedError, IndexWriteError, RetrievalWarning
from nlp_retrieval.systems.evidence.index.store import EvidenceDatabase, EvidenceStore, SourceVersion
from nlp_retrieval.systems.evidence.index.urls import registrable_domain

_WORD = re.compile(r"\w+")
_ADD = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
_WAIT = 60.0


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


def relevance_of(query: str, passage: str) -> float:
    """Return how much of a query its best passage is about, from 0 to 10.

    Ten times the share of the query's distinct words, without the most common English ones, that occur in the passage. It
    says whether the passage is on the subject, and nothing about whether it supports the query.
    """
    words = set(_WORD.findall(query.casefold()))
    asked = (words - STOP_WORDS) or words
    return 10 * len(asked & set(_WORD.findall(passage.casefold()))) / len(asked) if asked else 0.0


class QueryCounters:
    """Counts of the searches of a project, kept over restarts and shared by all of its readers."""

    def __init__(self, database: EvidenceDatabase) -> None:
        self._database = database

    def count(self, searches: Iterable[tuple[int, float]]) -> None:
        """Count searches by their number of results and the relevance of the first, unless the project cannot be written to."""
        if not self._database.path.exists():  # looking creates nothing
            return
        with suppress(IndexWriteError, IndexLockedError), self._database.changing(durable=False) as connection:
            for n_results, relevance in searches:
                counted = {"queries": 1, "results": n_results, "without": not n_results, "relevance": relevance}
                connection.executemany(_ADD, [(name, float(value)) for name, value in counted.items()])

    def read(self) -> dict[str, float]:
        """Return the counts so far: "queries", "results", "without" results, and the sum of the "relevance"."""
        counts: dict[object, object] = dict(self._database.rows("SELECT name, value FROM counters"))
        names = ("queries", "results", "without", "relevance")
        return {name: float(count) if isinstance(count := counts.get(name), int | float) else 0.0 for name in names}


def metadata_of(
    texts: Mapping[str, SourceVersion], held: Mapping[str, int], asked: Mapping[str, float], *, built: bool
) -> dict[str, Any]:
    """Return the content of ``index_metadata.json``.

    ``index_built`` says whether there is an index to search; ``document_count`` counts texts, however many URLs each has, and
    ``sources`` has one entry for each, by its key; ``indexed_hashes`` are the keys of those that the index holds.
    """
    shown = ("url", "title", "quality", "fetch_date", "passage_count")
    return {
        "index_built": built,
        "document_count": len(texts),
        "indexed_hashes": [text.key for text in texts.values() if is_held(text, held)],
        "sources": {text.key: {name: getattr(text, name) for name in shown} for text in texts.values()},
        "retrieval_stats": {
            "total_queries": int(asked["queries"]),
            "avg_results_per_query": _ratio(asked["results"], asked["queries"]),
        },
    }


def statistics_of(
    store: EvidenceStore, held: Mapping[str, int], asked: Mapping[str, float], *, built: bool, n_bytes: int
) -> IndexStatistics:
    """Count what an index holds."""
    texts, versions = store.texts(), store.all_versions()
    domains = {url: registrable_domain(url) for url in {version.canonical for version in versions}}
    indexed = {sha256: text for sha256, text in texts.items() if is_held(text, held)}
    return {
        "index_built": built,
        "document_count": len(texts),
        "indexed_count": len(indexed),
        "source_count": len(domains),
        "passage_count": sum(text.passage_count for text in texts.values()),
        "indexed_passage_count": sum(text.passage_count for text in indexed.values()),
        "unique_domains": len(set(domains.values())),
        "indexed_domains": len({domains[each.canonical] for each in versions if each.newest and each.sha256 in indexed}),
        "bytes": n_bytes,
        "total_queries": int(asked["queries"]),
        "zero_result_queries": int(asked["without"]),
        "avg_results_per_query": _ratio(asked["results"], asked["queries"]),
        "average_relevance": min(10.0, _ratio(asked["relevance"], asked["queries"] - asked["without"])),
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


def is_held(text: SourceVersion, held: Mapping[str, int]) -> bool:
    """Return whether the index holds all passages of a text that is to be searched."""
    return text.newest and held.get(text.sha256, 0) == text.passage_count


def write_metadata(path: Path, described: Callable[[], dict[str, Any]]) -> None:
    """Replace the file while no other process writes; a failure only warns, because all of its content is stored elsewhere."""
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=_WAIT):
            clear_asides(path, seconds=0)
            content = orjson.dumps(described(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            write_atomically(path, content, durable=False)
    except (OSError, Timeout) as error:
        warnings.warn(
            f"{path} could not be written ({error}); the sources are stored, and the next change writes it again",
            RetrievalWarning,
            stacklevel=2,
        )


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole > 0 else 0.0
