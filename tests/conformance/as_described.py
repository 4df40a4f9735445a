"""Components as a reader of a description writes them: a loader with ``load`` alone, a retriever with ``index`` and
``retrieve`` alone, a reranker with ``rerank`` alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from nlp_retrieval import RetrievalResult
from nlp_retrieval.core import BaseLoader, BaseReranker, BaseRetriever


def words(text):
    return set(re.findall(r"\w+", text.lower()))


class LoadsAlone(BaseLoader):
    """A list of dicts."""

    def load(self):
        return [{"id": "a", "title": "Krill", "text": "Swarms. 東京", "year": 2020}, {"id": "b", "text": "", "year": 2021}]


class KeepsInMemory(BaseRetriever):
    """Counts shared words; the items stay in the object."""

    def index(self, items, output_path):
        self.items = list(items)

    def retrieve(self, processed_queries, output_path, k):
        lists = []
        for subqueries in processed_queries:
            asked = set().union(*map(words, subqueries))
            scored = [RetrievalResult(item=item, score=float(len(asked & words(item.text)))) for item in self.items]
            lists.append(sorted((hit for hit in scored if hit.score), key=lambda hit: -hit.score)[:k])
        return lists


class LoadsAndSaves(BaseRetriever):
    """Writes an inverted index, and loads it.

    Args:
        least: the lowest count of a hit.
    """

    name = "loads_and_saves"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def index(self, items, output_path):
        self.postings = {}
        for item in items:
            for word in words(item.text):
                self.postings.setdefault(word, []).append(item.item_id)
        (output_path / "postings.json").write_text(json.dumps(self.postings))

    def load(self, folder):
        self.postings = json.loads((Path(folder) / "postings.json").read_text())

    def retrieve(self, processed_queries, output_path, k):
        asked = [set().union(*map(words, subqueries)) for subqueries in processed_queries]
        counted = [Counter(item_id for word in one for item_id in self.postings.get(word, [])) for one in asked]
        return [[pair for pair in counts.most_common(k) if pair[1] >= self.least] for counts in counted]


class TurnsAround(BaseReranker):
    """Prefers short passages; the scores stay as they are."""

    def rerank(self, nlqs, results, k):
        return [sorted(hits, key=lambda hit: len(hit.item.content))[:k] for hits in results]
