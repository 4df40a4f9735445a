"""What it costs to add 1% to an index, against building that index again; each retriever in a process of its own.

The corpus of 320,000 is the collection ten times over, as for memory. Dense retrieval is given a cheap encoder (feature
hashing): with a real one, building again would cost hours, and the share of what is added would be smaller still. Times are of
the whole call, opening the index again included. For the link graph each copy has names of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import islice
from pathlib import Path

from bench.common import Data, Row, aside, seconds_of
from bench.memory import LINK_GRAPH, copied_items, retrievers_by_name

_COPIES = {"pyserini": 10, "bm25s": 10, "faiss flat": 10, LINK_GRAPH: 10, "colbert": 1}
_SHARE = 100
_BUDGET = 0.05


def measure(data: Data) -> list[Row]:
    """One row per retriever."""
    rows = []
    for name, copies in _COPIES.items():
        found = aside("bench.updates", name, copies, data.corpus)
        ratio = found["add"] / found["build"]
        measured = (
            f"{100 * ratio:.1f}% ({found['add']:.2f} s for {found['added']:,} items, {found['build']:.1f} s to build "
            f"{found['items']:,}; deleting as many {found['delete']:.2f} s, joining all {found['compact']:.1f} s)"
        )
        rows.append(Row(f"adding 1%: {name}", f"at most {100 * _BUDGET:.0f}% of building again", measured, ratio <= _BUDGET))
    return rows


def _measured(name: str, copies: int, corpus: Path) -> dict[str, float]:
    from nlp_retrieval import Searcher

    searcher = Searcher(retrievers_by_name()[name]())
    spent: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        own_names = name == LINK_GRAPH
        items = list(copied_items(corpus, copies, own_names=own_names))
        spent["build"] = seconds_of(lambda: searcher.index(items, folder))
        searcher.search("a warm engine")
        n_items = len(items)
        more = list(islice(copied_items(corpus, copies + 1, copies, own_names=own_names), n_items // _SHARE))
        gone = [f"0-{item.item_id.partition('-')[2]}" for item in more]
        spent["add"] = seconds_of(lambda: searcher.add(more, auto_compact=False))
        spent["delete"] = seconds_of(lambda: searcher.delete(gone, auto_compact=False))
        spent["compact"] = seconds_of(searcher.compact)
    return spent | {"items": n_items, "added": len(more)}


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
