"""A directed graph over passages in memory-mapped files, and the steps that a walk may take.

Nodes are item rows. Links come in kinds, and each is stored twice: along, at its source, and against, at its target. The links
of a node are contiguous, so a walk from a few nodes reads only their ranges. The weight of a kind is given when the graph is
used, not when it is written: sums per node and type normalise the steps for any weights.

No node ever links to itself, a kind links a pair at most once in each direction, and for each entry (v, u, along) at v
there is an entry (u, v, against) at u with the same weight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.files.columns import CURE, check_numbers, check_offsets, damaged, mapped
from nlp_retrieval.core.files.opening import read_json_file
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError


@dataclass(frozen=True)
class Links:
    """Links of one kind as columns; the text of the source points to the target.

    Args:
        sources: item rows.
        targets: item rows.
        weights: finite, above 0.

    Examples:
        >>> links = Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))
        >>> links.targets.tolist()
        [1, 2]
    """

    sources: Rows
    targets: Rows
    weights: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence[Links]) -> Links:
        """Put lists of links one after another."""
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.sources for part in parts)]),
            np.concatenate([none, *(part.targets for part in parts)]),
            np.concatenate([none.astype(np.float32), *(part.weights for part in parts)]),
        )

    def where(self, kept: Mask) -> Links:
        """Return those links that a mask over them keeps."""
        return Links(self.sources[kept], self.targets[kept], self.weights[kept])

    def among(self, live: Mask) -> Links:
        """Return the links neither of whose ends is deleted."""
        return self if live.all() else self.where(live[self.sources] & live[self.targets])

    def merged(self, kind: str, n_nodes: int) -> Links:
        """Leave out self links, add up repeated ones, and sort by source and target.

        Raises:
            EngineError: a row outside ``0..n_nodes - 1``, or a weight that is not above 0.
        """
        for rows in (self.sources, self.targets):
            if len(rows) and (rows.min() < 0 or rows.max() >= n_nodes):
                wrong = int(rows[(rows < 0) | (rows >= n_nodes)][0])
                raise EngineError(f"links of kind {kind!r} name the row {wrong}; rows are 0..{n_nodes - 1}")
        if len(wrong_weights := self.weights[~(np.isfinite(self.weights) & (self.weights > 0))]):
            raise EngineError(f"links of kind {kind!r} have a weight of {wrong_weights[0]}; weights are finite and above 0")
        keys = np.multiply(self.sources, n_nodes, dtype=np.int64) + self.targets
        keys[self.sources == self.targets] = -1
        is_typed = self.sources.dtype == self.targets.dtype == np.int64 and self.weights.dtype == np.float32
        if is_typed and (keys >= 0).all() and (keys[1:] > keys[:-1]).all():
            return self
        return merged_links(keys, self.weights, n_nodes)


def merged_links(keys: NDArray[np.int64], weights: NDArray[np.float32], n_nodes: int) -> Links:
    """Add up repeated links, given by ``source * n_nodes + target`` (dropped below 0), and sort by source and target."""
    order = np.argsort(keys, kind="stable")
    order = order[np.searchsorted(keys, 0, sorter=order) :]
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = weights[order].astype(np.float64)
    sums = np.add.reduceat(sums, first) if len(first) else sums
    sources, targets = np.divmod(keys[first], max(n_nodes, 1))
    return Links(sources, targets, sums.astype(np.float32))


class Workspace(NamedTuple):
    """Memory of a local walk, written in place."""

    waiting: Scores
    """``[nodes]``, mass that waits; all 0 between walks, as ``kept``, the mass that stays."""
    kept: Scores
    noted: Rows
    """``[2 * nodes]``, nodes that a step reached."""
    ready: Rows
    """``[nodes]``, nodes that are next."""


_ENTRIES_AT_ONCE = 1 << 17
_DTYPES: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "neighbours": np.int32,
    "weights": np.float32,
    "types": np.uint8,
    "sums": np.float32,
}


def write_link_graph(folder: Path, n_nodes: int, links: Mapping[str, Links]) -> None:
    """Write a graph as flat files that :meth:`LinkGraph.open` maps.

    Args:
        folder: receives the files; created if it does not exist.
        n_nodes: how many items there are.
        links: by kind. The same links in the same order give the same bytes.

    Raises:
        EngineError: links that cannot be stored; the message names the kind.

    Examples:
        >>> links = Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))
        >>> Path("graph").mkdir()
        >>> write_link_graph(Path("graph"), 3, {"mentions": links})
    """
    graph = LinkGraph.of(n_nodes, links)
    folder.mkdir(parents=True, exist_ok=True)
    for name in _DTYPES:
        np.save(folder / f"{name}.npy", getattr(graph, name), allow_pickle=False)
    _write_facts(folder / "graph.json", graph.n_links, n_nodes)


def _write_facts(path: Path, n_links: Mapping[str, int], n_nodes: int) -> None:
    facts = {"n_nodes": n_nodes, "kinds": list(n_links), "n_links": list(n_links.values())}
    path.write_text(json.dumps(facts, ensure_ascii=False, indent=2) + "\n", "utf-8")


def _read_facts(path: Path) -> tuple[dict[str, int], int]:
    """The number of links by kind, and that of nodes."""
    try:
        facts = read_json_file(path)
        n_links = dict(zip(facts["kinds"], map(int, facts["n_links"]), strict=True))
        n_nodes = int(facts["n_nodes"])
    except OSError as error:
        raise IndexDamagedError(f"{path} cannot be read ({error.strerror}); {CURE}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, "it does not describe links") from error
    if min(n_links.values(), default=0) < 0:
        raise damaged(path, "it does not describe links")
    return n_links, n_nodes


@dataclass(frozen=True, eq=False)
class LinkGraph:
    """A graph in columns; :meth:`open` maps them read-only from the files of :func:`write_link_graph`.

    Args:
        n_links: by kind, in the order of the types; each link counts once.
        offsets: ``[nodes + 1]``; node v owns ``offsets[v]:offsets[v + 1]`` of the next three, sorted by type and neighbour.
        neighbours: ``[2 * links]``.
        weights: ``[2 * links]``.
        types: ``[2 * links]``; ``2 * kind`` is a link walked along, ``2 * kind + 1`` one walked against.
        sums: ``[nodes, types]``, the weights added up.

    Examples:
        >>> links = Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))
        >>> Path("graph").mkdir()
        >>> write_link_graph(Path("graph"), 3, {"mentions": links})
        >>> LinkGraph.open(Path("graph")).n_links
        {'mentions': 2}
    """

    n_links: dict[str, int]
    offsets: Rows
    neighbours: NDArray[np.int32]
    weights: NDArray[np.float32]
    types: NDArray[np.uint8]
    sums: NDArray[np.float32]

    @classmethod
    def of(cls, n_nodes: int, links: Mapping[str, Links]) -> LinkGraph:
        """Build a graph in memory; see :func:`write_link_graph`."""
        merged = [part.merged(kind, n_nodes) for kind, part in links.items()]
        n_types = 2 * len(merged)
        counts = np.zeros(n_nodes, np.int64)
        for part in merged:
            counts += np.bincount(part.sources, minlength=n_nodes) + np.bincount(part.targets, minlength=n_nodes)
        offsets = offsets_of(counts)
        neighbours, weights = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.float32)
        types, sums = np.empty(offsets[-1], np.uint8), np.zeros((n_nodes, n_types), np.float32)
        filled = offsets[:-1].copy()
        for kind, part in enumerate(merged):
            turned = np.argsort(part.targets, kind="stable")  # by target, then by source
            along = part.sources, part.targets, part.weights
            against = part.targets[turned], part.sources[turned], part.weights[turned]
            for number, (nodes, others, values) in enumerate((along, against), 2 * kind):
                degrees = np.bincount(nodes, minlength=n_nodes)
                entries = np.arange(len(nodes)) + (filled - offsets_of(degrees)[:-1])[nodes]
                neighbours[entries], weights[entries], types[entries] = others, values, number
                sums[:, number] = np.bincount(nodes, values, n_nodes)
                filled += degrees
        n_links = {kind: len(part.sources) for kind, part in zip(links, merged, strict=True)}
        return cls(n_links, offsets, neighbours, weights, types, sums)

    @classmethod
    def open(cls, folder: Path) -> LinkGraph:
        """Map the files of a graph, and check every number once, because compiled code uses them as indices.

        Raises:
            IndexDamagedError: a file is missing or unreadable, or the files contradict one another.
        """
        n_links, n_nodes = _read_facts(folder / "graph.json")
        entries = 2 * sum(n_links.values())
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("neighbours", "weights", "types"), (entries,))
        shapes |= {"offsets": (n_nodes + 1,), "sums": (n_nodes, 2 * len(n_links))}
        columns = {name: mapped(folder / f"{name}.npy", _DTYPES[name], shape) for name, shape in shapes.items()}
        check_offsets(folder / "offsets.npy", columns["offsets"], entries)
        check_numbers(folder / "neighbours.npy", columns["neighbours"], n_nodes)
        check_numbers(folder / "types.npy", columns["types"], 2 * len(n_links))
        for name, least in (("weights", np.finfo(np.float32).smallest_subnormal), ("sums", np.float32(0))):
            if not ((columns[name] >= least) & (columns[name] < np.inf)).all():
                raise damaged(folder / f"{name}.npy", "it holds a number that is not a weight")
        return cls(n_links, **columns)

    @property
    def n_nodes(self) -> int:
        """Return how many nodes there are."""
        return len(self.offsets) - 1

    def links(self) -> dict[str, Links]:
        """Return all links by kind, as :meth:`of` takes them."""
        owner = np.repeat(np.arange(self.n_nodes), np.diff(self.offsets))
        by_kind = {}
        for number, kind in enumerate(self.n_links):
            entries = np.flatnonzero(self.types == 2 * number)
            by_kind[kind] = Links(owner[entries], self.neighbours[entries].astype(np.int64), self.weights[entries])
        return by_kind

    def n_incoming(self, kind: str, nodes: Rows) -> Rows:
        """Return how many links of a kind point to each of some nodes."""
        entries, counts = entries_of(self.offsets, nodes)
        against = self.types[entries] == 2 * list(self.n_links).index(kind) + 1
        return np.bincount(np.repeat(np.arange(len(nodes)), counts)[against], minlength=len(nodes))

    def weighted(self, kinds: Mapping[str, tuple[float, float]]) -> WeightedGraph:
        """Return the graph with weights for walking links of each of its kinds.

        Args:
            kinds: for each kind, the factors of its weights along and against it; finite, at least 0; links with a factor of 0
                are not walked.

        Raises:
            ConfigurationError: the kinds are not those of the graph.
        """
        if kinds.keys() != self.n_links.keys():
            raise ConfigurationError(f"the graph has links of {[*self.n_links]}, and weights are given for {[*kinds]}")
        weights = np.array([kinds[kind] for kind in self.n_links], np.float64).ravel()
        return WeightedGraph(self, weights / max(weights.max(initial=0.0), np.finfo(np.float64).tiny))


class Pulls(NamedTuple):
    """The transposed steps, for passes over the whole graph: steps into a node are stored in the node's own range."""

    probabilities: Scores
    """``[2 * links]``, of the step from the neighbour to the node that owns the range."""
    dangling: Mask
    """``[nodes]``, whether no step leads out of the node."""
    blocks: list[tuple[Rows, slice, Rows]]
    """The parts of one pass: nodes with links, the slice of their entries, and where each node's begin in it."""


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """A graph with a weight for each type of link; a node without any link of weight above 0 is dangling.

    Args:
        graph: the links.
        type_weights: ``[types]``; the largest is 1 unless all are 0.

    Examples:
        >>> links = Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))
        >>> Path("graph").mkdir()
        >>> write_link_graph(Path("graph"), 3, {"mentions": links})
        >>> graph = LinkGraph.open(Path("graph"))
        >>> weighted = WeightedGraph(graph, np.ones(2))
    """

    graph: LinkGraph
    type_weights: Scores
    _workspaces: list[Workspace] = field(default_factory=list, init=False, repr=False)
    """Workspaces that no local walk uses at the moment."""

    def steps(self, nodes: Rows) -> tuple[Rows, Rows, Scores]:
        """Return the steps out of some nodes: position in ``nodes``, neighbour, and probability.

        A neighbour appears once per type of link; dangling nodes have no steps, and links of weight 0 give none.
        """
        neighbours, probabilities = self.spread(nodes, self.per_weight(nodes, np.ones(len(nodes))))
        counts = self.graph.offsets[nodes + 1] - self.graph.offsets[nodes]
        owner = np.repeat(np.arange(len(nodes)), counts)
        possible = probabilities > 0
        return owner[possible], neighbours[possible], probabilities[possible]

    def per_weight(self, nodes: Rows, mass: Scores) -> Scores:
        """Mass per unit of link weight when mass leaves the nodes; 0 at dangling ones."""
        totals = self.graph.sums[nodes].astype(np.float64) @ self.type_weights
        return np.divide(mass, totals, out=np.zeros(len(nodes)), where=totals > 0)

    def spread(self, nodes: Rows, carried: Scores) -> tuple[Rows, Scores]:
        """Let mass walk one step: return the neighbours, in stored order, and what each receives (0 over links of weight 0).

        Args:
            nodes: where the mass is.
            carried: ``[len(nodes)]``, as :meth:`per_weight` returns it.
        """
        graph = self.graph
        entries, counts = entries_of(graph.offsets, nodes)
        received = np.repeat(carried, counts)
        received *= graph.weights[entries]
        if not (self.type_weights == 1).all():
            received *= self.type_weights[graph.types[entries]]
        return graph.neighbours[entries].astype(np.int64), received

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """Lend the memory of a local walk, all 0 where it must be; a new allocation costs more than a short walk.

        After an error the memory is not returned: it may not be 0 any more.
        """
        try:
            lent = self._workspaces.pop()
        except IndexError:  # first walk, or all in use by other threads
            n_nodes = self.graph.n_nodes
            lent = Workspace(np.zeros(n_nodes), np.zeros(n_nodes), np.empty(2 * n_nodes, np.int64), np.empty(n_nodes, np.int64))
        yield lent
        self._workspaces.append(lent)

    @cached_property
    def pulls(self) -> Pulls:
        """The transposed steps; the first use passes over the graph and keeps 16 bytes per link."""
        graph = self.graph
        totals, blocks = np.zeros(graph.n_nodes), []
        cuts = [0]
        while cuts[-1] < graph.n_nodes:
            after = int(np.searchsorted(graph.offsets, graph.offsets[cuts[-1]] + _ENTRIES_AT_ONCE, "right")) - 1
            cuts.append(min(max(after, cuts[-1] + 1), graph.n_nodes))
        for start, stop in pairwise(cuts):
            nodes = start + np.flatnonzero(np.diff(graph.offsets[start : stop + 1]))
            if len(nodes) == 0:
                continue
            part = slice(int(graph.offsets[start]), int(graph.offsets[stop]))
            begins = graph.offsets[nodes] - part.start
            totals[nodes] = np.add.reduceat(graph.weights[part] * self.type_weights[graph.types[part]], begins)
            blocks.append((nodes, part, begins))
        shares = np.divide(1.0, totals, out=np.zeros(graph.n_nodes), where=totals > 0)
        probabilities = np.empty(len(graph.neighbours))
        for _, part, _ in blocks:
            walked = graph.types[part] ^ 1  # the step comes from the other end of the link
            np.multiply(
                graph.weights[part] * self.type_weights[walked], shares[graph.neighbours[part]], out=probabilities[part]
            )
        return Pulls(probabilities, totals == 0, blocks)


