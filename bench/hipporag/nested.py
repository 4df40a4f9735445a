"""A choice among systems and their weights, judged by questions that had no part in it.

For each fold of questions, every system is fitted and judged by cross-validation within the other folds; the one that does
best there is fitted to all of them, and searches for the questions of the fold. So neither weights nor the choice have seen the
questions by which they are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.multihop.fitting import Blinded
from nlp_retrieval import LinkGraphRetriever
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates
from nlp_retrieval.retrievers.link_graph.tuning import fit_weights

_FOLDS, _INNER = 5, 2
_DEPTH = 21
_CHOSEN_BY = "recall@5"

Values = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class System:
    """The candidates of one link graph for all questions.

    Args:
        pools: one per question.
        golden: ``[questions]``, the rows of each question's gold.
        start: weights that know nothing.
    """

    pools: list[GraphCandidates]
    golden: list[Rows]
    start: dict[str, float]

    @classmethod
    def of(cls, graph: LinkGraphRetriever, index: Path, judged: BaseQueryLoader) -> System:
        """Search an index."""
        generation = open_generation(index)
        blinded = Blinded(graph)
        pools = list(blinded.open(generation).pools([query.text for query in judged.queries()], _DEPTH))
        golden = [
            generation.items.rows_of([item_id for item_id, grade in one.relevance.items() if grade > 0])
            for one in judged.gold()
        ]
        return cls(pools, golden, blinded.weights)

    def fitted(self, questions: Sequence[int]) -> dict[str, float]:
        """Return weights that were fitted to some questions."""
        pools = [self.pools[number] for number in questions]
        gold = [
            np.isin(pool.rows[: len(pool.evidence["pagerank"])], self.golden[number])
            for number, pool in zip(questions, pools, strict=True)
        ]
        return fit_weights(pools, gold, self.start)

    def judged(self, questions: Sequence[int], weights: Mapping[str, float]) -> Values:
        """Return the measures of some questions, ranked by weights."""
        ranked = [self.pools[number].ranked(weights, _DEPTH)[0] for number in questions]
        return measures(ranked, [self.golden[number] for number in questions])


def measures(lists: Sequence[Rows], golden: Sequence[Rows]) -> Values:
    """Return recall at 2 and 5 and perfect recall at 5, ``[questions]`` each."""
    values = {}
    for k in (2, 5):
        values[f"recall@{k}"] = np.array([np.isin(gold, rows[:k]).mean() for rows, gold in zip(lists, golden, strict=True)])
    values["perfect_recall@5"] = (values["recall@5"] == 1).astype(np.float64)
    return values


def folds_of(n_questions: int) -> Rows:
    """Return the fold of each question: those of ``nlp-retrieval tune``."""
    folds: Rows = np.random.default_rng(0).permutation(np.arange(n_questions) % _FOLDS)
    return folds


def out_of_fold(systems: Mapping[str, System]) -> tuple[Values, list[str]]:
    """Choose and fit in every fold; return the measures of all questions, and what was chosen in each fold.

    Args:
        systems: by name; of one there is nothing to choose.
    """
    (n_questions,) = {len(system.pools) for system in systems.values()}
    folds = folds_of(n_questions)
    values = {name: np.zeros(n_questions) for name in measures([], [])}
    chosen = []
    for fold in range(_FOLDS):
        learned, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        best = max(systems, key=lambda name: _within(systems[name], learned)) if len(systems) > 1 else next(iter(systems))
        chosen.append(best)
        found = systems[best].judged(held.tolist(), systems[best].fitted(learned.tolist()))
        for name, column in found.items():
            values[name][held] = column
    return values, chosen


def _within(system: System, questions: Rows) -> float:
    """What a system reaches by cross-validation within some questions."""
    found = []
    for inner in range(_INNER):
        held = np.arange(len(questions)) % _INNER == inner
        weights = system.fitted(questions[~held].tolist())
        found.append(system.judged(questions[held].tolist(), weights)[_CHOSEN_BY])
    return float(np.concatenate(found).mean())
