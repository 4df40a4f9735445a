"""Ranks of the gold in the candidates of each retriever, before fusion and reranking.

Equal retrievers of several configurations count as one. With sub-queries, a document's rank is its best in any of their lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nlp_retrieval.benchmarks.stages.keys import identity_of, key_of
from nlp_retrieval.benchmarks.stages.trace import Retrieved
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.filters import Where
from nlp_retrieval.evaluation.gold import joined
from nlp_retrieval.evaluation.pool import Ranks


class RetrieverRanks:
    """Gathers the ranks of gold documents by retriever.

    Args:
        n_queries: how many there are.
        gold_queries: ``[gold documents]``, the number of the query of each.
        gold_rows: ``[gold documents]``, item rows.
        n_items: number of items of the corpus.
        own_rows: ``[queries]``, the item that is the query itself and takes no rank; -1 if there is none.
    """

    def __init__(self, n_queries: int, gold_queries: Rows, gold_rows: Rows, n_items: int, own_rows: Rows | None = None) -> None:
        self._own_rows = np.full(n_queries, -1, np.int64) if own_rows is None else own_rows
        self._n_queries = n_queries
        self._n_items = n_items + 1  # one more for gold that the corpus lacks
        self._gold = gold_queries * self._n_items + gold_rows
        self._ranks: dict[str, Ranks] = {}
        self._names: dict[str, list[str]] = {}

    def add(
        self,
        configuration: str,
        candidates: Mapping[str, Retrieved],
        lists: Rows,
        filters: Sequence[Where | None] = (),
    ) -> None:
        """Add the output of a configuration's retrievers.

        Args:
            configuration: its name.
            candidates: by label.
            lists: ``[queries + 1]``, start of each query's lists: one each, or one for each of its sub-queries.
            filters: filters of the queries.
        """
        for label, retrieved in candidates.items():
            if len(retrieved.batch.offsets) - 1 != lists[-1]:
                continue  # a part of a retriever, with queries of its own
            content = {"retriever": identity_of(retrieved.retriever), "queries": retrieved.processed}
            key = key_of("retriever", content | ({"filters": list(filters)} if any(filters) else {}))
            ranks = self._ranks_of(retrieved, lists)
            # of searches with several depths, use the deepest
            if key not in self._ranks or (ranks > 0).sum() > (self._ranks[key] > 0).sum():
                self._ranks[key] = ranks
            self._names.setdefault(key, [label, f"{label} ({configuration})"])

    def ranks(self) -> dict[str, Ranks]:
        """Return ``[gold documents]`` by retriever, 0 if it does not return a document.

        A retriever is named by its label and, if several share one, also by its configuration.
        """
        labels = [names[0] for names in self._names.values()]
        shown = {key: names[0] if labels.count(names[0]) == 1 else names[1] for key, names in self._names.items()}
        return {shown[key]: ranks for key, ranks in self._ranks.items()}

    def _ranks_of(self, retrieved: Retrieved, lists: Rows) -> Ranks:
        offsets, rows = retrieved.batch.offsets, retrieved.batch.rows
        list_of_hit = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        owner_of_list = np.repeat(np.arange(self._n_queries), np.diff(lists))
        owner = owner_of_list[list_of_hit]
        counts = rows != self._own_rows[owner]
        before = np.concatenate([[0], np.cumsum(counts)])  # number of counting hits before each
        ranks = before[1:] - before[offsets[list_of_hit]]
        return joined(self._gold, (owner * self._n_items + rows)[counts], ranks[counts])


def gold_rows_of(qrels: Mapping[str, Mapping[str, int]], row_of: Mapping[str, int]) -> tuple[Rows, Rows]:
    """Return the number of the query, and the item row, of every gold document, in the order of the judgements."""
    nowhere = len(row_of) and max(row_of.values()) + 1  # the row for gold that the corpus lacks; it is in no list
    pairs = [(number, row_of.get(item_id, nowhere)) for number, grades in enumerate(qrels.values()) for item_id in grades]
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return columns[0], columns[1]
