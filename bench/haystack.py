"""A haystack ten times the size: passages made of other passages, under names that real passages have.

Each passage of the collection gives its name to nine distractors ("Heat (1995 film)" to "Heat (1995 film, note 3)", so
that a text which mentions "Heat" may now mean ten passages). The text of a distractor is the first half of one passage's
sentences and the second half of another's, neither of them the one that gave the name: all that is said is said ten
times, nine of them under a name that it is not true of. So that the two kinds of crowding can be told apart there is a second
haystack, of the same texts under names that no text mentions. In a third, the hardest, a distractor has a real passage's
name and says it: what its text says of the passage that it comes from, it says of that name.

**Its vector is approximated**: not its text is encoded, which takes hours, but the vectors of the two passages are
averaged and scaled to length 1. The name is not in that vector, so to a dense retriever distractors are a little further
from queries that say the name than encoded ones would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.common import Data, record_of
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core import BaseLoader
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.encoders.base import Vectors

COPIES = 9
"""Distractors per passage."""

Naming = Literal["shared", "own", "said"]
"""Whether distractors have the names of passages, names that nothing mentions, or names of passages that they say."""

_SEED = 20261122
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class HaystackLoader(BaseLoader):
    """The passages of a collection in BEIR's form, and nine distractors for each."""

    name = "haystack"

    def __init__(self, path: str, naming: Naming) -> None:
        self.path = path
        self.naming = naming

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items."""
        return (item for item, _ in self.with_rows())

    def with_rows(self) -> Iterator[tuple[SearchableItem, tuple[int, int]]]:
        """Yield the items, with the rows of the collection that their vector is made of."""
        return haystack(list(BeirLoader(self.path).stream()), self.naming)


class LookedUpPassages(BaseEncoder):
    """Queries by a real encoder, passages of a haystack by the mean of two vectors in a file of that encoder's."""

    name = "looked-up-passages"

    def __init__(self, encoder: BaseEncoder, vectors: str, items: HaystackLoader) -> None:
        self.encoder = encoder
        self.vectors = vectors
        self.items = items

    @cached_property
    def _rows(self) -> dict[int, tuple[int, int]]:
        return {hash(item.text): rows for item, rows in self.items.with_rows()}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encoder.encode_queries(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        vectors = np.load(self.vectors, mmap_mode="r")
        one, other = np.array([self._rows[hash(passage)] for passage in passages]).T
        mean: Vectors = vectors[one] + vectors[other]
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        return mean

    def model_fingerprint(self) -> str:
        return f"mean of two, seed {_SEED}, of {self.encoder.model_fingerprint()}"

    def index_identity(self) -> Config:
        return {"name": self.name, "format": self.format_version, "model_fingerprint": self.model_fingerprint()}


def wiki_index(data: Data, encoder: BaseEncoder) -> Path:
    """Index the collection for BM25, dense retrieval and the link graph, where that was not done before; return where."""
    return _index(data, BeirLoader(str(data.corpus)), "wiki-index", FaissRetriever(encoder))


def haystack_index(
    data: Data, encoder: BaseEncoder, naming: Naming = "shared", index: Literal["flat", "auto"] = "flat"
) -> tuple[Path, FaissRetriever]:
    """The same for a haystack; returns also the dense retriever that belongs to it."""
    _, folder = record_of(wiki_index(data, encoder), FaissRetriever(encoder))
    items = HaystackLoader(str(data.corpus), naming)
    dense = FaissRetriever(LookedUpPassages(encoder, str(folder / "vectors.npy"), items), index=index)
    return _index(data, items, f"haystack-{naming}-names-index", dense), dense


def _index(data: Data, items: BaseLoader, name: str, dense: FaissRetriever) -> Path:
    path = data.work / name
    lexical = Bm25Retriever()
    report = Searcher([lexical, dense, LinkGraphRetriever([lexical, dense])]).index(items, path)
    if report.built:
        print(f"{name}: built {', '.join(report.built)} in {report.seconds:.0f} s", flush=True)
    return path


def haystack(passages: list[SearchableItem], naming: Naming) -> Iterator[tuple[SearchableItem, tuple[int, int]]]:
    """Yield the passages, at least 10, then nine distractors for each, with the rows that their vector is made of."""
    for row, passage in enumerate(passages):
        yield passage, (row, row)
    sentences = [_SENTENCE.split(passage.content.strip()) for passage in passages]
    generator = np.random.default_rng(_SEED)
    for note in range(1, COPIES + 1):
        first, last = _elsewhere(len(passages), generator)
        for row, (one, other) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            begin, end = sentences[one], sentences[other]
            text = " ".join([*begin[: (len(begin) + 1) // 2], *end[len(end) // 2 :]])
            title = f"Distractor {note}x{row:05d}" if naming == "own" else _qualified(passages[row].title, note)
            if naming == "said":
                text = _saying(text, _plain(passages[one].title), _plain(passages[row].title))
            yield SearchableItem(item_id=f"d{note}-{row:05d}", content=text, metadata={"title": title}), (one, other)


def _elsewhere(n: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per row two other rows, which differ; every row is taken once as the one and once as the other."""
    order = generator.permutation(n)
    places = np.empty(n, np.int64)
    places[order] = np.arange(n)
    steps = generator.choice(np.arange(1, n), 2, replace=False)
    return order[(places + steps[0]) % n], order[(places + steps[1]) % n]


def _plain(title: str) -> str:
    """A name without the qualifier at its end."""
    return title.rpartition(" (")[0] or title if title.endswith(")") else title


def _saying(text: str, name: str, other: str) -> str:
    """A text in which one name stands for another, or stands at the beginning where the other does not stand."""
    return text.replace(name, other) if name and name in text else f"{other}: {text}"


def _qualified(title: str, note: int) -> str:
    """The name of another passage of that name: a qualifier at the end takes the note in, or a text would never mean it."""
    if title.endswith(")") and "(" in title[1:]:
        return f"{title[:-1]}, note {note})"
    return f"{title} (note {note})"
