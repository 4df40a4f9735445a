"""The life cycle of a searcher: indexing, opening, refreshing, updating, and copying to other processes."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.context import Workers, use_workers
from nlp_retrieval.core.cores import usable_cores
from nlp_retrieval.core.explanation import Explanation
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.index.build import IndexReport, build_index
from nlp_retrieval.core.index.generation import Generation, fingerprint_of, open_generation
from nlp_retrieval.core.index.manifest import Manifest, RetrieverRecord
from nlp_retrieval.core.index.publishing import tidy
from nlp_retrieval.core.index.update import UpdateReport, add_items, compact_index, delete_items
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.composition import builders_of
from nlp_retrieval.core.search.copying import OpenedIndex
from nlp_retrieval.core.search.from_settings import FromSettings
from nlp_retrieval.core.search.known_retrievers import resolver
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.errors import IndexMissingError

# Searching from an event loop: in a few threads of the process, so that the loop is not blocked.

T = TypeVar("T")

AT_ONCE = min(8, max(2, usable_cores()))
"""Maximum number of concurrent searches; engines use more threads of their own. Further searches wait in order."""


async def in_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread of this process.

    If the caller is cancelled, waiting work is not started; running work continues to its end, because a thread cannot be
    stopped, and counts as running until then.

    Args:
        work: the function; it sees the context variables of the caller.
    """
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), copy_context().run, work)


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked child does not inherit its parent's."""
    del process
    return ThreadPoolExecutor(AT_ONCE, "search")


class OpenedRetrievers(NamedTuple):
    """Retrievers opened on one generation of an index.

    Args:
        generation: the index.
        retrievers: the retrievers, by label.
    """

    generation: Generation
    retrievers: dict[str, BaseRetriever]


