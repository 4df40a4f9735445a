"""Lucene gives what pyserini gives, for any query, in row order, and says what is missing where it cannot run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from soaking import mostly_soaked

from nlp_retrieval.core.candidates import Hits
from nlp_retrieval.retrievers.pyserini.index import LuceneIndex, Rm3, build_index

COMMON = (
    "river bridge castle Köln naïve café 東京 museum painting novel Kubrick running runs ran children's village "
    "island queen battle 1914 album guitar singer physics electron orbit harbour whale Straße film director"
)
RARE = [f"rare{number}" for number in range(300)]  # feedback drops the terms that a tenth of the documents have
WORDS = COMMON.split() * 3 + RARE
EMPTY_ROW = 17

Oracle = Callable[..., list[tuple[list[int], list[float]]]]


def some_texts(count: int = 400) -> list[str]:
    """Random texts; every fifth repeats an earlier one, so that scores tie, and one row is empty."""
    draw = random.Random(7)
    texts: list[str] = []
    for row in range(count):
        repeat = row % 5 == 4
        texts.append(texts[draw.randrange(row)] if repeat else " ".join(draw.choices(WORDS, k=draw.randint(3, 25))))
        if row == EMPTY_ROW:
            texts[row] = ""
    return texts


TEXTS = some_texts()
QUERIES = [" ".join(random.Random(seed).choices(WORDS, k=1 + seed % 6)) for seed in range(60)]


def index_texts(folder: Path, texts: list[str]) -> LuceneIndex:
    folder.mkdir()
    batches = (texts[start : start + 37] for start in range(0, len(texts), 37))
    build_index(batches, folder, language="en", stemmer="porter", document_vectors=True)
    return LuceneIndex(folder, language="en", stemmer="porter")


def find(index: LuceneIndex, queries: list[str], k: int = 10, **settings: object) -> list[list[int]]:
    return rows_of(index.search(queries, k, **({"k1": 0.9, "b": 0.4} | settings)))  # type: ignore[arg-type]


def rows_of(hits: Hits) -> list[list[int]]:
    return [rows.tolist() for rows in np.split(hits.rows, hits.offsets[1:-1])]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> LuceneIndex:
    return index_texts(tmp_path_factory.mktemp("lucene") / "index", TEXTS)


@pytest.fixture(scope="module")
def pyserini(index: LuceneIndex) -> Oracle:
    """Pyserini's own searcher on the same folder."""
    os.environ.setdefault("OPENAI_API_KEY", "pyserini's import makes a client that wants one")
    from pyserini.search.lucene import LuceneSearcher

    def search(queries: list[str], k: int, rm3: Rm3 | None = None, k1: float = 0.9, b: float = 0.4):  # type: ignore[no-untyped-def]
        searcher = LuceneSearcher(str(index.folder))
        searcher.set_bm25(k1, b)
        if rm3 is not None:
            searcher.set_rm3(rm3.terms, rm3.documents, rm3.query_weight)
        found = searcher.batch_search(queries, [str(place) for place in range(len(queries))], k=k, threads=2)
        lists = [found[str(place)] for place in range(len(queries))]
        return [([int(hit.docid) for hit in hits], [hit.score for hit in hits]) for hits in lists]

    return search


def as_pyserini_shows(scores: np.ndarray) -> list[float]:
    """Pyserini rounds scores to 1e-4 and lowers each of a run of ties by another 1e-6."""
    shown: list[float] = []
    ties = 0
    for score in scores:
        rounded = np.float32(np.floor(np.float64(np.float32(score)) * 10_000 + 0.5) / 10_000)
        ties = ties + 1 if shown and np.float32(shown[-1]) - rounded <= np.float32(1e-4) else 0
        shown.append(float(rounded - np.float32(1e-6) * np.float32(ties)))
    return shown


@pytest.mark.parametrize("k", mostly_soaked([10, 1, 5_000]))
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.7, 0.0)])
def test_rows_and_scores_are_those_of_pyserini(index: LuceneIndex, pyserini: Oracle, k: int, k1: float, b: float) -> None:
    hits = index.search(QUERIES, k, k1=k1, b=b)
    expected = pyserini(QUERIES, k, k1=k1, b=b)
    assert rows_of(hits) == [rows for rows, _ in expected]
    for scores, (_, theirs) in zip(np.split(hits.scores, hits.offsets[1:-1]), expected, strict=True):
        assert as_pyserini_shows(scores) == pytest.approx(theirs, abs=3e-6)


@pytest.mark.parametrize("rm3", [Rm3(), Rm3(terms=3, documents=2, query_weight=0.9)])
def test_feedback_is_that_of_pyserini(index: LuceneIndex, pyserini: Oracle, rm3: Rm3) -> None:
    assert find(index, QUERIES, 20, rm3=rm3) == [rows for rows, _ in pyserini(QUERIES, 20, rm3=rm3)]


SEARCH = """
import sys, tempfile, pathlib
from nlp_retrieval.retrievers.pyserini.index import LuceneIndex, build_index
folder = pathlib.Path(tempfile.mkdtemp())
build_index([["a whale"]], folder, language="en", stemmer="porter", document_vectors=False)
assert LuceneIndex(folder, language="en", stemmer="porter").search(["whale"], 3, k1=0.9, b=0.4).rows.tolist() == [0]
"""


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OPENAI_API_KEY": "none"} | environment
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300, check=False
    )


def test_deep_recursion_in_python_is_an_error_and_no_crash_when_java_runs() -> None:
    nested = """
import json
from nlp_retrieval import SearchableItem
try:
    SearchableItem(item_id="a", content="c", metadata={"x": json.loads("[" * 400 + "]" * 400)})
except ValueError as error:
    assert "maximum validation depth" in str(error), error
    print("refused")
"""
    done = run_python(SEARCH + nested)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


INTERRUPT = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
try:
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
except KeyboardInterrupt:
    print("caught")
"""


def test_control_c_still_reaches_python() -> None:
    assert run_python(SEARCH + INTERRUPT).stdout == "caught\n"


def test_a_library_that_takes_javas_signals_does_not_end_the_process(tmp_path: Path) -> None:
    """As Ray does at its end: without its own handler of faults, Java ends the process at a null pointer."""
    program = (
        "import signal\n"
        "from nlp_retrieval.errors import EngineError\n"
        "from nlp_retrieval.retrievers.pyserini.jvm import calling, java_class, start\n"
        "start()\n"
        "signal.signal(signal.SIGSEGV, signal.SIG_DFL)\n"
        "try:\n"
        "    with calling(EngineError, 'failed'):\n"
        "        java_class('java.lang.Integer').decode(None)\n"
        "except EngineError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, "NullPointerException" in done.stdout) == (0, True), done.stderr
