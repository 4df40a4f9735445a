"""A directed graph over passages in memory-mapped files, and the steps that a walk may take.

Nodes are item rows. Links come in kinds, and each is stored twice: along, at its source, and against, at its target. The links
of a node are contiguous, so a walk from a few nodes reads only their ranges. The weight of a kind is given when the graph is
used, not when it is written: sums per node and type normalise the steps for any weights.

No node ever links to itself, a kind links a pair at most once in each direction, and for each entry (v, u, along) at v
there is an entry (u, v, against) at u with the same weight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.files.columns import CURE, check_numbers, check_offsets, damaged, mapped
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, nearest
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.retrievers.link_graph.store.workspace import Workspace

__all__ = ["LinkGraph", "Links", "Pulls", "WeightedGraph", "write_link_graph"]

_MOST_KINDS = 127  # two types each, in one byte
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
        ConfigurationError: more kinds or nodes than the files can hold.
        EngineError: links that cannot be stored; the message names the kind.
    """
    graph = LinkGraph.of(n_nodes, links)
    folder.mkdir(parents=True, exist_ok=True)
    for name in _DTYPES:
        np.save(folder / f"{name}.npy", getattr(graph, name), allow_pickle=False)
    facts = {"n_nodes": n_nodes, "kinds": list(graph.n_links), "n_links": list(graph.n_links.values())}
    (folder / "graph.json").write_text(json.dumps(facts, ensure_ascii=False, indent=2) + "\n", "utf-8")


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
        if len(links) > _MOST_KINDS:
            raise ConfigurationError(f"{len(links)} kinds of links; a graph holds at most {_MOST_KINDS}: join some of them")
        if not 0 <= n_nodes <= np.iinfo(np.int32).max:
            raise ConfigurationError(
                f"a graph of {n_nodes} nodes; it holds at most {np.iinfo(np.int32).max}: split the collection"
            )
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
        path = folder / "graph.json"
        try:
            facts = read_json_file(path)
            n_nodes, n_links = int(facts["n_nodes"]), dict(zip(facts["kinds"], map(int, facts["n_links"]), strict=True))
        except OSError as error:
            raise IndexDamagedError(f"{path} cannot be read ({error.strerror}); {CURE}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, "it does not describe a graph") from error
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
        """Return the graph with weights for walking links of each kind.

        Args:
            kinds: for each kind of the graph, the factors of its weights along and against it; finite, at least 0; links
                with a factor of 0 are not walked.

        Raises:
            ConfigurationError: a kind is missing or not in the graph, or a factor is out of range.
        """
        for kind in kinds:
            if kind not in self.n_links:
                raise ConfigurationError(f"the graph has no links of kind {kind!r}; {nearest(kind, self.n_links)}")
        for kind in self.n_links:
            if kind not in kinds:
                raise ConfigurationError(f"no weights for links of kind {kind!r}; give (0, 0) to leave them out")
        weights = np.array([kinds[kind] for kind in self.n_links], np.float64).ravel()
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ConfigurationError(f"weights of kinds of links must be finite and at least 0; found {dict(kinds)}")
        return WeightedGraph(self, weights / max(weights.max(initial=0.0), np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class Pulls:
    """The transposed steps, for passes over the whole graph: steps into a node are stored in the node's own range.

    Args:
        probabilities: ``[2 * links]``, of the step from the neighbour to the node that owns the range.
        dangling: ``[nodes]``, whether no step leads out of the node.
        blocks: the parts of one pass: nodes with links, the slice of their entries, and where each node's begin in it.
    """

    probabilities: Scores
    dangling: NDArray[np.bool_]
    blocks: list[tuple[Rows, slice, Rows]]


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """A graph with a weight for each type of link; a node without any link of weight above 0 is dangling.

    Args:
        graph: the links.
        type_weights: ``[types]``; the largest is 1 unless all are 0.
    """

    graph: LinkGraph
    type_weights: Scores
    _workspaces: list[Workspace] = field(default_factory=list, init=False, repr=False)
    """Workspaces that no local walk uses at the moment."""

    _pulls: list[Pulls] = field(default_factory=list, init=False, repr=False)
    _pulling: ClassVar[Lock] = Lock()

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
            lent = Workspace.of(self.graph.n_nodes)
        yield lent
        self._workspaces.append(lent)

    @property
    def pulls(self) -> Pulls:
        """The transposed steps; the first use passes over the graph and keeps 16 bytes per link."""
        with self._pulling:
            if not self._pulls:
                self._pulls.append(self._transposed())
            return self._pulls[0]

    def _transposed(self) -> Pulls:
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
