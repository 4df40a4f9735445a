"""How long a person waits before anything happens."""

from __future__ import annotations

import resource
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np

from bench.common import Data, Row, best_of_each, noted
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, Searcher
from nlp_retrieval.encoders.bert import open_bert
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder


def measure(data: Data) -> list[Row]:
    """Whole processes, best of five; a bare interpreter is counted in."""
    script = str(Path(sys.executable).with_name("nlp-retrieval"))
    index = data.work / "bm25-index"
    Searcher([Bm25Retriever()]).index(BeirLoader(str(data.corpus)), index)
    searching = _seconds([script, "search", str(index), data.questions()[0]])
    hybrid = data.work / "first-search-index"
    items = list(islice(BeirLoader(str(data.corpus)).stream(), 2000))
    Searcher([Bm25Retriever(), FaissRetriever()]).index(items, hybrid)
    seconds = min(_processor_seconds([script, "search", str(hybrid), data.questions()[0]]) for _ in range(5))
    return [
        _row("import nlp_retrieval", 0.3, [sys.executable, "-c", "import nlp_retrieval"]),
        _row("nlp-retrieval --help", 0.6, [script, "--help"]),
        noted("nlp-retrieval search, one question by `bm25s`, 31,857 passages", f"{searching:.2f} s"),
        Row(
            "nlp-retrieval search, one question by bm25 and MiniLM, 2,000 passages: processor time",
            "at most 2 s",
            f"{seconds:.2f} s",
            seconds <= 2,
        ),
        _same_vectors(data),
    ]


def _same_vectors(data: Data) -> Row:
    """Query vectors without torch, as such a search computes them, against torch's in float32; and the hits of both."""
    encoder = SentenceTransformerEncoder(precision="float32", device="cpu")
    bert = open_bert(encoder.files.folder, None)
    if bert is None:
        return Row("query vectors without torch", "-", "not available", None)
    queries = data.questions()[:500]
    passages = encoder.encode_passages([item.text for item in islice(BeirLoader(str(data.corpus)).stream(), 2000)])
    both = encoder.encode_queries(queries), bert.encode(queries)
    first = [np.argsort(-(vectors.astype(np.float64) @ passages.T), kind="stable")[:, :10] for vectors in both]
    same = int((first[0] == first[1]).all(axis=1).sum())
    difference = float(np.abs(both[0] - both[1]).max())
    measured = f"largest difference {difference:.1e}; the same ten hits in the same order for {same} of {len(queries)}"
    what = "query vectors without torch against torch in float32, 500 questions, 2,000 passages"
    return Row(what, "at most 1e-6", measured, difference <= 1e-6)


def _row(what: str, budget: float, command: list[str]) -> Row:
    seconds = _seconds(command)
    return Row(what, f"at most {budget} s", f"{seconds:.2f} s", seconds <= budget)


def _processor_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _seconds(command: list[str]) -> float:
    (seconds,) = best_of_each(5, lambda: subprocess.run(command, check=True, capture_output=True))
    return seconds
