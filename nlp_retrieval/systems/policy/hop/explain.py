"""Explains in words how a hop search came to a passage: where it started, and the relations that led on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nlp_retrieval import Explanation, SearchableItem
from nlp_retrieval.core import ItemTable, Rows, Scores, Step
from nlp_retrieval.systems.policy.relations.best_first import RelationPath
from nlp_retrieval.systems.policy.relations.relation import Relation, Relations

_LONGEST = 300


def path_explained(path: RelationPath, relations: Relations, origin: str, items: ItemTable) -> Explanation:
    """Put a path into words.

    Args:
        path: from a start to a passage.
        relations: those that its numbers mean.
        origin: why the search began at its start.
        items: the items of the index.
    """
    passages = items.items(np.array(path.rows, np.int64))
    by_row = dict(zip(path.rows, passages, strict=True))
    steps = tuple(
        _step(source, target, relations.at(number), by_row)
        for source, target, number in zip(path.rows, path.rows[1:], path.relations, strict=False)
    )
    return Explanation(passages[-1], origin, steps, path.strength)


def start_of(row: int, label: str, rows: Rows, scores: Scores) -> str:
    """Why the search began at a passage, in words; empty where it did not.

    Args:
        row: the passage.
        label: names the starting retriever.
        rows: what it found, best first.
        scores: of these.
    """
    places = np.flatnonzero(rows == row)
    if not len(places):
        return ""
    return f"{label} ranks it {int(places[0]) + 1} of {len(rows)} (score {scores[places[0]]:.3g})"


def change_in_words(kind: str, share: float, counterpart: Relation | None, asked: str) -> str:
    """What of a passage a version changed, in words.

    Args:
        kind: ``added`` or ``dropped``.
        share: of its words that are new, or gone.
        counterpart: the relation to its closest counterpart in the other version; None where it has none.
        asked: what the question is about.
    """
    what = "new since the version before" if kind == "added" else "gone in the next version"
    if counterpart is None:
        edited = "it has no counterpart there"
    elif kind == "added":
        edited = f"it takes up a passage there of which {counterpart.carried:.0%} is carried over"
    else:
        edited = f"a passage there takes up {counterpart.carried:.0%} of it"
    if counterpart is not None and counterpart.changed:
        edited += f", with {counterpart.changed} other quantit{'y' if counterpart.changed == 1 else 'ies'}"
    return f'{share:.0%} of its words are {what}; {edited}; ranked by what else was asked: "{asked}"'


def _step(source: int, target: int, relation: Relation, items: Mapping[int, SearchableItem]) -> Step:
    along = relation.source == source
    begin, end = relation.source_span
    shown = items[relation.source].content[begin:end]
    sentence = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
    return Step(items[source], items[target], relation.type, along, sentence, 0, len(sentence))
