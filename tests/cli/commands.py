"""The command as a shell runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("nlp-retrieval"))


def run(
    *words: str, stdin: str | bytes = "", folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, without a network."""
    done = subprocess.run(
        [COMMAND, *words],
        input=stdin if isinstance(stdin, bytes) else stdin.encode(),
        capture_output=True,
        cwd=folder,
        env=os.environ | {"HF_HUB_OFFLINE": "1"} | environment,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(done: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """The command ended with this code, one readable message, and nothing on standard output."""
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    for part in said:
        assert part in done.stderr, done.stderr
