"""Threads that begin at the same moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def raced(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run each call in a thread of its own, all at once; returns what they gave."""
    results: list[T | None] = [None] * len(calls)
    errors: list[Exception] = []
    start = threading.Barrier(len(calls))

    def run(place: int) -> None:
        start.wait()
        try:
            results[place] = calls[place]()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)  # a thousand times as often as Python by itself
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(calls)} threads failed", errors)
    return results  # type: ignore[return-value]
