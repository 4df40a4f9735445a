"""Lucene through this project against pyserini's own classes: same index, same threads, in turn."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from bench.common import Data, Row, at_least, at_most, best_of_each

_TIMES_FASTER = {10: 1.7, 100: 4, 1000: 12}
"""By depth: hits are what ``batch_search`` spends most on; at k=10 half of its time is Lucene's own scoring."""

os.environ.setdefault("OPENAI_API_KEY", "none")  # pyserini's searcher imports a client that asks for one


def measure(data: Data) -> list[Row]:
    """Searching 1,000 questions at three depths and one by one, and indexing."""
    from nlp_retrieval.retrievers.pyserini import jvm as lucene_jvm

    lucene_jvm.start()
    from pyserini.index.lucene import LuceneIndexer
    from pyserini.search.lucene import LuceneSearcher

    from nlp_retrieval.retrievers.pyserini.index import LuceneIndex, build_index

    texts, questions = data.texts(), data.questions()
    ours, theirs = data.work / "lucene-ours", data.work / "lucene-theirs"

    def build_ours() -> None:
        _empty(ours)
        batches = (texts[start : start + 2000] for start in range(0, len(texts), 2000))
        build_index(batches, ours, language="en", stemmer="porter", document_vectors=False)

    def build_theirs() -> None:
        _empty(theirs)
        indexer = LuceneIndexer(str(theirs), threads=os.cpu_count() or 1)
        for start in range(0, len(texts), 2000):
            batch = enumerate(texts[start : start + 2000], start)
            indexer.add_batch_dict([{"id": f"{row:010d}", "contents": text} for row, text in batch])
        indexer.close()

    ours_s, theirs_s = best_of_each(3, build_ours, build_theirs)
    what = f"Lucene indexing, {len(texts):,} passages"
    rows = [at_least(what, 1.2, theirs_s / ours_s, f"{ours_s:.2f} s; add_batch_dict {theirs_s:.2f} s")]
    index, searcher = LuceneIndex(ours, language="en", stemmer="porter"), LuceneSearcher(str(ours))
    ids = [str(number) for number in range(len(questions))]
    for k, budget in _TIMES_FASTER.items():
        found = index.search(questions, k, k1=0.9, b=0.4)
        expected = searcher.batch_search(questions, ids, k=k, threads=1)
        lists = np.split(found.rows, found.offsets[1:-1])
        differing = sum([int(hit.docid) for hit in expected[i]] != lists[int(i)].tolist() for i in ids)

        def search_ours(k: int = k) -> object:
            return index.search(questions, k, k1=0.9, b=0.4)

        def search_theirs(k: int = k) -> object:
            return searcher.batch_search(questions, ids, k=k, threads=1)

        ours_s, theirs_s = best_of_each(3, search_ours, search_theirs)
        detail = f"{ours_s:.3f} s; batch_search {theirs_s:.2f} s; {differing} of {len(ids)} rankings differ"
        rows.append(at_least(f"BM25 through Lucene, 1,000 queries, k={k}, one thread", budget, theirs_s / ours_s, detail))

    def ask_ours() -> None:
        for question in questions:
            index.search([question], 10, k1=0.9, b=0.4)

    def ask_theirs() -> list[list[tuple[str, float]]]:
        return [[(hit.docid, hit.score) for hit in searcher.search(question, 10)] for question in questions]

    ours_s, theirs_s = best_of_each(3, ask_ours, ask_theirs)
    ours_ms, theirs_ms = 1e3 * ours_s / len(questions), 1e3 * theirs_s / len(questions)
    detail = f"{ours_ms:.2f} ms; LuceneSearcher.search, ids and scores read, {theirs_ms:.2f} ms"
    return [*rows, at_most("BM25 through Lucene, one query a call, k=10", 1.1, ours_s / theirs_s, detail)]


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
