"""Where the walk over entities and passages restarts for one query, and why."""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.retrievers.entity_sentences.graph.activation import Activation
from nlp_retrieval.retrievers.entity_sentences.graph.sentence_graph import QueryNames


@dataclass(frozen=True)
class Started:
    """Where the walk of a query restarts.

    Args:
        names: the entities that the query names.
        active: the entities that they lead to.
        rows: hits of the seeds, ascending.
        shares: of the restarts that are at each; those of rows and entities together sum to 1, or are all 0.
        entity_shares: the same of the active entities.
        scores: hits of each seed: rows, best first, and their scores.
    """

    names: QueryNames
    active: Activation
    rows: Rows
    shares: Scores
    entity_shares: Scores
    scores: dict[str, tuple[Rows, Scores]]
