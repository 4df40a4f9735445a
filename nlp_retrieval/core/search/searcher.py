"""The composition: process, retrieve, fuse, rerank, cut.

A searcher is made of parts and adds no scoring of its own. One call to ``search`` uses one generation of the index
throughout; a newer one is taken up by ``refresh``.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Mask
from nlp_retrieval.core.components.component import Component, canonical_json, codes_in, require_distinct_names
from nlp_retrieval.core.components.interfaces import BaseLoader, BaseUserQueryProcessor
from nlp_retrieval.core.explanation import Explanation
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.index.build import IndexReport, build_index
from nlp_retrieval.core.index.generation import Generation, fingerprint_of, open_generation
from nlp_retrieval.core.index.manifest import Manifest, RetrieverRecord
from nlp_retrieval.core.index.publishing import tidy
from nlp_retrieval.core.index.update import UpdateReport, add_items, compact_index, delete_items
from nlp_retrieval.core.measure import stage
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import check_k, check_processed, check_queries, check_results, says_nothing
from nlp_retrieval.core.search.copying import OpenedIndex
from nlp_retrieval.core.search.fusion import BaseFusion, RawScore, ReciprocalRankFusion
from nlp_retrieval.core.search.interleave import interleave
from nlp_retrieval.core.search.known_retrievers import resolver
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.results import to_results
from nlp_retrieval.core.search.retriever import BaseRetriever, builders_of, labelled, with_parts
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.errors import ConfigurationError, IndexMissingError, RetrievalWarning

Scope = Literal["pooled", "per_subquery"]

_POOL_DEPTH = 100


class _Opened(NamedTuple):
    generation: Generation
    retrievers: dict[str, BaseRetriever]


class Searcher(Component):
    """Composes retrievers, and what stands before and behind them, into one search.

    Args:
        retrievers: at least one; a mapping gives each the label under which its signals appear (by default its registry
            name, with a number where two share it).
        processor: turns each query into sub-queries; by default it is searched as it is.
        fusion: joins the retrievers' lists; by default raw scores for one retriever, reciprocal ranks for several.
        reranker: reorders the fused candidates against the original query.
        scope: ``pooled`` makes one pool per query. ``per_subquery`` keeps each sub-query's candidates apart: fused and
            reranked on their own against the original query, then interleaved by rank.
        depth: candidates per retriever, after its sub-queries are merged (per sub-query with scope ``per_subquery``). By
            default k for one retriever without a reranker, else max(k, 100).
        quota: with scope ``per_subquery``, at most this many results from each sub-query; by default even shares of k,
            and what short lists leave free is filled by the others.
    """

    kind: ClassVar[str] = "searchers"
    name = "searcher"
    _opening: ClassVar[Lock] = Lock()

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        processor: BaseUserQueryProcessor | None = None,
        fusion: BaseFusion | None = None,
        reranker: BaseReranker | None = None,
        scope: Scope = "pooled",
        depth: Annotated[int, Field(ge=1)] | None = None,
        quota: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.retrievers = _labelled(retrievers)
        self.processor = processor
        several = len(self.retrievers) > 1
        self.fusion: BaseFusion = fusion or (ReciprocalRankFusion() if several else RawScore())
        if several:
            self._arguments["fusion"] = self.fusion  # the default, said or not, is one configuration
        self.reranker = reranker
        self.scope: Scope = scope
        self.depth = depth
        self.quota = quota
        if quota is not None and scope != "per_subquery":
            raise ConfigurationError(f"Searcher: quota={quota} has a meaning only with scope='per_subquery'")
        if reranker is not None and reranker.name in self.retrievers:
            raise ConfigurationError(
                f"Searcher: a retriever and the reranker are both called {reranker.name!r}; give the retriever another label"
            )
        require_distinct_names([self])
        self._opened: _Opened | None = None
        self._opened_before: OpenedIndex | None = None

    @property
    def fingerprint(self) -> str:
        """Of the whole configuration: equal searchers have equal fingerprints."""
        parts = [*with_parts(self.retrievers.values()), *filter(None, [self.processor, self.reranker])]
        models = [part.identity for part in parts]
        codes = codes_in(self)
        whole = {"config": self.config, "models": models} | ({"codes": codes} if codes else {})
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()

    @property
    def stages(self) -> list[str]:
        """Names of the stages, in order, as :func:`nlp_retrieval.core.measure.record_stages` reports them."""
        names = ["process"] if self.processor else []
        names += self.retrievers
        names += ["fuse"] if self._fuses else []
        names += [self.reranker.name] if self.reranker else []
        return [*names, "items"]

    @property
    def _fuses(self) -> bool:
        return len(self.retrievers) > 1 or not isinstance(self.fusion, RawScore)

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

    def open(self, path: str | Path) -> Searcher:
        """Open an index that was built before; returns the searcher itself.

        Raises:
            IndexMissingError: there is none, or it lacks one of the retrievers.
            IndexMismatchError: it was built with another configuration.
            IndexDamagedError: a file is not what its checksum says.
        """
        with self._opening:  # or a slow refresh could put an older generation in the place of a newer one
            self._opened = self._opened_on(open_generation(path))
        return self

    def _opened_on(self, generation: Generation) -> _Opened:
        stages = current_stages()
        return _Opened(generation, {label: stages.opened(r, generation) for label, r in self.retrievers.items()})

    @property
    def opened(self) -> Generation:
        """The generation of the index that is searched.

        Raises:
            IndexMissingError: none was opened.
        """
        return self._require_open().generation

    def index_records(self) -> list[RetrieverRecord]:
        """What the opened index says of this searcher's retrievers and their parts: their files, and what they cost."""
        return self._records(self.opened.manifest)

    def _records(self, manifest: Manifest) -> list[RetrieverRecord]:
        needed = with_parts(self.retrievers.values())
        prints = {fingerprint_of(manifest.corpus.fingerprint, r.identity) for r in needed}
        return [record for record in manifest.retrievers if record.fingerprint in prints]

    def refresh(self) -> bool:
        """Take up a newer generation of the index, if there is one; returns whether there was."""
        opened = self._require_open()
        if opened.generation.is_current():
            return False
        self.open(opened.generation.path)
        return True

    def search(self, queries: str | Sequence[str], k: int = 10, where: Where | None = None) -> list[list[RetrievalResult]]:
        """Search.

        Args:
            queries: a list of queries; a bare string counts as a list of one.
            k: at most this many results per query.
            where: only items whose metadata fulfil this are found: ``{"country": "Japan", "year": {"gte": 2015}}``; see
                :mod:`nlp_retrieval.core.filters`.

        Returns:
            One list per query, best first.

        Raises:
            QueryError: a query is no string, k no positive integer, or the filter none that could be meant of these items.
            IndexMissingError: no index was opened.
            IndexDamagedError: a file of the index was changed since it was opened.
            ForkError: it was opened before a fork, which one of the engines does not survive.
        """
        nlqs, cut = check_queries(queries), check_k(k)
        opened = self._require_open()
        opened.generation.item_files.check()
        allowed = opened.generation.items.mask(where)
        if allowed is not None and not allowed.any():
            warnings.warn("no item of this index fulfils the filter; nothing is found", RetrievalWarning, stacklevel=2)
            return [[] for _ in nlqs]
        with stage("process"):
            processed = [[nlq] for nlq in nlqs]
            if self.processor is not None:
                processed = current_stages().subqueries(self.processor, nlqs)
        if self.scope == "pooled":
            batch = self._ranked(opened, nlqs, processed, cut, allowed).head(cut)
        else:
            counts = [len(subqueries) for subqueries in processed]
            alone = [[subquery] for subqueries in processed for subquery in subqueries]
            originals = [nlq for nlq, count in zip(nlqs, counts, strict=True) for _ in range(count)]
            batch = interleave(self._ranked(opened, originals, alone, cut, allowed), counts, cut, self.quota)
        with stage("items"):
            return to_results(batch, opened.generation.items)

    @property
    def explains(self) -> bool:
        """Whether one of the retrievers can say why it found something."""
        return any(type(retriever).explain is not BaseRetriever.explain for retriever in self.retrievers.values())

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]:
        """Say of results why they were found: by the label of each retriever that can tell, the chain that led there.

        Args:
            query: what was searched for.
            results: of that query, from :meth:`search`.

        Returns:
            One mapping per result; empty where no retriever has anything to say.

        Raises:
            QueryError: the query is no string, or a result is none, or not of this index.
            IndexMissingError: no index was opened.
        """
        (nlq,) = check_queries(query)
        opened = self._require_open()
        opened.generation.item_files.check()
        rows = opened.generation.items.rows_of([result.item.item_id for result in check_results(results)])
        subqueries = [nlq]
        if self.processor is not None:
            (subqueries,) = check_processed(self.processor.process([nlq]), 1)
        found: list[dict[str, Explanation]] = [{} for _ in results]
        for label, retriever in opened.retrievers.items():
            retriever.check_opened()
            for subquery in subqueries:
                if says_nothing(subquery):
                    continue
                for told, explanation in zip(found, retriever.explain(subquery, rows, opened.generation.items), strict=True):
                    if explanation and (label not in told or explanation.strength > told[label].strength):
                        told[label] = explanation
        return found

    def depth_for(self, k: int) -> int:
        """Return how many candidates are fetched from each retriever for lists of this length."""
        alone = len(self.retrievers) == 1 and self.reranker is None and self.scope == "pooled"
        return self.depth or (k if alone else max(k, _POOL_DEPTH))

    def _ranked(
        self, opened: _Opened, nlqs: list[str], processed: list[list[str]], k: int, allowed: Mask | None
    ) -> CandidateBatch:
        """Retrieve, fuse and rerank: one list per entry of ``processed``, against the original query beside it."""
        stages = current_stages()
        depth = self.depth_for(k)
        found: dict[str, CandidateBatch] = {}
        for label, retriever in opened.retrievers.items():
            with stage(label):
                found[label] = stages.candidates(retriever, processed, depth, opened.generation, label, allowed)
        batch = next(iter(found.values()))
        if self._fuses:
            with stage("fuse"):
                batch = self.fusion.fuse(found)
                if self.reranker is None and self.scope == "pooled":
                    batch = batch.head(k)
        if self.reranker is not None and len(batch.rows):
            with stage(self.reranker.name):
                batch = stages.reranked(self.reranker, nlqs, batch, opened.generation)
        return batch

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

    def _require_open(self) -> _Opened:
        if self._opened is None and self._opened_before is not None:
            self._open_again(self._opened_before)
        if self._opened is None:
            raise IndexMissingError("this searcher has no index yet; call index(items, path) or open(path) first")
        return self._opened


def _labelled(retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever]) -> dict[str, BaseRetriever]:
    if isinstance(retrievers, Mapping) and (reserved := {"process", "fuse", "fusion", "items"} & set(retrievers)):
        raise ConfigurationError(f"Searcher: {min(reserved)!r} is a stage's name; choose another label")
    return labelled(retrievers, "Searcher: retrievers")
