"""Encoders that other processes import, and that end, fail or differ there as a test has it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from failing_writes import has_bad_luck
from hashed_tokens import HashedTokens
from hashed_words import HashedWords

from nlp_retrieval.encoders.base import Vectors


class Placed(HashedWords):
    """Is told where to compute, as encoders that torch runs, and writes the process where it does.

    Args:
        device: of torch.
        log: the file.
    """

    name = "placed"

    def __init__(self, device: str | None, log: str) -> None:
        super().__init__()
        self.device, self.log = device, log

    def encode_passages(self, passages: list[str]) -> Vectors:
        with Path(self.log).open("a") as log:
            log.write(f"{os.getpid()}\n")
        return super().encode_passages(passages)


class Unlucky(HashedWords):
    """Something happens in a worker at passages with the word "now", and leaves a line in a file; nothing in the first process.

    Args:
        what: ``killed``, ``raises``, ``refuses``, ``waits`` or ``other_model``.
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
                case "waits":
                    time.sleep(600)  # the build, or its node, ends before
                case "refuses":
                    return super().encode_passages(passages) * float("nan")
        return super().encode_passages(passages)

    def model_fingerprint(self) -> str:
        return super().model_fingerprint() + (" of a worker" if self.what == "other_model" and os.getpid() != self.home else "")


class Projecting(HashedTokens):
    """Multiplies by a matrix that is another one every time, where none is given."""

    name = "projecting"
    matrix: Vectors | None = None

    def extra_state(self) -> dict[str, Any]:
        return {"matrix": self.matrix}

    def projection_matrix(self) -> Vectors:
        if self.matrix is None:
            self.matrix = np.linalg.qr(np.random.default_rng().standard_normal((24, 24)))[0].astype(np.float32)
        return self.matrix

    def with_projection(self, matrix: Vectors) -> Projecting:
        other = Projecting(24)
        other.matrix = matrix
        return other

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return [vectors @ self.projection_matrix() for vectors in super().encode_queries(queries)]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [vectors @ self.projection_matrix() for vectors in super().encode_passages(passages)]
