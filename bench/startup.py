"""How long a person waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.common import Data, Row, best_of_each


def measure(data: Data) -> list[Row]:
    """Whole processes, best of five; a bare interpreter is counted in."""
    del data
    script = str(Path(sys.executable).with_name("nlp-retrieval"))
    return [
        _row("import nlp_retrieval", 0.3, [sys.executable, "-c", "import nlp_retrieval"]),
        _row("nlp-retrieval --help", 0.6, [script, "--help"]),
    ]


def _row(what: str, budget: float, command: list[str]) -> Row:
    (seconds,) = best_of_each(5, lambda: subprocess.run(command, check=True, capture_output=True))
    return Row(what, f"at most {budget} s", f"{seconds:.2f} s", seconds <= budget)
