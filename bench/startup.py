"""How long a person waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.common import Data, Row, best_of_each, noted
from nlp_retrieval import BeirLoader, Bm25Retriever, Searcher


def measure(data: Data) -> list[Row]:
    """Whole processes, best of five; a bare interpreter is counted in."""
    script = str(Path(sys.executable).with_name("nlp-retrieval"))
    index = data.work / "bm25-index"
    Searcher([Bm25Retriever()]).index(BeirLoader(str(data.corpus)), index)
    searching = _seconds([script, "search", str(index), data.questions()[0]])
    return [
        _row("import nlp_retrieval", 0.3, [sys.executable, "-c", "import nlp_retrieval"]),
        _row("nlp-retrieval --help", 0.6, [script, "--help"]),
        noted("nlp-retrieval search, one question by `bm25s`, 31,857 passages", f"{searching:.2f} s"),
    ]


def _row(what: str, budget: float, command: list[str]) -> Row:
    seconds = _seconds(command)
    return Row(what, f"at most {budget} s", f"{seconds:.2f} s", seconds <= budget)


def _seconds(command: list[str]) -> float:
    (seconds,) = best_of_each(5, lambda: subprocess.run(command, check=True, capture_output=True))
    return seconds
