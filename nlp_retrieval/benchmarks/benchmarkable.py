"""Entrants of a benchmark: objects that search like a searcher, and runs of other tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from nlp_retrieval.benchmarks.cost import Searching
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.components.component import BaseLoader, Config
from nlp_retrieval.core.index.build import IndexReport
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher


class Benchmarkable(Searching, Protocol):
    """A searcher, or an object with the same interface, as a benchmark uses it.

    All configurations of a run are measured on one corpus. ``opened`` identifies the corpus that a searcher searches. It stays
    the same from ``open`` or ``index`` until these are called again. If None, results are compared with the corpus instead.
    """

    @property
    def config(self) -> Config:
        """Its complete configuration, as plain values."""

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path) -> IndexReport:
        """Complete the index directory with everything it needs, and open it."""

    def open(self, path: str | Path) -> Benchmarkable:
        """Open an index that already holds everything it needs."""

    def index_records(self) -> list[RetrieverRecord]:
        """Return the index's records of its retrievers."""

    def provenance(self) -> dict[str, str]:
        """Return the sources of its models."""


Entry = BaseSearcher | Benchmarkable | TrecRun
"""A named entrant of a benchmark.

A searcher is both benchmarkable and an entrant: pyright misses this because ``open`` is a descriptor.
"""
