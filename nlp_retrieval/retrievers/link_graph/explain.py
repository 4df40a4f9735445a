"""Explains chains of links in words, with the sentences that show them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nlp_retrieval.core.explanation import Explanation, Step
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.candidates import Seeded
from nlp_retrieval.retrievers.link_graph.links.base import BaseLinkExtractor
from nlp_retrieval.retrievers.link_graph.store.link_graph import WeightedGraph
from nlp_retrieval.retrievers.link_graph.walk.chains import LinkChain


def explanation_of(
    chain: LinkChain, seeded: Seeded, graph: WeightedGraph, kinds: Mapping[str, BaseLinkExtractor], items: ItemTable
) -> Explanation:
    """Put a chain into words.

    Args:
        chain: begins where the walk restarts, and follows links of the graph.
        seeded: where the walk restarts, and why.
        graph: the links that the walk follows.
        kinds: the extractor of each kind of links, in the order of the graph's types.
        items: the items of the index.
    """
    passages = items.items(np.array(chain.rows, np.int64))
    pairs = zip(chain.rows, passages, chain.rows[1:], passages[1:], strict=False)
    steps = tuple(_step(graph, kinds, *pair) for pair in pairs)
    return Explanation(passages[-1], _origin(chain.rows[0], seeded), steps, chain.strength)


def _origin(row: int, seeded: Seeded) -> str:
    """Why the walk restarts at a row, in words."""
    reasons = []
    for label, (rows, scores) in seeded.scores.items():
        positions = np.flatnonzero(rows == row)
        if len(positions):
            reasons.append(f"{label} ranks it {int(positions[0]) + 1} of {len(rows)} (score {scores[positions[0]]:.3g})")
    if row in seeded.titled_rows:
        reasons.append("the query names its title")
    return " and ".join(reasons)


def _step(
    graph: WeightedGraph,
    kinds: Mapping[str, BaseLinkExtractor],
    row: int,
    source: SearchableItem,
    next_row: int,
    target: SearchableItem,
) -> Step:
    """The strongest link between two rows, and the sentence that shows it."""
    links = graph.graph
    part = slice(int(links.offsets[row]), int(links.offsets[row + 1]))
    between = np.flatnonzero(links.neighbours[part] == next_row)
    types = links.types[part][between]
    number = int(types[(links.weights[part][between] * graph.type_weights[types]).argmax()])
    kind, extractor = list(kinds.items())[number // 2]
    along = number % 2 == 0
    shown = extractor.evidence(source, target) if along else extractor.evidence(target, source)
    sentence = (shown.text, shown.start, shown.end) if shown else ()
    return Step(source, target, kind, along, *sentence)
