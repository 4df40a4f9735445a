"""Entrants of a benchmark: objects that search like a searcher, and runs of other tools."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Container, Sequence
from os.path import expanduser
from pathlib import Path
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from pydantic import Field

from nlp_retrieval.core.components.component import Component, Config, canonical_json
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.explanation import Explanation
from nlp_retrieval.core.files.checksums import sha256_of
from nlp_retrieval.core.files.frames import Items
from nlp_retrieval.core.index.build import IndexReport
from nlp_retrieval.core.index.generation import Generation, RetrieverRecord
from nlp_retrieval.core.models import Query, RetrievalResult
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import (
    ItemError,
    RetrievalWarning,
    SourceError,
)
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.loaders.judgements import with_matched_numbers


class Searching(Protocol):
    """A searcher that can be measured."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal configurations."""

    @property
    def stages(self) -> list[str]:
        """The names of its stages, in order."""

    @property
    def opened(self) -> Generation | None:
        """The generation of the index that it searches; None if it stores its items in another way."""

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        """Search."""


def generation_of(searcher: Searching) -> Generation | None:
    """Return the generation that a searcher has opened; None if it has none."""
    opened = getattr(searcher, "opened", None)
    return opened if isinstance(opened, Generation) else None


class Benchmarkable(Searching, Protocol):
    """A searcher, or an object with the same interface, as a benchmark uses it.

    All configurations of a run are measured on one corpus. ``opened`` identifies the corpus that a searcher searches. It stays
    the same from ``open`` or ``index`` until these are called again. If None, results are compared with the corpus instead.
    """

    @property
    def config(self) -> Config:
        """Its complete configuration, as plain values."""

    def index(self, items: Items, path: str | Path) -> IndexReport:
        """Complete the index directory with everything it needs, and open it."""

    def open(self, path: str | Path) -> Benchmarkable:
        """Open an index that already holds everything it needs."""

    def index_records(self) -> list[RetrieverRecord]:
        """Return the index's records of its retrievers."""

    def provenance(self) -> dict[str, str]:
        """Return the sources of its models."""


@runtime_checkable
class Explains(Protocol):
    """A searcher that may be able to explain its results."""

    @property
    def explains(self) -> bool: ...

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]: ...

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]: ...


@runtime_checkable
class KeepsQuestions(Protocol):
    """A searcher that keeps what it did for each question, under the question's id."""

    def expect(self, queries: Sequence[Query]) -> None:
        """Take over the ids of the questions that a benchmark is going to ask as texts."""


class TrecRun(Component):
    """The lists of another tool, from a TREC run file: ``query Q0 item rank score tag``.

    Hits are ordered as in trec_eval: by score, then by item id, descending. A query that is not in the file
    found nothing; it scores 0 and counts.

    Args:
        path: the file, plain or gzip; ``~`` is the home folder.

    Examples:
        >>> _ = Path("anserini.trec").write_text("q1 Q0 whale 1 7.5 anserini")
        >>> TrecRun("anserini.trec")
        TrecRun(path='anserini.trec')
    """

    kind: ClassVar[str] = "searchers"
    name: ClassVar[str] = "trec_run"
    manifest_may_set = may_set(path=READS_FILE)

    def __init__(self, path: Annotated[str, Field(min_length=1)]) -> None:
        self.path = path

    @property
    def fingerprint(self) -> str:
        """Checksum of the content of the file.

        Raises:
            SourceError: it cannot be read.
        """
        try:
            content = sha256_of(Path(expanduser(self.path)))  # noqa: PTH111 -- unlike Path's, it never raises
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        except ValueError:
            raise SourceError(f"{self.path!r} is not a path of a file: it holds a zero byte") from None
        described = {"name": self.name, "content": content}
        return hashlib.sha256(canonical_json(described).encode()).hexdigest()

    def read(self) -> dict[str, Ranking]:
        """Return all lists of the file, by query id.

        Raises:
            SourceError: it cannot be read, or is malformed.
        """
        return read_run(self.path)

    def rankings(self, query_ids: Sequence[str], item_ids: Container[str], k: int) -> list[Ranking]:
        """Return the first ``k`` hits of each query.

        Args:
            query_ids: in order.
            item_ids: ids of the corpus.
            k: length of the lists.

        Raises:
            SourceError: the file cannot be read, is malformed, or has none of the queries.
            ItemError: for one of these queries it names an item, at any rank, that is not in the corpus.
        """
        run = with_matched_numbers(self.read(), query_ids, self.path)
        missing = [query_id for query_id in query_ids if query_id not in run]
        asked = set(query_ids)
        others = [query_id for query_id in run if query_id not in asked]
        if len(missing) == len(query_ids):
            raise SourceError(
                f"{self.path}: none of the {len(query_ids):,} queries is in it (it has {len(run):,}"
                + (f", the first is {others[0]!r}" if others else "")
                + f"; asked for is {query_ids[0]!r}); was it made for other queries?"
            )
        if missing:
            warnings.warn(
                f"{self.path}: {len(missing):,} of {len(query_ids):,} queries are not in it (the first: {missing[0]!r}); "
                "they score 0 and count",
                RetrievalWarning,
                stacklevel=2,
            )
        if others:
            warnings.warn(
                f"{self.path}: {len(others):,} of its queries are not asked here (the first: {others[0]!r}); they do not count",
                RetrievalWarning,
                stacklevel=2,
            )
        lists = [run.get(query_id, []) for query_id in query_ids]
        unknown = [item_id for ranking in lists for item_id, _ in ranking if item_id not in item_ids]
        if unknown:
            raise ItemError(
                f"{self.path}: {len(unknown):,} hits are of items that are not in the corpus (the first: {unknown[0]!r}); "
                "use the corpus that the run was made on"
            )
        return [ranking[:k] for ranking in lists]


Entry = BaseSearcher | Benchmarkable | TrecRun
"""A named entrant of a benchmark.

A searcher is both benchmarkable and an entrant: pyright misses this because ``open`` is a descriptor.
"""