# The links that items brought when they joined an index, in flat files of their own.
#
# Rows are those of the whole index: a link touches at least one of the items that joined, and none that joined later.


_FILE = "links.json"
_SOURCES, _TARGETS, _WEIGHTS = "link_sources.npy", "link_targets.npy", "link_weights.npy"


def write_added_links(folder: Path, links: Mapping[str, Links], n_rows: int) -> None:
    """Write links as flat files that :func:`open_added_links` maps."""
    merged = {kind: part.merged(kind, n_rows) for kind, part in links.items()}
    all_links = Links.joined(list(merged.values()))
    np.save(folder / _SOURCES, all_links.sources, allow_pickle=False)
    np.save(folder / _TARGETS, all_links.targets, allow_pickle=False)
    np.save(folder / _WEIGHTS, all_links.weights, allow_pickle=False)
    _write_facts(folder / _FILE, {kind: len(part.sources) for kind, part in merged.items()}, n_rows)


def open_added_links(segment: SegmentFolder) -> dict[str, Links]:
    """Map the links of a segment, and check each once."""
    counts, _ = _read_facts(segment.folder / _FILE)
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
    """Open the links of all segments of an index as one graph of all rows, without links to or from deleted items."""
    first = segments[0]
    graph = LinkGraph.open(first.folder)
    if graph.n_nodes != first.end_row:
        raise IndexDamagedError(f"the graph in {first.folder} has {graph.n_nodes} nodes for {first.end_row} items; {CURE}")
    if len(segments) == 1 and first.live is None:
        return graph
    links_of_segments = [graph.links(), *(open_added_links(segment) for segment in segments[1:])]
    if any(links.keys() != graph.n_links.keys() for links in links_of_segments):
        raise IndexDamagedError(f"the segments next to {first.folder} have other kinds of links; {CURE}")
    live = live_of(segments)
    joined = {kind: Links.joined([links[kind] for links in links_of_segments]).among(live) for kind in graph.n_links}
    return LinkGraph.of(segments[-1].end_row, joined)


def live_of(segments: Sequence[SegmentFolder]) -> Mask:
    """Return a mask of the items of adjacent segments that are not deleted.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> from nlp_retrieval.core import open_generation
        >>> generation = open_generation("index")
        >>> live_of(generation.checked_segments(generation.manifest.retrievers[0])).tolist()
        [True, True, True]
    """
    parts = [np.ones(len(part), bool) if part.live is None else part.live for part in segments]
    return np.concatenate([np.zeros(0, bool), *parts])


def live_among(everything: ItemTable, segments: Sequence[SegmentFolder]) -> Mask:
    """Return a mask of the items that are not deleted when some join an index.

    Args:
        everything: the items of the index and the joining ones.
        segments: of the index before they join.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> from nlp_retrieval.core import open_generation
        >>> generation = open_generation("index")
        >>> live_among(generation.items, generation.checked_segments(generation.manifest.retrievers[0])).tolist()
        [True, True, True]
    """
    before = live_of(segments)
    live = np.ones(len(everything), bool) if everything.live is None else everything.live.copy()
    live[: len(before)] &= before
    return live
