"""How long a person waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.common import Data, Row


def measure(data: Data) -> list[Row]:
    """Whole processes, best of five; a bare interpreter is counted in."""
    del data
    script = str(Path(sys.executable).with_name("nlp-retrieval"))
    return [
        _row("import nlp_retrieval", 0.3, [sys.executable, "-c", "import nlp_retrieval"]),
        _row("nlp-retrieval --help", 0.6, [script, "--help"]),
    ]


def _row(what: str, budget: float, command: list[str]) -> Row:
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
    return Row(what, f"at most {budget} s", f"{min(seconds):.2f} s", min(seconds) <= budget)
