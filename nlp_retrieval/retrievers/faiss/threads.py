"""The number of threads that FAISS uses for a search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import faiss as _faiss

faiss: Any = _faiss


@contextmanager
def threads_for(n_queries: int) -> Iterator[None]:
    """Use one thread for one query: FAISS divides queries among threads, and idle threads would only slow others down.

    OpenMP keeps the number per calling thread, so other searches running at the same time are not affected.
    """
    if n_queries > 1:
        yield
        return
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
