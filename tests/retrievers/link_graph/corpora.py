"""Small corpora as item tables, and links as a reader would note them down."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.extractors import BaseLinkExtractor
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, Links, write_link_graph


def passage(title: object, content: str = "", item_id: str = "", **metadata: object) -> SearchableItem:
    """An item; its id is its title where none is given."""
    named = {"title": title} if title is not None else {}
    return SearchableItem.model_validate(
        {"item_id": item_id or str(title), "content": content, "metadata": {**named, **metadata}}
    )


def table_of(items: Iterable[SearchableItem], folder: Path) -> ItemTable:
    """The items as an index would hold them."""
    write_items(items, folder)
    return ItemTable(folder / ITEMS_FILE)


Triples = Iterable[tuple[int, int, float]]


def links_from(triples: Triples) -> Links:
    """Links of (source, target, weight)."""
    columns = tuple(zip(*triples, strict=True)) or ((), (), ())
    return Links(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float32))


def graph_of(n_nodes: int, kinds: dict[str, Triples]) -> LinkGraph:
    """A graph of links by kind, through files."""
    with TemporaryDirectory() as folder:
        write_link_graph(Path(folder), n_nodes, {kind: links_from(triples) for kind, triples in kinds.items()})
        return LinkGraph.open(Path(folder))


def links_at(graph: LinkGraph, node: int) -> list[tuple[int, str, bool, float]]:
    """The links of a node: ``(neighbour, kind, along, weight)``; along means that the node is the source."""
    kinds = list(graph.n_links)
    part = slice(int(graph.offsets[node]), int(graph.offsets[node + 1]))
    columns = zip(graph.neighbours[part].tolist(), graph.types[part].tolist(), graph.weights[part].tolist(), strict=True)
    return [(neighbour, kinds[number // 2], number % 2 == 0, weight) for neighbour, number, weight in columns]


def links_of(extractor: BaseLinkExtractor, items: list[SearchableItem]) -> dict[tuple[str, str], float]:
    """The weights of the links by the ids of source and target; each link may be given once, none to itself."""
    with TemporaryDirectory() as folder:
        table = table_of(items, Path(folder))
        links = extractor.extract(table)
        ids = table.ids()
    assert links.sources.dtype.name == links.targets.dtype.name == "int64"
    assert links.weights.dtype.name == "float32"
    assert (links.weights > 0).all()
    assert (links.sources != links.targets).all()
    columns = zip(links.sources.tolist(), links.targets.tolist(), links.weights.tolist(), strict=True)
    found = {(ids[source], ids[target]): weight for source, target, weight in columns}
    assert len(found) == len(links.sources)
    return found


def approximately(expected: dict[tuple[str, str], float]) -> object:
    """Equal but for rounding to float32."""
    return pytest.approx(expected, rel=1e-6)
