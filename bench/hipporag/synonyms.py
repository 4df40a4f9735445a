"""Synonyms by cells against all pairs: ``python -m bench.hipporag.synonyms DATA MODEL [ENTITIES]`` prints what is missed.

The entities are those of the published triples of MuSiQue, all or the first so many of them by hash. The share of the pairs
that are found, by how many cells an entity is in and how many pivots there are; more pivots than four roots of the entities
stand for larger collections, whose cells are as small a part of the whole.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from bench.common import Data
from bench.writing import table
from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.faiss.exact import Stack
from nlp_retrieval.retrievers.link_graph.tables import hash_of
from nlp_retrieval.systems.hipporag import synonyms
from nlp_retrieval.systems.hipporag.knowledge import phrase_of
from nlp_retrieval.systems.hipporag.synonyms import Cells

_AT_LEAST = 0.8
_SETTINGS = [(2, 4.0), (4, 4.0), (8, 4.0), (4, 16.0), (8, 16.0)]


def entities(path: Path, most: int | None) -> tuple[list[str], list[int]]:
    """Return the phrases of entities, by hash, and their hashes."""
    phrases: set[str] = set()
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            phrases |= {phrase_of(str(end)) for triple in row["extracted_triples"] if len(triple) == 3 for end in triple[::2]}
    by_hash = {hash_of(phrase): phrase for phrase in phrases if len(phrase.replace(" ", "")) >= synonyms.SHORTEST}
    hashes = sorted(by_hash)[:most]
    return [by_hash[key] for key in hashes], hashes


def pairs_in_cells(vectors: Stack, cells: Cells) -> tuple[set[tuple[int, int]], int]:
    """Return the pairs that are found, and how many were compared."""
    found = set()
    for cell in range(cells.count):
        members = cells.members(cell)
        for sources, targets, _ in synonyms._near(vectors, members, members, _AT_LEAST):
            found |= {pair for pair in zip(sources.tolist(), targets.tolist(), strict=True) if pair[0] < pair[1]}
    return found, int((np.diff(cells.offsets) ** 2).sum())


def main(arguments: list[str]) -> int:
    """Print a table."""
    if len(arguments) not in (2, 3) or not (Path(arguments[0]) / "musique" / "openie.jsonl").is_file():
        print("usage: python -m bench.hipporag.synonyms DATA MODEL [ENTITIES]   (DATA holds musique/)")
        return 2
    data, most = Data.of(arguments[0]), int(arguments[2]) if len(arguments) == 3 else None
    phrases, keys = entities(data.root / "musique" / "openie.jsonl", most)
    hashes = np.array(keys, np.uint64)
    kept = data.work / f"synonyms-{len(phrases)}.npy"
    if not kept.exists():
        np.save(kept, SentenceTransformerEncoder(arguments[1]).encode_passages(phrases))
    encoded: Vectors = np.load(kept)
    vectors = Stack(encoded)
    begin = time.perf_counter()
    everything = np.arange(len(vectors))
    exact = {
        pair
        for sources, targets, _ in synonyms._near(vectors, everything, everything, _AT_LEAST)
        for pair in zip(sources.tolist(), targets.tolist(), strict=True)
        if pair[0] < pair[1]
    }
    seconds = time.perf_counter() - begin
    print(f"{len(phrases):,} entities, {len(exact):,} pairs of a cosine of at least {_AT_LEAST}; all pairs: {seconds:.1f} s")
    rows = {}
    for per_entity, pivots in _SETTINGS:
        begin = time.perf_counter()
        found, compared = pairs_in_cells(vectors, Cells.of(vectors, hashes, per_entity, pivots))
        share, work = len(found) / max(len(exact), 1), compared / len(vectors) ** 2
        count = math.ceil(pivots * math.sqrt(len(vectors)))
        cells = [f"{share:.1%}", f"{work:.1%}", f"{time.perf_counter() - begin:.1f}"]
        rows[f"{per_entity} of {count:,} cells each"] = cells
    print(table(["", "pairs found", "pairs compared", "seconds"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
