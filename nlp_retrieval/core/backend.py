"""The choice between loops in numpy and loops compiled by numba, which differ only in speed.

Compiling takes a second or more, so ``auto`` compiles only after numpy has taken that long in this process. This is never much
worse than the better choice.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Literal

from nlp_retrieval.errors import DependencyError

Backend = Literal["auto", "numpy", "numba"]


class CompiledLoops:
    """Loops that exist in numpy and for numba, and how long those in numpy have run in this process."""

    def __init__(self, compiling_seconds: float) -> None:
        self.compiling_seconds = compiling_seconds
        self.numpy_seconds = 0.0

    def chosen(self, backend: Backend) -> bool:
        """Return whether to run the loops that numba compiles."""
        if backend == "numba":
            require_numba()
        return backend == "numba" or (backend == "auto" and self.numpy_seconds > self.compiling_seconds and _has_numba())

    @contextmanager
    def in_numpy(self) -> Iterator[None]:
        """Count the time of the block as spent in numpy."""
        begin = perf_counter()
        yield
        self.numpy_seconds += perf_counter() - begin


def require_numba() -> None:
    """Raise :class:`DependencyError` unless numba is installed."""
    if not _has_numba():
        raise DependencyError("backend='numba' needs numba: pip install numba; or choose backend='numpy'")


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None
