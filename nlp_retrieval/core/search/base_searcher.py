"""The life cycle of a searcher: indexing, opening, refreshing, updating, and copying to other processes."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from nlp_retrieval.core.components.component import Component, Config, canonical_json, refuse_secrets, with_held
from nlp_retrieval.core.components.registry import build_as, build_from_manifest, numbered_names, plan
from nlp_retrieval.core.context import Workers, use_workers
from nlp_retrieval.core.files.frames import Items, Queries
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.build import (
    IndexReport,
    UpdateReport,
    add_items,
    build_index,
    compact_index,
    delete_items,
    writing,
)
from nlp_retrieval.core.index.generation import (
    MANIFEST_FILE,
    Generation,
    Manifest,
    RetrieverRecord,
    fingerprint_of,
    index_directory,
    open_generation,
    publish_manifest,
    require_manifest,
)
from nlp_retrieval.core.models import Explanation, RetrievalResult
from nlp_retrieval.core.search.retriever import BaseRetriever, OpenedRetrievers, with_parts
from nlp_retrieval.errors import (
    ConfigurationError,
    IndexLockedError,
    IndexMismatchError,
    IndexMissingError,
    RetrievalError,
    RetrievalWarning,
    nearest,
)

# The retrievers of an index, made from its manifest.


def builders_of(
    index: str | Path, retrievers: Iterable[BaseRetriever] = (), *, trust: bool = False, manifest: Manifest | None = None
) -> list[BaseRetriever]:
    """Return all retrievers of an index, in its order: those given, and others made from its manifest."""
    made, directory = with_parts(retrievers), index_directory(index)
    manifest = manifest or require_manifest(directory)
    known = {fingerprint_of(manifest.corpus.fingerprint, retriever.identity): retriever for retriever in made}
    if others := [record for record in manifest.retrievers if record.fingerprint not in known]:
        cure = "; or update it in Python by a searcher that holds it, or index again without it"
        try:
            made = _made_of(others, directory, cure, trust=trust)
        except ConfigurationError as error:
            raise IndexMismatchError(f"the index also holds what cannot be kept up to date: {error}{cure}") from error
        known |= {fingerprint_of(manifest.corpus.fingerprint, retriever.identity): retriever for retriever in made}
        if changed := [record.config for record in others if record.fingerprint not in known]:
            raise IndexMismatchError(
                f"the index also holds {changed[0]}, which cannot be kept up to date: made from these settings, it is "
                f"another one (another model or version, or a setting that is a secret){cure}"
            )
    return [known[record.fingerprint] for record in manifest.retrievers]


def drop_retriever(index: str | Path, name: str, *, trust: bool = False) -> list[str]:
    """Remove one retriever of an index with its files and tables, and return what is left; the second bm25 is ``bm25-2``."""
    directory = index_directory(index)
    require_manifest(directory)  # no folder is made where there is none
    with writing(directory) as writer:
        manifest = require_manifest(directory)
        labels = numbered_names(record.config["name"] for record in manifest.retrievers)
        by_name = dict(zip(labels, manifest.retrievers, strict=True))
        if name not in by_name:
            raise ConfigurationError(f"{directory} has no retriever {name!r}; {nearest(name, by_name)}")
        dropped = by_name.pop(name)
        identity = canonical_json(dropped.identity)
        users = [other for other, record in by_name.items() if identity in canonical_json(record.identity)]
        if users or not by_name:
            why = f"{users[0]} searches with it; drop that first" if users else "it is the only one; remove the folder"
            raise ConfigurationError(f"{directory}: {name!r} cannot be dropped: {why}")
        publish_manifest(directory, manifest, manifest.corpus, list(by_name.values()))
        try:
            manifest = manifest.model_copy(update={"retrievers": [dropped]})
            writer.builders = builders_of(directory, trust=trust, manifest=manifest)
        except RetrievalError as error:
            warning = f"{name} is dropped, and tables that it may have in a server are not: {error}"
            warnings.warn(warning, RetrievalWarning, stacklevel=2)
    return numbered_names(record.config["name"] for record in by_name.values())


def retrievers_of(index: str | Path, *, trust: bool = False) -> list[BaseRetriever]:
    """Build the retrievers of an index from its manifest, without those that are only parts of others.

    With ``trust``, the index may use settings that a manifest is not allowed; without it, they are an UntrustedError.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> retrievers_of("index")
        [Bm25Retriever()]
    """
    cure = "; or name the retrievers yourself: with --retriever, or in a Searcher of your own"
    retrievers = _made_of(open_generation(index).manifest.retrievers, Path(index), cure, trust=trust)
    parts = [part.identity for retriever in retrievers for part in with_parts(retriever.parts())]
    return [retriever for retriever in retrievers if retriever.identity not in parts]


def _made_of(records: Iterable[RetrieverRecord], directory: Path, cure: str, *, trust: bool) -> list[BaseRetriever]:
    """Build retrievers from a manifest, once all that they ask for is trusted."""
    plans = [plan("retrievers", record.config, str(record.config.get("name")), BaseRetriever) for record in records]
    return build_from_manifest(BaseRetriever, plans, str(directory / MANIFEST_FILE), cure, trust=trust)


# What searchers have in common.

SearcherT = TypeVar("SearcherT", bound="BaseSearcher")


class _Open:
    """``open``, of a class and of a searcher: ``Searcher.open(path)``, ``searcher.open(path)``."""

    def __get__(self, searcher: SearcherT | None, cls: type[SearcherT]) -> Callable[..., SearcherT]:
        return cls._open_of_index if searcher is None else searcher._open


class BaseSearcher(Component, ABC):
    """Holds retrievers and the opened index; a subclass decides how they are searched.

    A call of ``search`` uses the same generation of the index throughout; ``refresh`` switches to a newer one.
    """

    kind: ClassVar[str] = "searchers"

    retrievers: dict[str, BaseRetriever]
    """Retrievers by label; set by the subclass."""

    open: ClassVar[_Open] = _Open()
    """``searcher.open(path)`` opens an index; ``Searcher.open(path)`` creates a searcher from its retrievers."""

    _opened: OpenedRetrievers | None = None
    _opens: Path | None = None
    """The index that a copy of an opened searcher opens at its first use."""

    @classmethod
    def _open_of_index(
        cls, path: str | Path, *, retrievers: Iterable[Any] | None = None, trust: bool = False, **settings: Any
    ) -> Self:
        """Create a searcher from the retrievers in an index, and open the index.

        Args:
            path: the index directory.
            retrievers: those to search with; by default all in the index, without those that are only parts of others.
            trust: let the index use settings that a manifest is not allowed.
            **settings: further arguments of the class, such as ``fusion="rrf"`` or ``reranker="overlap"``.
        """
        chosen: Iterable[BaseRetriever | str] = retrievers_of(path, trust=trust) if retrievers is None else retrievers
        return cls(retrievers=chosen, **settings)._open(path)  # type: ignore[call-arg]  # all searchers have retrievers

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | PathLike[str]) -> Self:
        """Create a searcher from settings such as ``{retrievers: [bm25, faiss], fusion: rrf}``, or a YAML or JSON file of them.

        Raises:
            SourceError: the file does not exist or cannot be read.
            ConfigurationError: an unknown name or parameter, a missing one, or a value of the wrong type or out of range.
        """
        settings, where = (config, "config") if isinstance(config, Mapping) else (read_yaml(Path(config)), str(config))
        return build_as(cls, "searchers", {"name": cls.name} | dict(settings), where)

    def to_config(self) -> Config:
        """Return all settings as plain values, for :meth:`from_config`; a ConfigurationError if no file may hold one."""
        for part in with_held(self):
            if part.only_in_memory:
                raise ConfigurationError(
                    f"{part!r} is an object of this program, and no configuration can hold it; use a component with a name"
                )
        refuse_secrets(self, "written into a configuration")
        return self.config

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Fingerprint of the whole configuration: equal searchers have equal fingerprints."""

    @property
    @abstractmethod
    def stages(self) -> list[str]:
        """Names of the stages, in order, as :func:`nlp_retrieval.core.context.record_stages` reports them."""

    @abstractmethod
    def search(self, queries: Queries, k: int = 10, where: Where | None = None) -> Sequence[list[RetrievalResult]]:
        """Search: one list per query, best first."""

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]:
        """Explain why results were found: one mapping per result, empty without an explanation."""
        del query
        return [{} for _ in results]

    def index(
        self,
        items: Items,
        path: str | Path,
        *,
        replace: bool = False,
        workers: int | None = None,
        ray: str | None = None,
    ) -> IndexReport:
        """Index items for every retriever of this searcher, and open the index; existing parts are not built again.

        Args:
            items: a loader, items, a DataFrame (pandas, Polars, Arrow), dicts, pairs ``(id, text)``, texts by id, or texts,
                whose ids are their positions, from 0; read once. A table has a column ``id`` or ``docno``, one called ``text``,
                and perhaps a ``title``; all other columns are metadata.
            path: the index directory.
            replace: whether to replace an existing index of other items.
            workers: number of processes that encode passages, of one core each; by default this process encodes on all cores.
            ray: address of a Ray cluster that encodes the passages on all its cores, or ``auto`` for the one that this machine
                belongs to.

        Raises:
            ItemError: the items cannot be indexed.
            IndexConflictError: the directory holds other items, and ``replace`` is False.
            IndexWriteError: the directory cannot be written.
            WorkerError: workers fail repeatedly, or the cluster is unreachable, full, or has other versions or models.
        """
        needed = with_parts(self.retrievers.values())
        with use_workers(Workers(workers, ray)):
            report = build_index(items, path, needed, replace=replace)
        self.open(path)
        return report

    def add(self, items: Items, *, auto_compact: bool = True, trust: bool = False) -> UpdateReport:
        """Add items to the opened index of all its retrievers, without rebuilding it, and search them from now on.

        Args:
            items: in any form that :meth:`index` takes. Their ids must be new.
            auto_compact: whether to join segments when there are many, or many rows are deleted.
            trust: trust the index to configure its other retrievers.

        Raises:
            ItemError: an id exists already, or the items cannot be indexed; nothing is added then.
            UntrustedError: another retriever of the index asks for more than a manifest is allowed, and is not trusted.
            IndexLockedError: another process is writing to the index.
            IndexConflictError: another process changed its retrievers.
            IndexWriteError: the directory cannot be written.
        """
        return self._change(trust, add_items, items, replace=False, auto_compact=auto_compact)

    def update(self, items: Items, *, auto_compact: bool = True, trust: bool = False) -> UpdateReport:
        """Add items, as :meth:`add` does; an item replaces one with the same id and moves to the end."""
        return self._change(trust, add_items, items, replace=True, auto_compact=auto_compact)

    def delete(self, item_ids: Iterable[str], *, auto_compact: bool = True, trust: bool = False) -> UpdateReport:
        """Delete items from the opened index by their ids, as :meth:`add` adds them; an ItemError if none would be left."""
        ids = [item_ids] if isinstance(item_ids, str) else item_ids
        return self._change(trust, delete_items, ids, auto_compact=auto_compact)

    def compact(self, *, trust: bool = False) -> UpdateReport:
        """Join all segments of the opened index and drop deleted items; trained quantisers and centroids may be kept."""
        return self._change(trust, compact_index)

    def _change(self, trust: bool, change: Callable[..., UpdateReport], *given: object, **options: bool) -> UpdateReport:
        """Change the opened index of all its retrievers, and search the new state from now on."""
        path = self.opened.path
        report = change(path, builders_of(path, self.retrievers.values(), trust=trust), *given, **options)
        self._open(path)
        with suppress(IndexLockedError, OSError), writing(path):
            pass  # which removes the previous generation; it was held until now
        return report

    # what is opened

    def _open(self, path: str | Path) -> Self:
        """Open an index; returns the searcher itself."""
        with self._index_lock:  # otherwise a slow refresh could replace a newer generation by an older one
            self._opened = OpenedRetrievers.on(open_generation(path), self.retrievers)
        return self

    def open_retrievers(self) -> OpenedRetrievers:
        """Return the opened retrievers; a copy opens its index now; IndexMissingError if no index was opened."""
        if self._opened is None and self._opens is not None:
            with self._index_lock:
                if self._opened is None:
                    self._open(self._opens)
        if self._opened is None:
            raise IndexMissingError("this searcher has no index yet; call index(items, path) or open(path) first")
        return self._opened

    @property
    def opened(self) -> Generation:
        """The generation of the index that is searched; an IndexMissingError if none was opened."""
        return self.open_retrievers().generation

    def refresh(self) -> bool:
        """Switch to a newer generation of the index, if there is one; return whether there was one."""
        generation = self.opened
        if generation.is_current():
            return False
        self.open(generation.path)
        return True

    def extra_state(self) -> dict[str, Any]:
        """Where the index is: a copy opens it at first use."""
        return {"_opens": self._opens if self._opened is None else self._opened.generation.path}

    def index_records(self) -> list[RetrieverRecord]:
        """The opened index's records of this searcher's retrievers and their parts: their files, and what they cost."""
        manifest, needed = self.opened.manifest, with_parts(self.retrievers.values())
        prints = {fingerprint_of(manifest.corpus.fingerprint, retriever.identity) for retriever in needed}
        return [record for record in manifest.retrievers if record.fingerprint in prints]
