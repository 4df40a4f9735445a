"""A process of many readers: ``python -m concurrency.readers INDEX THREADS STOP`` until the file STOP is there.

Each thread opens the index, searches, and refreshes now and then; the first never refreshes and must keep its generation. It
prints what they saw as JSON, and an error that one of them met.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from concurrency.generations import QUERIES, generation_of, searcher, told


def read(number: int, index: Path, stop: Path, ready: threading.Barrier) -> tuple[int, list[int]]:
    """Read until the end; returns how many searches it made, and the generations that they were of, in order."""
    try:
        mine = searcher().open(index)
        first = told(mine.search(QUERIES))
        seen = [generation_of(mine.search(QUERIES))]
        ready.wait()
    except BaseException:
        ready.abort()
        raise
    rounds = 0
    while not stop.exists():
        rounds += 1
        taken = False
        if number > 0 and rounds % 3 == 0:
            taken = mine.refresh()
        elif number > 0 and rounds % 7 == 0:
            mine, taken = searcher().open(index), True
        results = mine.search(QUERIES)
        found = generation_of(results)
        assert found >= seen[-1] if taken else found == seen[-1], f"from generation {seen[-1]} to {found}: {taken}"
        assert number > 0 or told(results) == first
        seen.append(found)
        time.sleep(0.002)
    if number > 0:
        mine.refresh()
        seen.append(generation_of(mine.search(QUERIES)))
    return rounds, seen


def main(index: Path, count: int, stop: Path) -> None:
    ready = threading.Barrier(count + 1)
    with ThreadPoolExecutor(count) as pool:
        readers = [pool.submit(read, number, index, stop, ready) for number in range(count)]
        with suppress(threading.BrokenBarrierError):
            ready.wait()
        sys.stdout.write("reading\n")
        sys.stdout.flush()
    sys.stdout.write(json.dumps([reader.result() for reader in readers]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
