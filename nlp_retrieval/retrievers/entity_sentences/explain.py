"""Explains in words how a walk over entities and passages came to a passage, with the sentences that led there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.explanation import Explanation, Step
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.entity_sentences.graph.sentence_graph import SentenceGraph
from nlp_retrieval.retrievers.entity_sentences.started import Started
from nlp_retrieval.retrievers.link_graph.links.base import LinkSentence
from nlp_retrieval.retrievers.link_graph.links.entity_sentences import shown_mention
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import hash_of
from nlp_retrieval.retrievers.link_graph.walk.chains import LinkChain, strongest_chains
from nlp_retrieval.text.entities import EntityFinder
from nlp_retrieval.text.sentence_entities import PassageEntities, entities_by_sentence

_KIND = "entity_sentences"


def explanations_of(
    rows: Rows,
    graph: SentenceGraph,
    start: Started,
    restarts: tuple[Rows, Scores],
    damping: float,
    items: ItemTable,
    finder: EntityFinder,
) -> list[Explanation | None]:
    """Put the strongest chain to each passage into words; None where none leads there.

    Args:
        rows: the passages.
        graph: what the walk follows.
        start: where it restarts, and why.
        restarts: nodes, ascending, and the shares of the restarts at each.
        damping: probability of following a link.
        items: the items of the index.
        finder: finds the entities, as when the index was built.
    """
    chains = strongest_chains(graph.walk, *restarts, rows, damping)
    teller = _Teller(graph, start, items, finder)
    return [None if chain is None else teller.told(chain) for chain in chains]


@dataclass(frozen=True)
class _Stop:
    """A passage of a chain.

    Args:
        row: of the passage.
        entity: over which it was reached; None where the search began at it.
        sentence: which of its sentences led on, as a number of the graph; None where none did.
    """

    row: int
    entity: int | None
    sentence: int | None = None


class _Teller:
    """Tells chains of passages and entities as steps between passages.

    Args:
        graph: what the walk follows.
        start: where it restarts, and why.
        items: the items of the index.
        finder: finds the entities, as when the index was built.
    """

    def __init__(self, graph: SentenceGraph, start: Started, items: ItemTable, finder: EntityFinder) -> None:
        self._graph, self._start, self._items, self._finder = graph, start, items, finder
        self._known: dict[int, tuple[SearchableItem, PassageEntities]] = {}

    def told(self, chain: LinkChain) -> Explanation:
        """An explanation of a chain that ends at a passage."""
        stops = [next(same) for _, same in groupby(self._stops(chain), key=attrgetter("row"))]
        steps = tuple(self._step(one.row, other) for one, other in pairwise(stops))
        return Explanation(self._read(stops[-1].row)[0], self._origin(stops[0]), steps, chain.strength)

    def _stops(self, chain: LinkChain) -> Iterator[_Stop]:
        """The passages in turn: those of the sentences that led to the first entity, then those of the walk."""
        first_entity = self._graph.n_passages
        nodes = chain.rows
        if nodes[0] >= first_entity:
            for sentence, entity in self._start.active.bridges_to(nodes[0] - first_entity):
                yield _Stop(int(self._graph.owner[sentence]), entity, sentence)
        for number, node in enumerate(nodes):
            if node < first_entity:
                yield _Stop(node, nodes[number - 1] - first_entity if number else None)

    def _origin(self, stop: _Stop) -> str:
        """Why the search began at a passage, in words."""
        if stop.entity is not None:
            named = dict(zip(self._start.names.entities.tolist(), self._start.names.texts, strict=True))
            shown = self._shown(stop)
            return f"the query names {named[stop.entity]!r}" + (f", and its text says: {shown.text}" if shown else "")
        reasons = []
        for label, (rows, scores) in self._start.scores.items():
            positions = np.flatnonzero(rows == stop.row)
            if len(positions):
                reasons.append(f"{label} ranks it {int(positions[0]) + 1} of {len(rows)} (score {scores[positions[0]]:.3g})")
        return " and ".join(reasons)

    def _step(self, row: int, stop: _Stop) -> Step:
        """A step over an entity that both passages name, with a sentence that names it."""
        source, target = self._read(row)[0], self._read(stop.row)[0]
        shown, along = self._shown(stop), False
        if shown is None:
            shown, along = self._shown(_Stop(row, stop.entity)), True
        sentence = (shown.text, shown.start, shown.end) if shown else ()
        return Step(source, target, _KIND, along and shown is not None, *sentence)

    def _shown(self, stop: _Stop) -> LinkSentence | None:
        """The sentence of a passage that led on, or else the first that names the entity; None where only its title does."""
        item, passage = self._read(stop.row)
        wanted = None if stop.entity is None else int(self._graph.hashes[stop.entity])
        named = [{name for name in names if hash_of(name) == wanted} for names in passage.sentences]
        first = int(self._graph.sentences[stop.row])
        numbers = range(len(named)) if stop.sentence is None else [stop.sentence - first]
        for number in numbers:
            if number < len(named) and (named[number] or stop.sentence is not None):
                return shown_mention(item.content[slice(*passage.spans[number])], named[number])
        return None

    def _read(self, row: int) -> tuple[SearchableItem, PassageEntities]:
        if row not in self._known:
            (item,) = self._items.items(np.array([row], np.int64))
            (passage,) = entities_by_sentence([item], self._finder)
            self._known[row] = item, passage
        return self._known[row]
