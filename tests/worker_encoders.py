"""Encoders that other processes import, and that end, fail or differ there as a test has it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from failing_writes import has_bad_luck
from hashed_words import HashedWords

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.workers import Confirmed


class Surroundings:
    """A task that tells what variables of the environment say in a worker."""

    key = "surroundings"

    def require_sendable(self) -> None:
        """Nothing but its class is sent."""

    def facts(self) -> dict[str, str]:
        return {}

    def elsewhere(self) -> Surroundings:
        return self

    def confirmed(self, place: str) -> Confirmed:
        return Confirmed(place, {})

    def done(self, work: object) -> str | None:
        return os.environ.get(str(work))


class Placed(HashedWords):
    """Is told where to compute, as encoders that torch runs.

    Args:
        device: of torch.
    """

    name = "placed"

    def __init__(self, device: str | None) -> None:
        super().__init__()
        self.device = device


class Unlucky(HashedWords):
    """Something happens in a worker at passages with the word "now", and leaves a line in a file; nothing in the first process.

    Args:
        what: ``killed``, ``raises``, ``refuses``, ``waits``, ``other_model``, ``other_vectors`` or ``nothing``.
        log: the file.
        times: how often it happens.
        home: the process where nothing happens.
    """

    name = "unlucky"

    def __init__(self, what: str, log: str, times: int = 1, home: int = 0) -> None:
        super().__init__()
        self.what, self.log, self.times, self.home = what, Path(log), times, home

    def encode_passages(self, passages: list[str]) -> Vectors:
        if any(" now" in passage for passage in passages) and has_bad_luck(self.log, self.times, self.home):
            match self.what:
                case "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "raises":
                    raise RuntimeError("the weights are gone\nsecond line")
                case "waits" | "other_vectors":
                    time.sleep(600)  # the build ends before
                case "refuses":
                    return super().encode_passages(passages) * float("nan")
        vectors = super().encode_passages(passages)
        return vectors + (os.getpid() if self.what == "other_vectors" else 0)

    def model_fingerprint(self) -> str:
        return super().model_fingerprint() + (" of a worker" if self.what == "other_model" and os.getpid() != self.home else "")
