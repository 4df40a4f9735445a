"""Number of threads to use."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

_SETTERS = {"faiss": "omp_set_num_threads", "torch": "set_num_threads"}

_NUMBERS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"),
)

_most: int | None = None


def usable_cores() -> int:
    """Return how many cores this process may use: fewer than the machine has if a container, ``taskset`` or a limit says so."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return there if _most is None else min(there, _most)


def limit_cores(n: int) -> None:
    """Limit this process to this many cores from now on, including for modules imported later.

    Args:
        n: at least 1.
    """
    global _most  # noqa: PLW0603 -- it is the process that is limited
    _most = n
    os.environ.update(threads_of(n))
    set_threads(n, _SETTERS)


def set_threads(n: int, packages: Collection[str]) -> None:
    """Limit FAISS and torch to this many threads if they are among the packages and already imported."""
    for name, setter in _SETTERS.items():
        set_number = getattr(sys.modules.get(name), setter, None) if name in packages else None
        if set_number is not None:
            set_number(n)


def threads_of(n: int) -> dict[str, str]:
    """The environment in which native libraries start no more than ``n`` threads."""
    return dict.fromkeys(_NUMBERS, str(n)) | {"TOKENIZERS_PARALLELISM": "false"}
