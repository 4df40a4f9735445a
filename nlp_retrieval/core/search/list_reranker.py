"""Rerankers of whole lists: a candidate's score depends on the other candidates in its list."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import CandidateBatch, offsets_of
from nlp_retrieval.core.forks import use_one_thread_after_fork
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker


class BaseListReranker(BaseReranker):
    """Reorders lists, each as a whole. A subclass implements ``score_lists``; a single pair is a list of one."""

    @abstractmethod
    def score_lists(
        self, queries: Sequence[str], batch: CandidateBatch, items: list[SearchableItem]
    ) -> Mapping[str, NDArray[np.floating]]:
        """Score the candidates of lists, at least one.

        Args:
            queries: one per list of the batch.
            batch: the candidates, each list best first.
            items: ``[candidates]``.

        Returns:
            Columns ``[candidates]``: ``"score"``, higher is better, and optionally its parts. Each becomes a signal,
            ``<label>.<column>``.
        """

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        n_pairs = len(items)
        alone = CandidateBatch(offsets_of([1] * n_pairs), np.arange(n_pairs), np.zeros(n_pairs), np.zeros(n_pairs, np.int32))
        return self.score_lists(queries, alone, items)

    def rerank_batch(
        self, queries: Sequence[str], batch: CandidateBatch, items: list[SearchableItem], label: str | None = None
    ) -> CandidateBatch:
        """Reorder candidates; see the base.

        Raises:
            EngineError: ``score_lists`` did not return a finite number for each candidate.
        """
        if len(items) == 0:
            return batch
        use_one_thread_after_fork()
        columns = self.checked_columns(self.score_lists(queries, batch, items), len(items))
        self.warn_of_cut(self.cut_off([queries[owner] for owner in batch.owner.tolist()], items))
        return self.reordered(batch, columns, label)
