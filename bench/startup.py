"""How long a person waits before anything happens."""

from __future__ import annotations

import resource
import subprocess
import sys
from itertools import islice
from pathlib import Path

from bench.common import Data, Row, best_of_each, noted
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, Searcher


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
    ]


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
