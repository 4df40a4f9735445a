"""The life of a searcher: it indexes, opens, takes up newer generations, updates, and is copied to other processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.components.interfaces import BaseLoader
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
from nlp_retrieval.core.search.known_retrievers import resolver
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.errors import IndexMissingError


class OpenedRetrievers(NamedTuple):
    """Retrievers that are open on one generation of an index.

    Args:
        generation: the index.
        retrievers: by label.
    """

    generation: Generation
    retrievers: dict[str, BaseRetriever]


class BaseSearcher(Component, ABC):
    """Holds retrievers and the index that they are open on; a subclass says how they are searched.

    One call to ``search`` uses one generation of the index throughout; a newer one is taken up by ``refresh``.
    """

    kind: ClassVar[str] = "searchers"

    retrievers: dict[str, BaseRetriever]
    """By label; set by the subclass."""

    _opening: ClassVar[Lock] = Lock()
    _opened: OpenedRetrievers | None = None
    _opened_before: OpenedIndex | None = None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of the whole configuration: equal searchers have equal fingerprints."""

    @property
    @abstractmethod
    def stages(self) -> list[str]:
        """Names of the stages, in order, as :func:`nlp_retrieval.core.measure.record_stages` reports them."""

    @abstractmethod
    def search(self, queries: str | Sequence[str], k: int = 10, where: Where | None = None) -> list[list[RetrievalResult]]:
        """Search: one list per query, best first."""

    @property
    @abstractmethod
    def explains(self) -> bool:
        """Whether :meth:`explain` can say why something was found."""

    @abstractmethod
    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]:
        """Say of results why they were found: one mapping per result, empty where there is nothing to say."""

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path, *, replace: bool = False) -> IndexReport:
        """Index items for every retriever of this searcher, and open the result; what is there already is left as it is.

        Args:
            items: a loader, or items; streamed once.
            path: the index directory.
            replace: give up an index of other items that is there.

        Raises:
            ItemError: the items cannot be indexed.
            IndexConflictError: the directory holds other items, and ``replace`` is False.
            IndexWriteError: the directory cannot be written.
        """
        report = build_index(items, path, builders_of(self.retrievers.values()), replace=replace)
        self.open(path)
        return report

    def add(
        self, items: BaseLoader | Iterable[SearchableItem], *, auto_compact: bool = True, trust: bool = False
    ) -> UpdateReport:
        """Add items to the opened index, without building again what is there, and search it from now on.

        All retrievers of the index take them up, those of other searchers too. Readers keep what they opened until they
        :meth:`refresh`.

        Args:
            items: a loader, or items; streamed once. None of their ids may be there already.
            auto_compact: join segments where there are many; see :meth:`compact`.
            trust: let the index decide how its other retrievers are made; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            ItemError: an id is there already, or the items cannot be indexed; nothing is added then.
            UntrustedError: another retriever of the index asks for more than a manifest may decide.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        return self._add(items, replace=False, auto_compact=auto_compact, trust=trust)

    def update(
        self, items: BaseLoader | Iterable[SearchableItem], *, auto_compact: bool = True, trust: bool = False
    ) -> UpdateReport:
        """Add items, as :meth:`add` does; one whose id is there takes that item's place, and stands behind all others.

        Args:
            items: a loader, or items; streamed once.
            auto_compact: join segments where there are many; see :meth:`compact`.
            trust: let the index decide how its other retrievers are made; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            ItemError: the items cannot be indexed; nothing is changed then.
            UntrustedError: another retriever of the index asks for more than a manifest may decide.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        return self._add(items, replace=True, auto_compact=auto_compact, trust=trust)

    def delete(self, item_ids: Iterable[str], *, auto_compact: bool = True, trust: bool = False) -> UpdateReport:
        """Delete items from the opened index by their ids.

        Args:
            item_ids: of the items.
            auto_compact: join segments where a quarter of all rows belongs to deleted items; see :meth:`compact`.
            trust: let the index decide how its other retrievers are made; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            ItemError: there is no item of an id, or none would be left; nothing is deleted then.
            UntrustedError: another retriever of the index asks for more than a manifest may decide.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        if isinstance(item_ids, str):
            item_ids = [item_ids]
        resolve = resolver(self.retrievers.values(), trust=trust)
        return self._taken_up(delete_items(self.opened.path, item_ids, resolve, auto_compact=auto_compact))

    def compact(self, *, trust: bool = False) -> UpdateReport:
        """Join all segments of the opened index, and drop what was deleted: the index is as if it had been built at once.

        What quantisers and centroids of an index were trained on may be kept; the classes of the retrievers say so.

        Args:
            trust: let the index decide how its other retrievers are made; see :mod:`nlp_retrieval.core.components.trust`.

        Raises:
            IndexMissingError: no index was opened.
            UntrustedError: another retriever of the index asks for more than a manifest may decide.
            IndexLockedError: another process is writing to the index.
            IndexWriteError: the directory cannot be written.
        """
        return self._taken_up(compact_index(self.opened.path, resolver(self.retrievers.values(), trust=trust)))

    def _add(
        self, items: BaseLoader | Iterable[SearchableItem], *, replace: bool, auto_compact: bool, trust: bool
    ) -> UpdateReport:
        resolve = resolver(self.retrievers.values(), trust=trust)
        return self._taken_up(add_items(self.opened.path, items, resolve, replace=replace, auto_compact=auto_compact))

    def _taken_up(self, report: UpdateReport) -> UpdateReport:
        self.open(report.path)
        tidy(report.path)  # the generation before was held until now
        return report

    def open(self, path: str | Path) -> Self:
        """Open an index that was built before; returns the searcher itself.

        Raises:
            IndexMissingError: there is none, or it lacks one of the retrievers.
            IndexMismatchError: it was built with another configuration.
            IndexDamagedError: a file is not what its checksum says.
        """
        with self._opening:  # or a slow refresh could put an older generation in the place of a newer one
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
        """What the opened index says of this searcher's retrievers and their parts: their files, and what they cost."""
        return self._records(self.opened.manifest)

    def _records(self, manifest: Manifest) -> list[RetrieverRecord]:
        needed = with_parts(self.retrievers.values())
        prints = {fingerprint_of(manifest.corpus.fingerprint, r.identity) for r in needed}
        return [record for record in manifest.retrievers if record.fingerprint in prints]

    def refresh(self) -> bool:
        """Take up a newer generation of the index, if there is one; returns whether there was."""
        opened = self.open_retrievers()
        if opened.generation.is_current():
            return False
        self.open(opened.generation.path)
        return True

    def kept_in_copies(self) -> dict[str, Any]:
        """Which index was opened: a copy opens it at first use, and raises IndexConflictError where another one is there."""
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
        """Return what is open; a copy opens its index now.

        Raises:
            IndexMissingError: no index was opened.
        """
        if self._opened is None and self._opened_before is not None:
            self._open_again(self._opened_before)
        if self._opened is None:
            raise IndexMissingError("this searcher has no index yet; call index(items, path) or open(path) first")
        return self._opened
