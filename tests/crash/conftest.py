"""One worker for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.driving import Trials, Worker
from crash.operations import OPERATIONS


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    """A worker in a folder that a user without rights can enter, which those of pytest are not."""
    in_memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="crash-", dir=in_memory if os.access(in_memory, os.W_OK) else None))
    folder.chmod(0o755)
    made = Worker(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def trials(worker: Worker) -> dict[str, Trials]:
    """Operations with their states, made when they are first asked for."""

    class Made(dict[str, Trials]):
        def __missing__(self, name: str) -> Trials:
            self[name] = Trials(worker, OPERATIONS[name])
            return self[name]

    return Made()
