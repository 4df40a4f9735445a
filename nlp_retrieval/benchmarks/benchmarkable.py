"""What a benchmark can compare: whatever searches like a searcher, and runs of other tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from nlp_retrieval.benchmarks.cost import Searching
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.index.build import IndexReport
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher


class Benchmarkable(Searching, Protocol):
    """What a benchmark drives: a searcher, or anything that stands beside one.

    All configurations of a run are measured on one corpus. ``opened`` says which one a searcher searches: it is the same from
    ``open`` or ``index`` until these are called again. Where it is None, what was found is compared with the corpus instead.
    """

    @property
    def config(self) -> Config:
        """Its complete configuration, as plain values."""

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path) -> IndexReport:
        """Bring the index directory to hold what it needs, and open it."""

    def open(self, path: str | Path) -> Benchmarkable:
        """Open an index that holds what it needs."""

    def index_records(self) -> list[RetrieverRecord]:
        """Return what the index says of its retrievers."""

    def provenance(self) -> dict[str, str]:
        """Return where its models come from."""


Entry = BaseSearcher | Benchmarkable | TrecRun
"""What stands in a benchmark under a name.

A searcher is benchmarkable, and named too: pyright does not see it through ``open``, which is a descriptor.
"""
