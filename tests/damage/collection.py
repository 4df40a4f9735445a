"""A collection of 300 linked pages, and an index of it that holds every kind of file that an index has."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from sparse_models import HashedTerms

from nlp_retrieval import (
    Bm25Retriever,
    ColbertRetriever,
    FaissRetriever,
    FeedbackRetriever,
    LinkGraphRetriever,
    SearchableItem,
    Searcher,
    SpladeRetriever,
)
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.retrievers import IVFPQ

SIZE = 300
ADDED_FROM = 270
DELETED = ["d5", "d30", "d290"]
MANIFEST = "manifest.json"
WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()
NAMES = [f"{one}{other}" for one in "Kal Lor Mir Ruv Ten Vas".split() for other in "ano eli iro uma".split()]
QUERIES = ["novel director", "Kalano Loreli castle", "whale island orbit", "queen of the harbour album", "river", "fox Tenuma"]


def pages() -> list[SearchableItem]:
    """Pages with titles of two names; most mention another, and their metadata has a column of every type."""
    draw = random.Random(3)
    titles = draw.sample([f"{one} {other}" for one in NAMES for other in NAMES], SIZE)
    found = []
    for row, title in enumerate(titles):
        mentioned = [f"near {other}" for other in draw.sample(titles, row % 3)]
        metadata = {
            "title": title, "kind": WORDS[row % 3], "year": 1900 + row, "share": row / 7, "old": row % 2 == 0,
            "tags": draw.sample(WORDS, row % 3), "more": row if row % 5 else {"rank": row},
        }  # fmt: skip
        content = " ".join([*draw.choices(WORDS, k=draw.randint(3, 12)), *mentioned])
        found.append(SearchableItem(item_id=f"d{row}", content=content, metadata=metadata))
    return found


def retrievers(backend: str = "numpy") -> dict[str, BaseRetriever]:
    """Those that search without Java, each with settings that read all of its files."""
    encoder, tokens = HashedWords(16), HashedTokens(16)
    lexical = Bm25Retriever(backend=backend)  # type: ignore[arg-type]
    late = {"nprobe": 2, "rescored": 20}
    return {
        "bm25": lexical,
        "flat": FaissRetriever(encoder, index="flat"),
        "hnsw": FaissRetriever(encoder, index="hnsw"),
        "ivfpq": FaissRetriever(encoder, index=IVFPQ(nlist=4, pq_bytes=4)),
        "sq8": FaissRetriever(encoder, index="sq8"),
        "colbert, 2 bits": ColbertRetriever(tokens, bits=2, **late),  # type: ignore[arg-type]
        "colbert, 4 bits": ColbertRetriever(tokens, bits=4, **late),  # type: ignore[arg-type]
        "colbert, exact": ColbertRetriever(tokens, bits=None),
        "feedback": FeedbackRetriever([FaissRetriever(encoder, index="flat")], "kind", "title", "year"),
        "splade": SpladeRetriever(HashedTerms(), backend=backend),  # type: ignore[arg-type]
        "link graph": LinkGraphRetriever([lexical], pagerank="exact" if backend == "numpy" else "local"),
    }


@dataclass(frozen=True)
class IndexFile:
    """A file of an index by its relative path, and the label of the retriever that reads it; "items" or "manifest" for all."""

    owner: str
    path: str

    @property
    def name(self) -> str:
        return Path(self.path).name


def files_of(index: Path, effort: int = 2) -> list[IndexFile]:
    """Every file that a manifest names, and itself; with the effort 1, of files that several segments have, the first."""
    manifest = json.loads((index / MANIFEST).read_bytes())
    found = [IndexFile("manifest", MANIFEST)]
    found += [IndexFile("items", path) for path in _paths(manifest["corpus"])]
    for label, record in zip(_labels(manifest["retrievers"]), manifest["retrievers"], strict=True):
        found += [IndexFile(label, path) for path in _paths(record)]
    if effort > 1:
        return found
    return list({(file.owner, file.name): file for file in reversed(found)}.values())[::-1]


def _paths(record: object) -> Iterator[str]:
    if isinstance(record, dict):
        if "folder" in record and "files" in record:
            yield from (f"{record['folder']}/{name}" for name in record["files"])
        for value in record.values():
            yield from _paths(value)
    elif isinstance(record, list):
        for value in record:
            yield from _paths(value)


def _labels(records: list[dict[str, Any]]) -> list[str]:
    """The labels of :func:`retrievers` for the records of a manifest, by what they were built with; of others, their names."""
    known = {json.dumps(one.config, sort_keys=True): label for label, one in retrievers().items()}
    return [known.get(json.dumps(record["config"], sort_keys=True), record["config"]["name"]) for record in records]


def build(path: Path, chosen: dict[str, BaseRetriever]) -> None:
    """Index the collection, in two segments and with some items deleted, for these retrievers."""
    searcher = Searcher(chosen)
    searcher.index(pages()[:ADDED_FROM], path)
    searcher.add(pages()[ADDED_FROM:], auto_compact=False)
    searcher.delete(DELETED, auto_compact=False)
