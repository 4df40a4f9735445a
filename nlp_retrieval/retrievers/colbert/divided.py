"""The steps of one query, divided among threads by the number of tokens they read; results do not depend on the division."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.blocks import parts_of
from nlp_retrieval.retrievers.colbert.codec import Codes
from nlp_retrieval.retrievers.colbert.files import Compressed

_WORTH_A_THREAD = 4096  # tokens; handing work to a thread costs as much as some hundred


class Steps(Protocol):
    """The inner loops, in numpy or compiled; see :mod:`nlp_retrieval.retrievers.colbert.steps`."""

    def centroid_scores(self, query: Vectors, centroids: Vectors, scores: Vectors) -> None: ...

    def closest_centroids(self, scores: Vectors, nprobe: int, probed: Mask) -> None: ...

    def close_centroids(self, scores: Vectors, least: np.float32, close: Mask) -> None: ...

    def interaction(self, scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None: ...

    def maxsim(
        self,
        query: Vectors,
        centroids: Vectors,
        table: Vectors,
        codes: Codes,
        residuals: NDArray[np.uint8],
        offsets: Rows,
        rows: Rows,
        sums: Scores,
    ) -> None: ...


class DividedSteps:
    """Runs steps, each in as many threads as pay off.

    Args:
        steps: the inner loops.
        threads: run all parts except the first; None for one thread.
        count: how many threads to use, the calling one counted.
    """

    def __init__(self, steps: Steps, threads: ThreadPoolExecutor | None = None, count: int = 1) -> None:
        self.steps = steps
        self._threads = threads
        self._count = count

    def centroid_scores(self, query: Vectors, centroids: Vectors) -> Vectors:
        """Return ``[centroids, query tokens]``, their inner products."""
        scores = np.empty((len(centroids), query.shape[1]), np.float32)
        numbers = np.arange(len(centroids) + 1)
        self._run(lambda part: self.steps.centroid_scores(query, centroids[part], scores[part]), numbers[:-1], numbers)
        return scores

    def interaction(self, scores: Vectors, kept: Mask, columns: Compressed, offsets: Rows, rows: Rows) -> Scores:
        """Score passages by the centroids of their tokens."""
        sums = np.zeros(len(rows))
        self._run(
            lambda part: self.steps.interaction(scores, kept, columns.codes, offsets, rows[part], sums[part]), rows, offsets
        )
        return sums

    def maxsim(
        self, query: Vectors, centroids: Vectors, table: Vectors, columns: Compressed, offsets: Rows, rows: Rows
    ) -> Scores:
        """Score passages by their decoded tokens."""
        sums, stored = np.zeros(len(rows)), (columns.codes, columns.residuals)
        self._run(
            lambda part: self.steps.maxsim(query, centroids, table, *stored, offsets, rows[part], sums[part]), rows, offsets
        )
        return sums

    def _run(self, work: Callable[[slice], None], rows: Rows, offsets: Rows) -> None:
        n_tokens = 0 if self._threads is None else int((offsets[rows + 1] - offsets[rows]).sum())
        count = min(self._count, n_tokens // _WORTH_A_THREAD)
        if self._threads is None or count < 2:
            work(slice(0, len(rows)))
            return
        first, *others = parts_of(rows, offsets, count)
        waiting = [self._threads.submit(work, part) for part in others]
        work(first)
        for part in waiting:
            part.result()
