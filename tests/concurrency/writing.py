"""A process that writes to an index and does not finish: ``python -m concurrency.writing INDEX GENERATION``.

It says "writing" once it has begun, and goes on when a line comes on standard input.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from concurrency.generations import corpus, searcher
from nlp_retrieval import SearchableItem


def halting(number: int) -> Iterator[SearchableItem]:
    """The items of a corpus, with a halt in the middle."""
    items = corpus(number)
    yield from items[:30]
    sys.stdout.write("writing\n")
    sys.stdout.flush()
    sys.stdin.readline()
    yield from items[30:]


if __name__ == "__main__":
    searcher().index(halting(int(sys.argv[2])), sys.argv[1], replace=True)
    sys.stdout.write("done\n")
    sys.stdout.flush()
