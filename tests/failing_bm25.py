"""A retriever to which something happens in workers, registered as an installed package would register it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from failing_writes import has_bad_luck

from nlp_retrieval import Bm25Retriever
from nlp_retrieval.core import Hits
from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.components.component import Config


class UnluckyBm25(Bm25Retriever):
    """Something happens in a worker that searches, and leaves a line in a file; nothing in the first process.

    Args:
        what: ``killed``, ``raises`` or ``waits``.
        log: the file.
        times: how often it happens.
        home: the process where nothing happens.
    """

    name = "failing_bm25"
    search_only = frozenset({"what", "log", "times", "home"})

    def __init__(self, what: str, log: str, times: int = 1, home: int = 0) -> None:
        super().__init__()
        self.what, self.log, self.times, self.home = what, Path(log), times, home

    def index_identity(self) -> Config:
        return {"name": self.name, "format": self.format_version}

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        if has_bad_luck(self.log, self.times, self.home):
            match self.what:
                case "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "raises":
                    raise RuntimeError("the terms are gone\nsecond line")
                case "waits":
                    time.sleep(600)  # its node is lost before
        return super().search_batch(queries, k, allowed)


def register(folder: Path) -> Path:
    """Write the entry point of the retriever into a folder that has to come into ``sys.path``."""
    info = folder / "unlucky-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: unlucky\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nlp_retrieval.retrievers]\nfailing_bm25 = failing_bm25:UnluckyBm25\n")
    return folder
