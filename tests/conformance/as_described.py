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


class ReadsItsFile(BaseRetriever):
    """Counts the query's words in a file.

    Args:
        least: the lowest count of a hit.
    """

    name = "reads_its_file"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def index(self, documents: list[dict], output_path: str):
        entries = [[document["id"], document["title"] + " " + document["text"]] for document in documents]
        Path(output_path + "/words.json").write_text(json.dumps(entries))

    def retrieve(self, query, output_path, top_k=5):
        entries = json.loads((output_path / "words.json").read_text())
        counts = [(item_id, len(words(query) & words(text))) for item_id, text in entries]
        return sorted((pair for pair in counts if pair[1] >= self.least), key=lambda pair: -pair[1])[:top_k]


class LoadsAndSaves(BaseRetriever):
    """Holds an inverted index, which it saves and loads."""

    name = "loads_and_saves"

    def __init__(self) -> None:
        self.postings = {}

    def index(self, items: list[str]):
        for position, text in enumerate(items):
            for word in words(text):
                self.postings.setdefault(word, []).append(position)

    def save(self, path):
        (Path(path) / "postings.json").write_text(json.dumps(self.postings))

    def load(self, path):
        self.postings = json.loads((Path(path) / "postings.json").read_text())

    def retrieve(self, queries: list[str], k: int = 10):
        counted = [Counter(at for word in words(query) for at in self.postings.get(word, [])) for query in queries]
        return [[{"id": at, "score": count} for at, count in counts.most_common(k)] for counts in counted]


class TurnsAround(BaseReranker):
    """Prefers short passages; the scores stay as they are."""

    def rerank(self, nlqs, results, k):
        return [sorted(hits, key=lambda hit: len(hit.item.content))[:k] for hits in results]


class ScoresPassages(BaseReranker):
    """Counts shared words.

    Args:
        weight: of a word.
    """

    name = "scores_passages"

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def rerank(self, query, results, top_k=10):
        return [self.weight * len(words(query) & words(hit.item.text)) for hit in results]
