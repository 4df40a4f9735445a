"""Builds an index of every type that is trained, and searches it: run by itself, so that the environment can differ.

Prints, as JSON, the checksum of every file and every list with its scores to the bit.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from hashed_tokens import HashedTokens
from hashed_words import HashedWords, items_of

from nlp_retrieval import FaissRetriever
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.colbert import _orthonormal
from nlp_retrieval.retrievers.colbert import codec as colbert_centroids
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

WORDS = [f"word{number}" for number in range(400)]


def some_texts(count: int = 900) -> list[str]:
    """Random texts; every fifth repeats an earlier one, so that vectors and scores tie."""
    draw = np.random.default_rng(4)
    texts: list[str] = []
    for row in range(count):
        again = row % 5 == 4
        texts.append(texts[draw.integers(row)] if again else " ".join(draw.choice(WORDS, draw.integers(3, 12))))
    return texts


RETRIEVERS: dict[str, BaseRetriever] = {
    "flat": FaissRetriever(HashedWords(96), index="flat"),
    "colbert, 2 bits": ColbertRetriever(HashedTokens(64), bits=2, rescored=100),
    "colbert, 4 bits, centroids in groups": ColbertRetriever(HashedTokens(64), bits=4, centroids=520, rescored=100),
    "colbert, whole": ColbertRetriever(HashedTokens(64), bits=None),
}


def built_and_found() -> dict[str, object]:
    """Per retriever its files and lists; and a random projection."""
    colbert_centroids.FLAT_UP_TO = 512
    texts = some_texts()
    queries = [[text] for text in [*texts[:20], *WORDS[:20]]]
    found: dict[str, object] = {"projection": hashlib.sha256(_orthonormal(200, 64, 0).tobytes()).hexdigest()}
    with tempfile.TemporaryDirectory() as folder:
        for name, retriever in RETRIEVERS.items():
            path = Path(folder) / name
            retriever.index(items_of(texts), path)
            files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.glob("*-*/[!.]*")}
            lists = [[(hit.item.item_id, hit.score.hex()) for hit in hits] for hits in retriever.retrieve(queries, path, 15)]
            found[name] = {"files": files, "lists": lists}
    return found


if __name__ == "__main__":
    json.dump(built_and_found(), sys.stdout)