class BaseSearcher(FromSettings, ABC):
    """Holds retrievers and the opened index; a subclass decides how they are searched.

    A call of ``search`` uses the same generation of the index throughout; ``refresh`` switches to a newer one.
    """

    kind: ClassVar[str] = "searchers"

    retrievers: dict[str, BaseRetriever]
    """Retrievers by label; set by the subclass."""

    _opening: ClassVar[Lock] = Lock()
    _opened: OpenedRetrievers | None = None
    _opened_before: OpenedIndex | None = None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Fingerprint of the whole configuration: equal searchers have equal fingerprints."""

    @property
    @abstractmethod
    def stages(self) -> list[str]:
        """Names of the stages, in order, as :func:`nlp_retrieval.core.context.record_stages` reports them."""

    @abstractmethod
    def search(self, queries: str | Sequence[str], k: int = 10, where: Where | None = None) -> list[list[RetrievalResult]]:
        """Search: one list per query, best first."""

    async def asearch(
        self, queries: str | Sequence[str], k: int | None = None, where: Where | None = None, **others: Any
    ) -> list[list[RetrievalResult]]:
        """Search as :meth:`search` does, in a thread, without blocking the event loop.

        A few searches of the process run at once, and further ones wait. A cancelled search that has not started is dropped.

        Args:
            queries: a list of queries; a bare string counts as a list of one.
            k: at most this many results per query; by default as many as :meth:`search` gives.
            where: only items whose metadata match this filter are found.
            **others: further arguments of :meth:`search`.
        """
        cut = {} if k is None else {"k": k}
        return await in_thread(partial(self.search, queries, where=where, **cut, **others))

    @property
    @abstractmethod
    def explains(self) -> bool:
        """Return whether :meth:`explain` can give reasons why an item was found."""

    @abstractmethod
    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]:
        """Explain why results were found: one mapping per result, empty without an explanation."""

    def index(
        self,
        items: BaseLoader | Iterable[SearchableItem],
        path: str | Path,
        *,
        replace: bool = False,
        workers: int | None = None,
        ray: str | None = None,
    ) -> IndexReport:
        """Index items for every retriever of this searcher, and open the index; existing parts are not built again.

        Args:
            items: a loader, or items; streamed once.
            path: the index directory.
            replace: whether to replace an existing index of other items.
            workers: number of processes that encode passages, of one core each; by default this process encodes on all cores.
            ray: address of a Ray cluster that encodes the passages, or ``auto`` for the one that this machine belongs to;
                it uses as many workers as it has cores, or ``workers`` of them.

        Raises:
            ItemError: the items cannot be indexed.
            ConfigurationError: ``workers`` is below 1, or ``ray`` is not an address.
            DependencyError: a cluster is wanted, and ray is not installed.
            IndexConflictError: the directory holds other items, and ``replace`` is False.
            IndexWriteError: the directory cannot be written.
            WorkerError: workers fail repeatedly, or the cluster is unreachable, full, or has other versions or models.
        """
        with use_workers(Workers(workers, ray)):
            report = build_index(items, path, builders_of(self.retrievers.values()), replace=replace)
        self.open(path)
        return report

    def add(
        self, items: BaseLoader | Iterable[SearchableItem], *, auto_compact: bool = True, trust: bool = False
    ) -> UpdateReport:
        """Add items to the opened index, without rebuilding it, and search them from now on.

        All retrievers of the index are updated, also those of other searchers. Other readers see the new items after
        :meth:`refresh`.

        Args:
            items: a loader, or items; streamed once. Their ids must be new.
            auto_compact: whether to join segments when there are many; see :meth:`compact`.
            trust: trust the index to configure its other retrievers; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            ItemError: an id exists already, or the items cannot be indexed; nothing is added then.
            UntrustedError: another retriever of the index asks for more than a manifest is allowed.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        return self._add(items, replace=False, auto_compact=auto_compact, trust=trust)

    def update(
        self, items: BaseLoader | Iterable[SearchableItem], *, auto_compact: bool = True, trust: bool = False
    ) -> UpdateReport:
        """Add items, as :meth:`add` does; an item replaces one with the same id and moves to the end.

        Args:
            items: a loader, or items; streamed once.
            auto_compact: whether to join segments when there are many; see :meth:`compact`.
            trust: trust the index to configure its other retrievers; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            ItemError: the items cannot be indexed; nothing is changed then.
            UntrustedError: another retriever of the index asks for more than a manifest is allowed.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        return self._add(items, replace=True, auto_compact=auto_compact, trust=trust)

    def delete(self, item_ids: Iterable[str], *, auto_compact: bool = True, trust: bool = False) -> UpdateReport:
        """Delete items from the opened index by their ids.

        Args:
            item_ids: ids of the items.
            auto_compact: whether to join segments when a quarter of all rows belongs to deleted items; see :meth:`compact`.
            trust: trust the index to configure its other retrievers; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            ItemError: an id does not exist, or no item would be left; nothing is deleted then.
            UntrustedError: another retriever of the index asks for more than a manifest is allowed.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        if isinstance(item_ids, str):
            item_ids = [item_ids]
        resolve = resolver(self.retrievers.values(), trust=trust)
        return self._reopen(delete_items(self.opened.path, item_ids, resolve, auto_compact=auto_compact))

    def compact(self, *, trust: bool = False) -> UpdateReport:
        """Join all segments of the opened index and drop deleted items, as if it had been built at once.

        Trained quantisers and centroids may be kept; see the documentation of the retrievers.

        Args:
            trust: trust the index to configure its other retrievers; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            UntrustedError: another retriever of the index asks for more than a manifest is allowed.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        return self._reopen(compact_index(self.opened.path, resolver(self.retrievers.values(), trust=trust)))

    def _add(
        self, items: BaseLoader | Iterable[SearchableItem], *, replace: bool, auto_compact: bool, trust: bool
    ) -> UpdateReport:
        resolve = resolver(self.retrievers.values(), trust=trust)
        return self._reopen(add_items(self.opened.path, items, resolve, replace=replace, auto_compact=auto_compact))

    def _reopen(self, report: UpdateReport) -> UpdateReport:
        self.open(report.path)
        tidy(report.path)  # the previous generation was held until now
        return report

    def _open(self, path: str | Path) -> Self:
        """Open an existing index; returns the searcher itself.

        Raises:
            IndexMissingError: there is none, or it lacks one of the retrievers.
            IndexMismatchError: it was built with another configuration.
            IndexDamagedError: a file does not match its checksum.
        """
        with self._opening:  # otherwise a slow refresh could replace a newer generation by an older one
            self._opened = self._opened_on(open_generation(path))
        return self

    def _opened_on(self, generation: Generation) -> OpenedRetrievers:
        stages = current_stages()
        return OpenedRetrievers(generation, {label: stages.opened(r, generation) for label, r in self.retrievers.items()})

    @property
    def opened(self) -> Generation:
        """The generation of the index that is searched.

        Raises:
            IndexMissingError: none was opened.
        """
        return self.open_retrievers().generation

    def index_records(self) -> list[RetrieverRecord]:
        """The opened index's records of this searcher's retrievers and their parts: their files, and what they cost."""
        return self._records(self.opened.manifest)

    def _records(self, manifest: Manifest) -> list[RetrieverRecord]:
        needed = with_parts(self.retrievers.values())
        prints = {fingerprint_of(manifest.corpus.fingerprint, r.identity, manifest.retrievers) for r in needed}
        return [record for record in manifest.retrievers if record.fingerprint in prints]

    def refresh(self) -> bool:
        """Switch to a newer generation of the index, if there is one; return whether there was one."""
        opened = self.open_retrievers()
        if opened.generation.is_current():
            return False
        self.open(opened.generation.path)
        return True

    def extra_state(self) -> dict[str, Any]:
        """The opened index: a copy opens it at first use, and raises IndexConflictError if it has been replaced."""
        before = self._opened_before if self._opened is None else self._opened_index(self._opened.generation)
        return {"_opened_before": before}

    def _opened_index(self, generation: Generation) -> OpenedIndex:
        return OpenedIndex.of(generation, self._records(generation.manifest))

    def _open_again(self, before: OpenedIndex) -> None:
        with self._opening:
            if self._opened is None:
                generation = open_generation(before.path)
                before.check_is(self._opened_index(generation))
                self._opened = self._opened_on(generation)

    def open_retrievers(self) -> OpenedRetrievers:
        """Return the opened retrievers; a copy opens its index now.

        Raises:
            IndexMissingError: no index was opened.
        """
        if self._opened is None and self._opened_before is not None:
            self._open_again(self._opened_before)
        if self._opened is None:
            raise IndexMissingError("this searcher has no index yet; call index(items, path) or open(path) first")
        return self._opened
