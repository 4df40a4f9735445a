"""The link graph: what finding links costs, what they weigh on disk, what PageRank and whole queries take.

PageRank is timed on a graph of random links, after its kernels are compiled, and held against igraph on the same matrix with
the same restarts. In that graph seven links of ten stay within a group of fifty nodes, and the others lead to popular nodes;
popularity is shared out in blocks of 9,700 nodes, so a graph ten times the size looks the same from any node.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import igraph
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.common import Data, Row, best_of_each, median_ms, noted, record_of, seconds_of
from bench.haystack import LookedUpPassages, haystack_index, wiki_index
from nlp_retrieval import Bm25Retriever, FaissRetriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core.context import record_stages
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.retrievers import SharedEntities, TitleMentions
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, Links, WeightedGraph, write_link_graph
from nlp_retrieval.retrievers.link_graph.walk import Restarts, local_pagerank, pagerank

_NODES, _ENTRIES, _GROUP, _BLOCK = 97_000, 1_400_000, 50, 9_700
_DAMPING = 0.5
_QUERIES = 30
_GRAPH_FILES = ("offsets", "neighbours", "weights", "types", "sums")

_local = partial(local_pagerank, damping=_DAMPING, backend="numba")


def measure(data: Data) -> list[Row]:
    """Extraction, size, PageRank, whole queries."""
    encoder = SentenceTransformerEncoder()
    path = wiki_index(data, encoder)
    small = LinkGraphRetriever([Bm25Retriever(), FaissRetriever(encoder)])
    large_path, exact = haystack_index(data, encoder)
    _, chosen = haystack_index(data, encoder, index="auto")
    large, usual = (LinkGraphRetriever([Bm25Retriever(), dense]) for dense in (exact, chosen))
    questions = data.questions()
    alike = _alike(large, usual, large_path, questions)  # before other encoders are put in place of theirs
    return [
        *_extraction(path),
        _size(path, small),
        *_random_graphs(),
        *_real_graph(path, small, questions[:_QUERIES]),
        *_whole_queries(small, path, questions, goal=12),
        *_whole_queries(large, large_path, questions, goal=30),
        *_whole_queries(usual, large_path, questions, goal=30),
        alike,
    ]


def _extraction(path: Path) -> list[Row]:
    items = open_generation(path).items
    n = len(items)
    mentions_s, entities_s = (best_of_each(2, partial(one.extract, items))[0] for one in (TitleMentions(), SharedEntities()))
    shown = f"{mentions_s:.1f} s, {n / mentions_s:,.0f} passages/s, building the matcher counted"
    return [
        Row(f"title mentions of {n:,} passages, one core", "at most 10 s", shown, mentions_s <= 10),
        noted(f"shared entities of {n:,} passages (rules), one core", f"{entities_s:.1f} s, {n / entities_s:,.0f} passages/s"),
    ]


def _size(path: Path, retriever: LinkGraphRetriever) -> Row:
    record, folder = record_of(path, retriever)
    n_links = sum(LinkGraph.open(folder).n_links.values())
    graph = sum((folder / f"{name}.npy").stat().st_size for name in _GRAPH_FILES)
    texts = (path / open_generation(path).manifest.corpus.segments[0].folder / "items.arrow").stat().st_size
    measured = (
        f"{graph / n_links:.1f} bytes per link ({graph / 1e6:.1f} MB, {n_links:,} links, each in both directions); with the "
        f"tables of titles and terms {record.segments[0].bytes / 1e6:.1f} MB, where the passages have {texts / 1e6:.1f} MB; "
        f"built in {record.seconds:.0f} s"
    )
    return noted("link graph on disk", measured)


def _random_graphs() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        graph, large = (_random_graph(Path(folder) / str(size), size * _NODES, size * _ENTRIES) for size in (1, 10))
        restarts, large_restarts = ([_random_restarts(one, seed) for seed in range(_QUERIES)] for one in (graph, large))
        (exact_ms,) = _medians_ms([lambda one: pagerank(graph, one, _DAMPING)], [restarts])
        (numpy_ms,) = _medians_ms([lambda one: _local(graph, one, backend="numpy")], [restarts])
        local_ms, large_ms = _medians_ms([partial(_local, graph), partial(_local, large)], [restarts, large_restarts])
        found = [_local(graph, one) for one in restarts]
        errors, work = [one.error for one in found], statistics.median(one.work for one in found)
        size = f"{_NODES:,} nodes, {len(graph.graph.neighbours):,} stored entries"
        larger = f"{10 * _NODES:,} nodes, {len(large.graph.neighbours):,} entries"
        local = (
            f"{local_ms:.2f} ms (numpy alone {numpy_ms:.1f}); epsilon 1e-6, {work:,.0f} links looked at; it says that L1 "
            f"is off by {statistics.median(errors):.4f} (median; at most {max(errors):.4f})"
        )
        times = f"{large_ms / local_ms:.2f} times ({large_ms:.2f} ms)"
        exact = f"{exact_ms:.0f} ms; damping {_DAMPING}, 100 restarts, L1 within 1e-6"
        return [
            noted(f"PageRank, exact, one query: random graph of {size}", exact),
            Row("PageRank, local, the same", "at most 5 ms", local, local_ms <= 5),
            Row(f"PageRank, local, 10 times the graph ({larger})", "at most 1.5 times", times, large_ms <= 1.5 * local_ms),
            _by_igraph("the same random graph", graph, restarts[:5]),
        ]


def _real_graph(path: Path, retriever: LinkGraphRetriever, questions: Sequence[str]) -> list[Row]:
    opened = retriever.open(open_generation(path))
    graph = opened._graph
    restarts = [one.restarts for one in opened._seeded(list(questions))]
    (local_ms,) = _medians_ms([partial(_local, graph)], [restarts])
    errors = [_local(graph, one).error for one in restarts]
    name = f"the links of the wiki collection ({graph.graph.n_nodes:,} nodes, {len(graph.graph.neighbours):,} entries)"
    measured = (
        f"local {local_ms:.2f} ms, L1 off by {statistics.median(errors):.4f} (median; at most {max(errors):.4f}); restarts of "
        f"{len(questions)} HotpotQA questions"
    )
    return [noted(f"PageRank over {name}", measured), _by_igraph("the wiki links", graph, restarts[:5])]


def _by_igraph(name: str, graph: WeightedGraph, restarts: list[Restarts]) -> Row:
    """The same by igraph: how long it takes, and how far the results are apart."""
    nodes = graph.graph
    owners = np.repeat(np.arange(nodes.n_nodes), np.diff(nodes.offsets))
    weights: NDArray[np.float64] = nodes.weights * graph.type_weights[nodes.types]
    steps = sparse.coo_array((weights, (owners, nodes.neighbours)), (nodes.n_nodes, nodes.n_nodes)).tocsr().tocoo()
    ours = np.stack([pagerank(graph, one, _DAMPING, tolerance=1e-10) for one in restarts])
    edges = igraph.Graph(nodes.n_nodes, np.stack([steps.row, steps.col], axis=1), directed=True)
    theirs: list[list[float]] = []
    settings = {"damping": _DAMPING, "weights": steps.data.tolist(), "implementation": "prpack", "directed": True}
    resets = [np.bincount(one.rows, one.weights, nodes.n_nodes).tolist() for one in restarts]
    igraph_ms = median_ms(lambda reset: theirs.append(edges.personalized_pagerank(reset=reset, **settings)), resets)
    apart = float(np.abs(np.array(theirs) - ours).max())
    measured = f"{igraph_ms:.0f} ms; furthest apart from exact at any node: {apart:.1e}"
    return noted(f"igraph {igraph.__version__}, prpack, {name}", measured)


def _whole_queries(retriever: LinkGraphRetriever, path: Path, questions: Sequence[str], goal: float) -> list[Row]:
    """One question a call, as someone who waits for it would see it; kernels are compiled, files are in memory.

    First with the encoder of the index; then with 8-bit weights by ONNX, put in its place for the queries alone, since what an
    index made with it answers takes as long.
    """
    searcher = Searcher([retriever]).open(path)
    searcher.search(questions[200:], 10)  # long enough in numpy that the walk's loops are compiled
    opened = searcher.open_retrievers().retrievers["link_graph"]
    dense = next(part for part in opened._opened_parts if isinstance(part, FaissRetriever))
    size = len(open_generation(path).items)
    what = f"whole query, one a call, k=10, {size:,} passages, vectors {dense.index_type.chosen(size).name}, median of 100"
    slow, _ = _whole_query(searcher, dense, questions)
    holder = dense.encoder if isinstance(dense.encoder, LookedUpPassages) else dense
    holder.encoder = SentenceTransformerEncoder(backend="onnx")
    fast, median = _whole_query(searcher, dense, questions)
    return [noted(what, slow), Row(f"{what}, queries encoded by ONNX", f"goal {goal:.0f} ms", fast, median <= goal)]


def _whole_query(searcher: Searcher, dense: FaissRetriever, questions: Sequence[str]) -> tuple[str, float]:
    """What a query takes, part by part, in words; and its median in milliseconds."""
    for question in questions[100:120]:
        searcher.search([question], 10)
    stages: dict[str, list[float]] = {}
    for question in questions[:100]:
        with record_stages() as seconds:
            whole = seconds_of(partial(searcher.search, [question], 10))
        told = {name.removeprefix("link_graph."): value for name, value in seconds.items() if "." in name}
        told |= {"all": whole, "encoding alone": seconds_of(partial(dense.encode, [question]))}
        for name, value in told.items():
            stages.setdefault(name, []).append(1000 * value)
    median = {name: statistics.median(values) for name, values in stages.items()}
    measured = (
        f"{median['all']:.1f} ms: seeds {median['seeds']:.1f} (encoding, timed by itself, {median['encoding alone']:.1f}), "
        f"PageRank {median['pagerank']:.1f}, evidence {median['evidence']:.1f}; bm25s + FAISS + link graph"
    )
    return measured, median["all"]


def _alike(exact: LinkGraphRetriever, chosen: LinkGraphRetriever, path: Path, questions: Sequence[str]) -> Row:
    """How many of the first ten passages are the same where the vectors are searched by what ``auto`` chooses."""
    lists = [Searcher([one]).open(path).search(questions, 10) for one in (exact, chosen)]
    found = [[{hit.item.item_id for hit in hits} for hits in one] for one in lists]
    shares = [len(mine & theirs) / len(theirs) for theirs, mine in zip(*found, strict=True)]
    what = f"link graph, {len(shares):,} questions: first ten passages with hnsw that are those with flat vectors"
    return noted(what, f"{statistics.mean(shares):.1%}")


def _medians_ms(calls: Sequence[Callable[[Restarts], object]], restarts: Sequence[Sequence[Restarts]]) -> list[float]:
    """Milliseconds of each call: the best of three for each of its restarts, then the median; the calls take turns."""
    for call, ones in zip(calls, restarts, strict=True):
        call(ones[0]), call(ones[1])  # the first compiles, or maps the files
    best = [best_of_each(3, *map(partial, calls, ones)) for ones in zip(*restarts, strict=True)]
    medians: list[float] = (1000 * np.median(best, axis=0)).tolist()
    return medians


def _random_graph(folder: Path, n_nodes: int, n_entries: int) -> WeightedGraph:
    """Write and open the graph that is described above, of about so many stored entries, two a link."""
    generator = np.random.default_rng(0)
    n_links = int(1.05 * n_entries) // 2  # one in twenty is drawn twice, or leads to itself
    sources = generator.integers(n_nodes, size=n_links)
    near = sources // _GROUP * _GROUP + generator.integers(_GROUP, size=n_links)
    block = generator.integers(n_nodes // _BLOCK, size=n_links) * _BLOCK
    popular = block + (_BLOCK * generator.random(n_links) ** 3).astype(int)
    targets = np.where(generator.random(n_links) < 0.7, near, popular)
    weights = generator.uniform(0.1, 1.0, n_links).astype(np.float32)
    write_link_graph(folder, n_nodes, {"links": Links(sources, targets, weights)})
    return LinkGraph.open(folder).weighted({"links": (1.0, 0.5)})


def _random_restarts(graph: WeightedGraph, seed: int) -> Restarts:
    """Draw two seeds' worth of hits, fifty each, few of which count much."""
    generator = np.random.default_rng(seed)
    rows = generator.choice(graph.graph.n_nodes, 100, replace=False)
    return Restarts(rows, generator.random(100) ** 4)
