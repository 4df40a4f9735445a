"""Adding to a project and searching it: ``python -m bench.evidence.latency MODEL [DOCUMENTS] [PAGE]``; 500 by default.

MODEL is the folder of a sentence-transformers model: the default searcher (bm25s and vectors, fused) is measured with it beside
bm25s alone. Texts are made of words drawn by their rank, as words of a language are spread; nothing is said of quality.
"""

from __future__ import annotations

import random
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.common import seconds_of
from bench.evidence.speed_page import PAGE, milliseconds, write_section
from bench.writing import table
from nlp_retrieval import Bm25Retriever, FaissRetriever, Searcher
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

QUERIES, AFTERWARDS, VOCABULARY = 200, 10, 20_000
_TEXT = """$documents sources of 400 words ($passages passages), added one at a time, then built at once (the model was loaded
before); $queries searches for five passages, one at a time, after twenty that are not counted; then $afterwards sources
more, each added and built before the next.
`python -m bench.evidence.latency MODEL $documents`, $date, $machine.

$table"""


def _words(draw: random.Random, count: int) -> list[str]:
    return [f"w{int(VOCABULARY ** draw.random())}" for _ in range(count)]


def _page(draw: random.Random) -> str:
    """Forty sentences of ten words, four in a paragraph."""
    sentences = [" ".join(_words(draw, 10)).capitalize() + "." for _ in range(40)]
    return "\n\n".join(" ".join(sentences[first : first + 4]) for first in range(0, 40, 4))


def _measured(searcher: BaseSearcher, documents: int) -> tuple[list[str], int]:
    """The cells of a searcher's row, and how many passages there are."""
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as folder, EvidenceIndex(folder, searcher) as index:

        def add(number: int) -> None:
            index.add_document(_page(draw), f"https://pages.example/{number}")

        def add_and_build(number: int) -> None:
            add(number)
            index.build_index()

        adding = [seconds_of(partial(add, number)) for number in range(documents)]
        building = seconds_of(index.build_index)
        queries = [" ".join(_words(draw, 6)) for _ in range(20 + QUERIES)]
        searching = [seconds_of(partial(index.search, query, 5)) for query in queries][20:]
        passages = index.stats()["passage_count"]
        size = index.stats()["bytes"]
        later = [seconds_of(partial(add_and_build, documents + n)) for n in range(AFTERWARDS)]
    cells = [*milliseconds(adding), f"{building:,.1f}", *milliseconds(searching), *milliseconds(later), f"{size / 2**20:,.1f}"]
    return cells, passages


def main(arguments: list[str]) -> int:
    """Measure, and write the section."""
    if not 1 <= len(arguments) <= 3:
        print("usage: python -m bench.evidence.latency MODEL [DOCUMENTS] [PAGE]")
        return 2
    documents = int(arguments[1]) if len(arguments) > 1 else 500
    path = Path(arguments[2]) if len(arguments) > 2 else PAGE
    vectors = FaissRetriever(arguments[0])
    vectors.encoder.encode_queries(["loads the model"])
    searchers: dict[str, BaseSearcher] = {
        "bm25s": Searcher([Bm25Retriever()]),
        "bm25s and vectors": Searcher([Bm25Retriever(), vectors]),
    }
    measured = {name: _measured(searcher, documents) for name, searcher in searchers.items()}
    heads = (
        *("searcher", "add, median ms", "95% within", "build, s", "search, median ms", "95% within"),
        *("add and build, median ms", "95% within", "MiB on disk"),
    )
    write_section(
        path,
        "Adding and searching",
        _TEXT,
        documents=documents,
        passages=f"{measured['bm25s'][1]:,}",
        queries=QUERIES,
        afterwards=AFTERWARDS,
        table=table(heads, {name: cells for name, (cells, _) in measured.items()}),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
