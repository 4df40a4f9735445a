"""The control: a knowledge graph in which every passage says what another passage says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.multihop.fitting import Shuffled
from nlp_retrieval import LinkGraphRetriever
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever


class ShuffledKnowledge(HippoRagRetriever):
    """HippoRAG 2 over the index of the real one, with the passages' numbers permuted in what they say.

    Entities, triples, relations and synonyms stay as they are, and so do the passages' own vectors; what is lost is that what
    a passage says has to do with it.
    """

    name = "hipporag-shuffled"

    @property
    def identity(self) -> Config:
        return super().index_identity() | {"name": HippoRagRetriever.name}

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        super().load_segments(segments)
        graph = self._graph_of_index
        other = np.random.default_rng(0).permutation(graph.n_rows)
        self._graph_of_index = replace(
            graph, statements=_moved(graph.statements, other), mentions=_moved(graph.mentions, other)
        )
        self._graph = self._graph_of_index.weighted(None, passages=self._walks_passages)


def shuffled(retriever: BaseRetriever) -> BaseRetriever:
    """The same retriever, with links and knowledge that mean nothing, wherever it has any."""
    settings = dict(retriever._arguments)
    if isinstance(retriever, HippoRagRetriever):
        return ShuffledKnowledge(**settings)
    if isinstance(retriever, LinkGraphRetriever):
        links = [Shuffled(one) for one in settings["links"]]
        return LinkGraphRetriever(**settings | {"seeds": [shuffled(seed) for seed in retriever.seeds.values()], "links": links})
    return retriever


def means_something(retriever: BaseRetriever) -> bool:
    """Whether there is anything in it to shuffle."""
    return isinstance(retriever, HippoRagRetriever | LinkGraphRetriever)


def _moved(pairs: Rows, other: Rows) -> Rows:
    """Pairs whose first number is a row, with the row of another passage, ascending."""
    moved = np.stack([other[pairs[:, 0]], pairs[:, 1]], axis=1)
    return moved[np.lexsort((moved[:, 1], moved[:, 0]))]
