"""What stages of a sweep are missing in its store: found by searching with every configuration, and computing none of them.

First the candidates of retrievers are missing; once these are there, the scores of rerankers. Blocks of pairs are cut as one
process cuts them that searches with all configurations in their order, because what a model gives for a pair depends on the
pairs beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from nlp_retrieval.benchmarks.cost.measuring import Sample
from nlp_retrieval.benchmarks.filters.of_queries import grouped
from nlp_retrieval.benchmarks.filters.searching import search_where
from nlp_retrieval.benchmarks.stages.candidates import unpacked
from nlp_retrieval.benchmarks.stages.keys import CANDIDATES, candidates_key, pairs_key, scores_group
from nlp_retrieval.benchmarks.stages.shared import SharedStages, unknown_pairs
from nlp_retrieval.benchmarks.stages.store import StageStore
from nlp_retrieval.benchmarks.stages.tables import pairs_entry
from nlp_retrieval.core.candidates import CandidateBatch, Mask
from nlp_retrieval.core.components.component import Component, Config
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.search.stages import using_stages

__all__ = ["MissingStage", "PlanningStages"]


class _EnoughError(Exception):
    """A search has come to where its stages are not known yet, or are not of interest."""


@dataclass(frozen=True)
class MissingStage:
    """A stage that is not in the store.

    Args:
        component: whose stage it is.
        told: the stage as plain values, as a worker is sent it.
    """

    component: Component
    told: Config

    @property
    def place(self) -> tuple[str, str]:
        """The group and the key of its result."""
        return self.told["group"], self.told["key"]

    @property
    def name(self) -> str:
        """For messages: ``candidates of faiss``."""
        return f"{CANDIDATES if self.told['group'] == CANDIDATES else 'scores'} of {self.component.name}"


class PlanningStages(SharedStages):
    """Finds stages in the store, and writes down which are missing. Sub-queries alone are computed: others depend on them.

    Args:
        store: of the sweep.
    """

    def __init__(self, store: StageStore) -> None:
        super().__init__(store)
        self.candidates_missing: dict[tuple[str, str], MissingStage] = {}
        self.scores_missing: dict[tuple[str, str], MissingStage] = {}
        self._where: Where | None = None
        self._whole = True

    def plan(self, searcher: Searcher, sample: Sample, k: int) -> None:
        """Write down what a configuration lacks.

        Args:
            searcher: opened.
            sample: all queries, with their filters.
            k: length of the lists.
        """
        for where, positions in grouped(sample.filters):
            self._where, self._whole = where, True
            with using_stages(self), suppress(_EnoughError):
                search_where(searcher, [sample.texts[position] for position in positions], k, where)

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> CandidateBatch:
        key = candidates_key(retriever, processed, depth, generation, allowed)
        entry = self.store.find(CANDIDATES, key)
        if entry is not None:
            return unpacked(entry, label)
        self._whole = False
        asked = {"queries": processed, "depth": depth, "where": self._where, "label": label}
        told = {"group": CANDIDATES, "key": key, "component": retriever.config} | asked
        missing = MissingStage(retriever, told)
        self.candidates_missing.setdefault(missing.place, missing)
        return CandidateBatch.empty(len(processed))

    def reranked(
        self, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch, generation: Generation
    ) -> CandidateBatch:
        if self._whole and type(reranker).rerank_batch is BaseReranker.rerank_batch:
            group = scores_group(reranker, generation)
            table = self.pairs_of(group, generation)
            keys = table.keys(nlqs, batch.owner, batch.rows)
            for queries, rows in unknown_pairs(table, keys, reranker, nlqs, batch):
                numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
                asked = {"queries": list(numbers), "query": [numbers[query] for query in queries], "rows": rows.tolist()}
                told = {"group": group, "key": pairs_key(queries, rows), "component": reranker.config} | asked
                missing = MissingStage(reranker, told)
                self.scores_missing.setdefault(missing.place, missing)
                table.add(pairs_entry(queries, rows, {}, {}))
        raise _EnoughError
