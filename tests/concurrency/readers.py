"""A process of many readers: ``python -m concurrency.readers INDEX THREADS STOP ENGINE`` until the file STOP is there.

Each thread opens the index, searches, and refreshes now and then; one never refreshes and must keep its generation. What they
saw goes to standard output as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from pathlib import Path

from concurrency.generations import QUERIES, generation_of, searcher, told


class Readers:
    """The threads, and what they saw."""

    def __init__(self, index: Path, count: int, stop: Path, engine: str) -> None:
        self.index, self.count, self.stop, self.engine = index, count, stop, engine
        self.ready = threading.Barrier(count + 1)
        self.searches, self.refreshes = 0, 0
        self.generations: set[int] = set()
        self.last: list[int] = []
        self.errors: list[str] = []
        self._noting = threading.Lock()

    def run(self) -> None:
        """Read until the end, in all threads."""
        threads = [threading.Thread(target=self._guarded, args=(number,)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        self.ready.wait()
        sys.stdout.write("reading\n")
        sys.stdout.flush()
        for thread in threads:
            thread.join()
        seen = {"searches": self.searches, "refreshes": self.refreshes, "generations": sorted(self.generations)}
        sys.stdout.write(json.dumps(seen | {"last": self.last, "errors": self.errors}))

    def _guarded(self, number: int) -> None:
        try:
            self._read(number)
        except BaseException:
            with self._noting:
                self.errors.append(traceback.format_exc())
            self.ready.abort()

    def _read(self, number: int) -> None:
        mine = searcher(self.engine).open(self.index)
        first = told(mine.search(QUERIES))
        current = generation_of(mine.search(QUERIES))
        self.ready.wait()
        rounds = 0
        while not self.stop.exists():
            rounds += 1
            if number > 0 and rounds % 3 == 0:
                taken = mine.refresh()
                found = generation_of(mine.search(QUERIES))
                assert found >= current if taken else found == current, f"refresh() from {current} to {found}: {taken}"
                current = found
            elif number > 0 and rounds % 7 == 0:
                mine = searcher(self.engine).open(self.index)
                found = generation_of(mine.search(QUERIES))
                assert found >= current, f"generation {found} was opened after {current}"
                current = found
            else:
                results = mine.search(QUERIES)
                assert generation_of(results) == current, "a reader's generation changed under it"
                assert number > 0 or told(results) == first
            with self._noting:
                self.searches += 1
                self.generations.add(current)
            time.sleep(0.002)
        if number > 0:
            self.refreshes += mine.refresh()
            with self._noting:
                self.last.append(generation_of(mine.search(QUERIES)))


if __name__ == "__main__":
    Readers(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]).run()
