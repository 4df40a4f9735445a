"""The interface of experiment trackers: checked before the run, and given the results after it."""

from __future__ import annotations

import hashlib
import socket
from abc import ABC, abstractmethod
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.components.component import Config, canonical_json

_ID_LENGTH = 16
_PATIENCE_S = 3.0


class RunLogger(ABC):
    """Logs finished benchmarks to a tracker: a run for each configuration, and a summary, each once.

    The content comes from :func:`nlp_retrieval.reports.tracking.logged_run.runs_of`; a logger only passes it on.
    """

    @abstractmethod
    def check(self, folder: Path) -> str:
        """Check before the run whether it can be logged, and return in one line where it will be.

        Args:
            folder: folder of the benchmark's files.

        Raises:
            DependencyError: the tracker is not installed.
            ConfigurationError: it does not accept a name or an address.
            OutputError: its server cannot be reached.
        """

    @abstractmethod
    def log(self, report: BenchmarkReport, folder: Path) -> list[str]:
        """Log a benchmark; return lines that say where the runs are, and how to view them.

        Args:
            report: with its files.
            folder: folder of these files.

        Raises:
            OutputError: the runs cannot be written, or are not accepted; the benchmark's files are complete anyway.
        """


def sweep_id(sweep: Config) -> str:
    """Return the id of a sweep."""
    return hashlib.sha256(canonical_json(sweep).encode()).hexdigest()


def run_id(sweep: str, key: str) -> str:
    """Return the id of a run, the same whenever it is logged.

    Args:
        sweep: the id of its sweep.
        key: the run's key within the sweep.
    """
    return hashlib.sha256(f"{sweep} {key}".encode()).hexdigest()[:_ID_LENGTH]


def is_reachable(url: str) -> bool:
    """Return whether a server accepts connections; assumed to be so behind a proxy.

    Args:
        url: with http or https.
    """
    parts = urlsplit(url)
    if parts.scheme in getproxies():
        return True
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=_PATIENCE_S).close()
    except (OSError, ValueError):
        return False
    return True
