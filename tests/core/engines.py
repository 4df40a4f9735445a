"""Real components, small: two engines, a processor and a reranker that a reader can check by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule
from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever

_WORD = re.compile(r"\w+")


def terms(text: str) -> set[str]:
    """The distinct words of a text, in lower case."""
    return set(_WORD.findall(text.lower()))


def documents(texts: Iterable[str], prefix: str = "d") -> list[SearchableItem]:
    """Items d0, d1, ... with these contents."""
    return [SearchableItem(item_id=f"{prefix}{n}", content=text) for n, text in enumerate(texts)]


class TermCount(BaseRetriever):
    """Scores an item by how many of the query's words it holds, times a boost.

    Args:
        min_length: shorter words are not indexed.
        boost: factor on the score.
        merge: of sub-queries.
    """

    name = "terms"
    search_only = frozenset({"boost", "merge"})

    def __init__(
        self,
        min_length: Annotated[int, Field(ge=1)] = 1,
        boost: Annotated[float, Field(gt=0)] = 1.0,
        merge: MergeRule = "max",
    ) -> None:
        self.min_length = min_length
        self.boost = boost
        self.merge: MergeRule = merge

    def build(self, items: ItemTable, folder: Path) -> None:
        kept = [
            sorted(word for word in terms(text) if len(word) >= self.min_length) for texts in items.texts(100) for text in texts
        ]
        (folder / "terms.json").write_text(json.dumps(kept), "utf-8")

    def load(self, folder: Path) -> None:
        self._terms = [set(words) for words in json.loads((folder / "terms.json").read_text("utf-8"))]

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        lists = []
        for query in queries:
            wanted = terms(query)
            rows = range(len(self._terms)) if allowed is None else np.flatnonzero(allowed).tolist()
            scored = [(self.score(wanted, self._terms[row]), row) for row in rows if wanted & self._terms[row]]
            best = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k]
            lists.append((np.array([row for _, row in best], np.int64), np.array([score for score, _ in best], np.float64)))
        return Hits.from_lists(lists)

    def score(self, wanted: set[str], found: set[str]) -> float:
        """Score one item."""
        return self.boost * len(wanted & found)


class TermShare(TermCount):
    """Scores an item by the share of its words that are in the query."""

    name = "share"

    def score(self, wanted: set[str], found: set[str]) -> float:
        return self.boost * len(wanted & found) / len(found)


class SplitAt(BaseUserQueryProcessor):
    """Cuts a query at a mark.

    Args:
        mark: where to cut.
    """

    name = "split"

    def __init__(self, mark: str = ";") -> None:
        self.mark = mark

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [nlq.split(self.mark) for nlq in nlqs]


class Brief(BaseReranker):
    """Prefers items that say what was asked and little else.

    Args:
        blend: with the incoming ranking.
        batch_size: pairs scored at once.
    """

    name = "brief"

    def __init__(self, blend: Literal["replace", "rank", "score"] = "replace", batch_size: int = 3) -> None:
        self.blend = blend
        self.batch_size = batch_size

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        shared = [len(terms(query) & terms(item.text)) for query, item in zip(queries, items, strict=True)]
        size = [len(terms(item.text)) for item in items]
        score = np.array(shared, np.float64) / (1 + np.array(size, np.float64))
        return {"score": score, "shared": np.array(shared, np.float64)}


class ListLoader(BaseLoader):
    """Gives the items it holds."""

    name = "list"

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def stream(self):
        yield from documents(self.texts)
