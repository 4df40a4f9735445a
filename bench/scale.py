"""Engines as a corpus grows: ``python -m bench.scale DATA ENGINE PASSAGES [ENGINE PASSAGES ...]`` writes SCALE.md.

The passages are those of the wiki collection again and again, with its lengths and words; each copy has names of its own, so
that no copy mentions another's titles. A copy's vector is the mean of two passages' real ones and a little noise, so that
vectors lie as real ones do. The questions are HotpotQA's. Nothing is encoded. Rows of earlier runs stay; ``flat`` is needed at
each size at which recall is to be told, because it is what the others are compared with.
"""

from __future__ import annotations

import json
import shutil
import string
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.common import Data, aside, peak_bytes, record_of, seconds_of
from bench.memory import copied_items
from bench.writing import page, table
from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    LinkGraphRetriever,
    PyseriniRetriever,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.encoders import BaseEncoder, Vectors

_ONE_BY_ONE, _K, _NOISE = 200, 10, 0.02
_KEPT = "scale.json"


class DrawnVectors(BaseEncoder):
    """Real vectors of questions; of a passage, the mean of those of two passages that a checksum of its text draws."""

    name = "drawn-vectors"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._passages = np.load(Path(folder) / "passages.npy", mmap_mode="r")
        self._questions = np.load(Path(folder) / "questions.npy")
        texts = json.loads((Path(folder) / "questions.json").read_text("utf-8"))
        self._rows = {text: row for row, text in enumerate(texts)}
        self._noise = np.random.default_rng(0).standard_normal((4096, self.dimension)).astype(np.float32) * _NOISE

    @property
    def dimension(self) -> int:
        """That of the real vectors."""
        return int(self._passages.shape[1])

    def encode_queries(self, queries: list[str]) -> Vectors:
        found: Vectors = self._questions[[self._rows[query] for query in queries]]
        return found

    def encode_passages(self, passages: list[str]) -> Vectors:
        drawn = np.array([[zlib.crc32(text.encode()), zlib.adler32(text.encode())] for text in passages], np.int64)
        vectors = self._passages[drawn % len(self._passages)].mean(1) + self._noise[drawn[:, 0] % len(self._noise)]
        scaled: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return scaled

    def model_fingerprint(self) -> str:
        return "drawn vectors"


Made = Callable[[BaseEncoder], list[BaseRetriever]]
ENGINES: dict[str, Made] = {
    "bm25s": lambda _: [Bm25Retriever()],
    "Lucene": lambda _: [PyseriniRetriever()],
    "flat": lambda encoder: [FaissRetriever(encoder, index="flat")],
    "sq8": lambda encoder: [FaissRetriever(encoder, index="sq8")],
    "hnsw": lambda encoder: [FaissRetriever(encoder, index="hnsw")],
    "ivfpq": lambda encoder: [FaissRetriever(encoder, index="ivfpq")],
    "link graph": lambda encoder: [LinkGraphRetriever([Bm25Retriever(), FaissRetriever(encoder)])],
}


def prepared(data: Data) -> Path:
    """The folder of real vectors."""
    encoder, folder = SentenceTransformerEncoder(), data.work / "scale"
    if not (folder / "questions.json").exists():
        from nlp_retrieval import BeirLoader

        dense = FaissRetriever(encoder)
        Searcher([dense]).index(BeirLoader(str(data.corpus)), data.work / "wiki-index")
        folder.mkdir(exist_ok=True)
        shutil.copy(record_of(data.work / "wiki-index", dense)[1] / "vectors.npy", folder / "passages.npy")
        np.save(folder / "questions.npy", encoder.encode_queries(data.questions()))
        (folder / "questions.json").write_text(json.dumps(data.questions()), "utf-8")
    return folder


def passages(corpus: Path, count: int) -> Iterator[SearchableItem]:
    """So many passages."""
    copies = copied_items(corpus, len(string.ascii_lowercase) ** 2, own_names=True)
    return (item for item, _ in zip(copies, range(count), strict=False))


def engine(name: str, count: int, root: str) -> dict[str, Any]:
    """What an engine takes at a size; the index is removed."""
    data = Data.of(root)
    place, questions = data.work / "scale-index", data.questions()
    shutil.rmtree(place, ignore_errors=True)
    encoder = DrawnVectors(str(data.work / "scale"))
    before = peak_bytes()
    searcher = Searcher(ENGINES[name](encoder))
    try:
        begin = time.perf_counter()
        searcher.index(passages(data.corpus, count), place)
        built, peak = time.perf_counter() - begin, peak_bytes()
        n_bytes = {
            folder.name.split("-")[0]: sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            for folder in place.iterdir()
            if folder.is_dir()
        }
        searcher.search(questions[-2:], _K)
        alone = [seconds_of(lambda one=one: searcher.search([one], _K)) for one in questions[:_ONE_BY_ONE]]  # type: ignore[misc]
        begin = time.perf_counter()
        lists = searcher.search(questions, _K)
        together = time.perf_counter() - begin
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return {
        "passages": count,
        "build": built,
        "bytes": n_bytes,
        "build_peak": peak - before,
        "peak": peak_bytes() - before,
        "median": median(alone),
        "p95": float(np.quantile(alone, 0.95)),
        "together": len(questions) / together,
        "found": [[hit.item.item_id for hit in hits] for hits in lists],
    }


def _recall(told: dict[str, Any], exact: dict[str, Any] | None) -> str:
    if exact is None:
        return "-"
    pairs = zip(told["found"], exact["found"], strict=True)
    return f"{np.mean([len(set(mine) & set(theirs)) / len(theirs) for mine, theirs in pairs]):.3f}"


def _cells(name: str, told: dict[str, Any], exact: dict[str, Any] | None) -> list[str]:
    own = sum(size for folder, size in told["bytes"].items() if folder != "items")
    return [
        f"{told['build']:,.0f} s",
        f"{own / 1e6:,.0f} MB",
        f"{told['build_peak'] / 1e6:,.0f} MB",
        f"{1000 * told['median']:.1f} ms",
        f"{1000 * told['p95']:.1f} ms",
        f"{told['together']:,.0f} a second",
        _recall(told, exact) if name in ("sq8", "hnsw", "ivfpq") else "-",
    ]


def main(root: str, wanted: list[tuple[str, int]]) -> None:
    """Measure each engine at its size, and write the page."""
    data = Data.of(root)
    prepared(data)
    file = data.work / _KEPT
    kept: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for name, count in wanted:
        kept[f"{name}|{count}"] = aside("bench.scale", "--engine", name, count, root)
        file.write_text(json.dumps(kept), "utf-8")
    keys = sorted(kept, key=lambda key: (list(ENGINES).index(key.split("|")[0]), kept[key]["passages"]))
    rows = {}
    for key in keys:
        name, size = key.split("|")
        rows[f"{name}, {int(size):,} passages"] = _cells(name, kept[key], kept.get(f"flat|{size}"))
    heads = ["", "build", "on disk", "peak of building", "one question", "p95", "many questions", "recall@10"]
    text = Path(__file__).with_name("scale_page.md").read_text("utf-8")
    Path(__file__).with_name("SCALE.md").write_text(page(text, table=table(heads, rows)), "utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--engine":
        print(json.dumps(engine(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
    else:
        main(sys.argv[1], list(zip(sys.argv[2::2], map(int, sys.argv[3::2]), strict=True)))
