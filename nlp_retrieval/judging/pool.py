"""What may be judged, how it was chosen, and what is known of it: the meeting point of projects, designs and estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.queries import synthetic_note

SYNTHETIC_GROUP = "synthetic"
"""Name of the group of the questions that a model wrote."""


@dataclass(frozen=True, eq=False)
class JudgingPool:
    """Pairs of question and passage that may be judged, and what is known of them.

    Args:
        query_ids: in order.
        families: per query; queries of a family are not independent. None: its own family.
        groups: ``[queries]`` each, by name.
        systems: by system, per query, the numbers of pairs in the order of its ranking, to the depth.
        pair_query: ``[pairs]``, number of the query.
        item_ids: ``[pairs]``.
        inclusion: ``[pairs]``, probability with which the design chooses a pair for people, above 0 unless it never does.
        query_inclusion: ``[queries]``, the same for whole queries, of which all pairs are judged; 1 if queries are not sampled.
        chosen: ``[pairs]``, whether the design chose it.
        grades: ``[pairs]``, people's grade; NaN where nobody has judged (yet).
        model: ``[pairs]``, a model's grade, which may lie between two grades; NaN where it gave none.
        relevant_from: the least grade that counts as relevant.
        reached: ``[queries]``, whether judging has come to a query, in the random order of families; None: to all. A query of
            which no pair was chosen has nothing to wait for, and would otherwise count before its turn.

    Examples:
        >>> project = JudgingProject.create("judging", queries, {"a": {"q1": [("whale", 2.0), ("fox", 1.0)]}}, items)
        >>> pool = project.pool()
        >>> pool.query_ids, pool.item_ids, pool.systems["a"][0].tolist()
        (['q1'], ['whale', 'fox'], [0, 1])
    """

    query_ids: list[str]
    families: list[str | None]
    groups: Mapping[str, NDArray[np.bool_]]
    systems: Mapping[str, list[NDArray[np.int64]]]
    pair_query: NDArray[np.int64]
    item_ids: list[str]
    inclusion: NDArray[np.float64]
    query_inclusion: NDArray[np.float64]
    chosen: NDArray[np.bool_]
    grades: NDArray[np.float64]
    model: NDArray[np.float64]
    relevant_from: float = 1
    reached: NDArray[np.bool_] | None = None

    @property
    def synthetic_note(self) -> str:
        """Return the sentence that belongs beside every figure if a model wrote some of the questions; else ``""``."""
        members = self.groups.get(SYNTHETIC_GROUP)
        return "" if members is None else synthetic_note(int(members.sum()), len(members))
