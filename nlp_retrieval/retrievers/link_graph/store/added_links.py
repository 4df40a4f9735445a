"""The links that items brought when they joined an index, in flat files of their own.

Rows are those of the whole index: a link touches at least one of the items that joined, and none that joined later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, offsets_of
from nlp_retrieval.core.files.columns import CURE, check_numbers, damaged, mapped
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.link_graph.store.link_graph import LinkGraph
from nlp_retrieval.retrievers.link_graph.store.links import Links

_FILE = "links.json"
_SOURCES, _TARGETS, _WEIGHTS = "link_sources.npy", "link_targets.npy", "link_weights.npy"


def write_added_links(folder: Path, links: Mapping[str, Links], n_rows: int) -> None:
    """Write links as flat files that :func:`open_added_links` maps.

    Args:
        folder: where to write; it must exist.
        links: by kind. The same links in the same order give the same bytes.
        n_rows: how many rows the index has, the joining items included.

    Raises:
        EngineError: links that cannot be stored; the message names the kind.
    """
    merged = {kind: part.merged(kind, n_rows) for kind, part in links.items()}
    all_links = Links.joined(list(merged.values()))
    np.save(folder / _SOURCES, all_links.sources, allow_pickle=False)
    np.save(folder / _TARGETS, all_links.targets, allow_pickle=False)
    np.save(folder / _WEIGHTS, all_links.weights, allow_pickle=False)
    facts = {"kinds": list(merged), "n_links": [len(part.sources) for part in merged.values()]}
    (folder / _FILE).write_text(json.dumps(facts, ensure_ascii=False, indent=2) + "\n", "utf-8")


def open_added_links(segment: SegmentFolder) -> dict[str, Links]:
    """Map the links of a segment, and check each once.

    Raises:
        IndexDamagedError: a file is missing or unreadable, or holds no links of this segment.
    """
    path = segment.folder / _FILE
    try:
        facts = read_json_file(path)
        counts = dict(zip(facts["kinds"], map(int, facts["n_links"]), strict=True))
    except OSError as error:
        raise IndexDamagedError(f"{path} cannot be read ({error.strerror}); {CURE}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, "it does not describe links") from error
    if min(counts.values(), default=0) < 0:
        raise damaged(path, "it does not describe links")
    shape = (sum(counts.values()),)
    sources: Rows = mapped(segment.folder / _SOURCES, np.int64, shape)
    targets: Rows = mapped(segment.folder / _TARGETS, np.int64, shape)
    weights: NDArray[np.float32] = mapped(segment.folder / _WEIGHTS, np.float32, shape)
    for name, rows in ((_SOURCES, sources), (_TARGETS, targets)):
        check_numbers(segment.folder / name, rows, segment.end_row)
    if (np.maximum(sources, targets) < segment.first_row).any():
        raise damaged(segment.folder / _TARGETS, "a link touches no item of its segment")
    if not ((weights > 0) & (weights < np.inf)).all():
        raise damaged(segment.folder / _WEIGHTS, "it holds a number that is not a weight")
    bounds = offsets_of(list(counts.values())).tolist()
    parts = zip(counts, bounds, bounds[1:], strict=False)
    return {kind: Links(sources[begin:end], targets[begin:end], weights[begin:end]) for kind, begin, end in parts}


def open_graph(segments: Sequence[SegmentFolder]) -> LinkGraph:
    """Open the links of all segments of an index as one graph of all rows, without links to or from deleted items.

    A single segment without deleted items stays mapped; any other graph is built in memory.

    Raises:
        IndexDamagedError: a file is missing or cannot be read, or the files contradict one another.
    """
    first = segments[0]
    graph = LinkGraph.open(first.folder)
    if graph.n_nodes != first.end_row:
        raise IndexDamagedError(f"the graph in {first.folder} has {graph.n_nodes} nodes for {first.end_row} items; {CURE}")
    if len(segments) == 1 and first.live is None:
        return graph
    links_of_segments = [graph.links(), *(open_added_links(segment) for segment in segments[1:])]
    if any(links.keys() != graph.n_links.keys() for links in links_of_segments):
        raise IndexDamagedError(f"the segments beside {first.folder} have other kinds of links; {CURE}")
    live = live_of(segments)
    joined = {kind: Links.joined([links[kind] for links in links_of_segments]).among(live) for kind in graph.n_links}
    return LinkGraph.of(segments[-1].end_row, joined)


def join_added_links(segments: Sequence[SegmentFolder]) -> dict[str, Links]:
    """Join the links of adjacent segments into those of one segment of the items that are not deleted.

    Args:
        segments: at least one; the first segment of the index is not among them.
    """
    first_row = segments[0].first_row
    live = np.concatenate([np.ones(first_row, bool), live_of(segments)])
    new_rows = np.cumsum(live) - 1
    joined: dict[str, Links] = {}
    links_of_segments = [open_added_links(segment) for segment in segments]
    for kind in links_of_segments[0]:
        links = Links.joined([added[kind] for added in links_of_segments]).among(live)
        joined[kind] = Links(new_rows[links.sources], new_rows[links.targets], links.weights)
    return joined


def live_of(segments: Sequence[SegmentFolder]) -> Mask:
    """Return a mask of the items of adjacent segments that are not deleted."""
    return np.concatenate([np.ones(len(part), bool) if part.live is None else part.live for part in segments])


def live_among(everything: ItemTable, segments: Sequence[SegmentFolder]) -> Mask:
    """Return a mask of the items that are not deleted when some join an index.

    Args:
        everything: the items of the index and the joining ones.
        segments: of the index before they join.
    """
    before = live_of(segments)
    live = np.ones(len(everything), bool) if everything.live is None else everything.live.copy()
    live[: len(before)] &= before
    return live
