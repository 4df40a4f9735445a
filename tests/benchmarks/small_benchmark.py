"""A corpus of 80 passages, 20 queries with their gold, and three searchers: small enough to run often."""

from __future__ import annotations

import json
import random
from pathlib import Path

import yaml
from hashed_words import HashedWords, InMemory

from nlp_retrieval import Benchmarker, Bm25Retriever, FaissRetriever, Gold, OverlapReranker, Query, Searcher

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()


def some_texts(count: int = 80) -> list[str]:
    draw = random.Random(4)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(count)]


TEXTS = some_texts()
TITLES = [f"Page {row}" for row in range(len(TEXTS))]


def some_queries(count: int = 20) -> tuple[list[Query], list[Gold]]:
    draw = random.Random(9)
    queries, gold = [], []
    for number in range(count):
        hops = 2 + number % 3
        wanted = draw.sample(range(len(TEXTS)), hops)
        text = " ".join(draw.choice(TEXTS[row].split()) for row in wanted for _ in range(2))
        queries.append(Query(query_id=f"q{number}", text=text, metadata={"hops": hops}))
        gold.append(Gold(query_id=f"q{number}", relevance={f"d{row}": 1 + row % 2 for row in wanted}))
    return queries, gold


QUERIES, GOLD = some_queries()


def searchers() -> dict[str, Searcher]:
    return {
        "bm25": Searcher([Bm25Retriever()]),
        "dense": Searcher([FaissRetriever(HashedWords())]),
        "hybrid + overlap": Searcher(
            [Bm25Retriever(k1=1.2), FaissRetriever(HashedWords())], reranker=OverlapReranker(blend="rank")
        ),
    }


def benchmarker(index: Path, **changed: object) -> Benchmarker:
    """With these settings changed; without cutoffs if only measures are given."""
    arguments: dict[str, object] = {
        "searchers": searchers(), "loader": InMemory(TEXTS, TITLES), "queries": QUERIES, "gold": GOLD,
        "k_values": [10, 3, 5], "index_path": index, "latency_queries": 3,
        "resamples": 200,
    }  # fmt: skip
    if "measures" in changed:
        del arguments["k_values"]
    arguments |= changed
    return Benchmarker(**arguments)  # type: ignore[arg-type]


def collection(folder: Path) -> Path:
    """The small benchmark in BEIR's layout."""
    folder.mkdir()
    passages = [{"_id": f"d{row}", "title": TITLES[row], "text": text} for row, text in enumerate(TEXTS)]
    queries = [{"_id": query.query_id, "text": query.text, "metadata": query.metadata} for query in QUERIES]
    for name, lines in (("corpus.jsonl", passages), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "qrels").mkdir()
    grades = [f"{one.query_id}\t{item}\t{grade}\n" for one in GOLD for item, grade in one.relevance.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades))
    return folder


def configuration(folder: Path, data: Path) -> Path:
    """A configuration file for it, which writes into ``run`` beside itself."""
    path = folder / "sweep.yaml"
    settings = {
        "corpus": {"name": "beir", "path": str(data)},
        "queries": {"name": "beir", "path": str(data)},
        "index": str(folder / "index"),
        "output": str(folder / "run"),
        "k": [3, 10],
        "seed": 3,
        "latency_queries": 2,
        "searchers": {
            "bm25": {"retrievers": [{"name": "bm25", "k1": 1.2}]},
            "clauses": {"retrievers": [{"name": "bm25"}], "processor": {"name": "clauses"}, "scope": "per_subquery"},
        },
        "baseline": "clauses",
    }
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    return path
