"""Links that join a graph: one graph of all segments, in rows of the index, without what was deleted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.retrievers.link_graph.graph import (
    LinkGraph,
    open_graph,
    write_added_links,
    write_link_graph,
)
from retrievers.link_graph.corpora import links_at, links_from

FIRST = [(0, 1, 1.0), (1, 2, 0.5), (2, 0, 2.0)]
SECOND = [(3, 0, 1.0), (2, 4, 0.25)]
THIRD = [(5, 3, 4.0), (1, 5, 3.0), (5, 4, 1.0)]


def three_segments(folder: Path, live: Mask | None = None) -> list[SegmentFolder]:
    """A graph of three nodes, two that joined it, and one that joined those."""
    bounds = [(0, 3), (3, 5), (5, 6)]
    folders = [folder / name for name in ("first", "second", "third")]
    write_link_graph(folders[0], 3, {"k": links_from(FIRST), "other": links_from([])})
    for path, triples, (_, end) in zip(folders[1:], (SECOND, THIRD), bounds[1:], strict=True):
        path.mkdir()
        write_added_links(path, {"k": links_from(triples), "other": links_from([(end - 1, 0, 1.0)])}, end)
    parts = [None if live is None else live[begin:end] for begin, end in bounds]
    return [SegmentFolder(path, *ends, part) for path, ends, part in zip(folders, bounds, parts, strict=True)]


def told(graph: LinkGraph) -> list[list[tuple[int, str, bool, float]]]:
    return [links_at(graph, node) for node in range(graph.n_nodes)]


@pytest.mark.parametrize("gone", [[], [3, 5], [0, 1, 2, 3, 4, 5]])
def test_segments_are_one_graph_of_the_links_whose_ends_are_there(tmp_path: Path, gone: list[int]) -> None:
    live = np.ones(6, bool)
    live[gone] = False
    graph = open_graph(three_segments(tmp_path, live if gone else None))
    kept = [one for one in FIRST + SECOND + THIRD if not {one[0], one[1]} & set(gone)]
    others = [(row, 0, 1.0) for row in (4, 5) if row not in gone and 0 not in gone]
    at_once = LinkGraph.of(6, {"k": links_from(kept), "other": links_from(others)})
    assert told(graph) == told(at_once)
    assert graph.sums.tolist() == at_once.sums.tolist()
