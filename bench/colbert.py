"""Late interaction: what compression loses, and what an index costs, against exact MaxSim over the same token vectors.

Passages are encoded once, into an exact index; the compressed ones are built from its tokens, read back by row, in
processes of their own whose peak memory is theirs alone. At ten times the size every passage stands there ten times, each
copy with its tokens moved at random by an eighth of their length and scaled back, so that no two are equal: that shows how
size, time and memory grow, and says nothing about quality.

``python -m bench.colbert DATA [passages]`` measures the first so many passages alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.common import Data, Row
from nlp_retrieval.core.candidates import Hits
from nlp_retrieval.core.generation import open_generation
from nlp_retrieval.core.measure import PeakMemory
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.titles import normalize_title
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.multi_vector import ColbertEncoder
from nlp_retrieval.encoders.multi_vector_base import BaseTokenEncoder
from nlp_retrieval.retrievers.colbert import ColbertRetriever

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_CLAIMS = 200
_COPIES = 10
_MOVED = 0.125


class ReadBack(BaseTokenEncoder):
    """Gives back the tokens of an exact index, for texts that are row numbers; it is never asked for queries.

    Args:
        folder: of the exact index.
        copies: how often every passage stands there; copies are moved at random.
    """

    name = "read-back"

    def __init__(self, folder: str, copies: int = 1) -> None:
        self.folder = folder
        self.copies = copies
        self._offsets = np.load(Path(folder) / "offsets.npy")
        with (Path(folder) / "tokens.npy").open("rb") as file:
            np.lib.format.read_magic(file)
            self._dimension = int(np.lib.format.read_array_header_1_0(file)[0][1])
            self._begin = file.tell()

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        raise NotImplementedError

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [self._tokens(int(passage)) for passage in passages]

    def model_fingerprint(self) -> str:
        return f"{self.folder} {self.copies}"

    def _tokens(self, number: int) -> Vectors:
        copy, row = divmod(number, len(self._offsets) - 1)
        first, count = int(self._offsets[row]), int(self._offsets[row + 1] - self._offsets[row])
        place = self._begin + 2 * self._dimension * first
        tokens = np.fromfile(Path(self.folder) / "tokens.npy", np.float16, count * self._dimension, offset=place)
        vectors = tokens.astype(np.float32).reshape(count, self._dimension)
        if copy:
            moved = np.random.default_rng(number).standard_normal(vectors.shape, np.float32)
            vectors += _MOVED / np.sqrt(self._dimension) * moved
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def measure(data: Data, limit: int | None = None) -> list[Row]:
    """Quality of 2 and 4 bits, latency, size, and the cost of building at one and ten times the size."""
    with data.corpus.open(encoding="utf-8") as lines:
        passages = [json.loads(line) for line in lines][:limit]
    items = [SearchableItem(item_id=p["_id"], content=p["text"], metadata={"title": p["title"]}) for p in passages]
    claims, gold = _claims(data, [str(passage["title"]) for passage in passages])
    path = data.work / f"colbert-{len(items)}"
    exact = ColbertRetriever(ColbertEncoder(_MODEL), bits=None)
    begin = time.perf_counter()
    built = exact.index(items, path).built
    seconds = time.perf_counter() - begin
    opened = exact.open(open_generation(path))
    queries = opened.encode(claims)
    whole = opened.search_tokens(queries, 21, None)
    n_gold = sum(map(bool, gold))
    (folder,) = (file.parent for file in path.glob("colbert-*/tokens.npy"))
    at = f"{len(items):,} passages"
    rows = []
    if built:
        rows.append(
            Row(f"colbert: encoding, {at}", "-", f"{len(items) / seconds:.0f} passages/s (MiniLM token by token)", None)
        )
    rows.append(Row(f"colbert exact, {at}", "-", f"recall@21 {_recall(whole, gold):.3f} of {n_gold} claims", None))
    with tempfile.TemporaryDirectory(dir=data.work) as scratch:
        for bits, most, least in ((2, 36, 0.85), (4, 68, 0.95)):
            cost = _built_aside(folder, Path(scratch) / str(bits), bits, 1)
            compressed = _opened(folder, Path(scratch) / str(bits), bits, 1)
            found = compressed.search_tokens(queries, 21, None)
            overlap, recall = _overlap(found, whole, 10), _recall(found, gold)
            measured = f"{overlap:.3f} of the exact top 10 of {len(claims)} claims, recall@21 {recall:.3f} of {n_gold}"
            rows.append(Row(f"colbert {bits} bits, {at}", f"at least {least} of the top 10", measured, overlap >= least))
            rows.append(_size(f"colbert {bits} bits, {at}", cost["index"], most))
            rows.append(_latency(f"colbert {bits} bits, {at}", compressed, queries))
        large = _built_aside(folder, Path(scratch) / "large", 2, _COPIES)
        small = _built_aside(folder, Path(scratch) / "small", 2, 1)
        rows.append(_growth(at, small, large))
        rows.append(
            _latency(f"colbert 2 bits, {_COPIES} x {at}", _opened(folder, Path(scratch) / "large", 2, _COPIES), queries)
        )
    return rows


def _claims(data: Data, titles: list[str]) -> tuple[list[str], list[set[int]]]:
    """Claims of HoVer, those with gold in this part of the corpus first, and the rows of that gold."""
    rows = {normalize_title(title): row for row, title in enumerate(titles)}
    found = json.loads((data.root / "wiki" / "hover" / "hover_dev_subset.json").read_text("utf-8"))
    pairs = [
        (str(claim["claim"]), {rows[t] for title, _ in claim["supporting_facts"] if (t := normalize_title(title)) in rows})
        for claim in found
    ]
    pairs = sorted(pairs, key=lambda pair: not pair[1])[:_CLAIMS]
    return [claim for claim, _ in pairs], [gold for _, gold in pairs]


def _recall(hits: Hits, gold: list[set[int]]) -> float:
    lists = np.split(hits.rows, hits.offsets[1:-1])
    pairs = [(rows, wanted) for rows, wanted in zip(lists, gold, strict=True) if wanted]
    return statistics.mean(len(wanted & set(rows.tolist())) / len(wanted) for rows, wanted in pairs)


def _overlap(one: Hits, other: Hits, k: int) -> float:
    pairs = zip(np.split(one.rows, one.offsets[1:-1]), np.split(other.rows, other.offsets[1:-1]), strict=True)
    return statistics.mean(len(set(a[:k].tolist()) & set(b[:k].tolist())) / k for a, b in pairs)


def _opened(folder: Path, path: Path, bits: int, copies: int) -> ColbertRetriever:
    retriever = ColbertRetriever(ReadBack(str(folder), copies), bits=bits)  # type: ignore[arg-type]
    return retriever.open(open_generation(path))


def _latency(what: str, retriever: ColbertRetriever, queries: list[Vectors]) -> Row:
    """One query a call, the query encoded already, after the loops were compiled."""
    compiled = ColbertRetriever(retriever.encoder, bits=retriever.bits, backend="numba")
    compiled._index = retriever._index
    compiled.search_tokens(queries[:1], 10, None)
    seconds = []
    for query in queries[:100]:
        begin = time.perf_counter()
        compiled.search_tokens([query], 10, None)
        seconds.append(time.perf_counter() - begin)
    tokens = statistics.mean(map(len, queries))
    measured = f"median {1e3 * statistics.median(seconds):.1f} ms ({tokens:.0f} tokens a query; {os.cpu_count()} cores)"
    return Row(f"{what}: one query", "-", measured, None)


def _size(what: str, index: dict[str, int], most: int) -> Row:
    token = index["stored"] / index["tokens"]
    measured = f"{token:.1f} bytes a token, {index['all'] / index['tokens']:.1f} with centroids and inverted lists"
    return Row(f"{what}: {index['tokens']:,} tokens", f"at most {most} bytes a token", measured, token <= most)


def _growth(at: str, small: dict[str, dict[str, int]], large: dict[str, dict[str, int]]) -> Row:
    ran = [
        f"{cost['index']['tokens'] / 1e6:.2f} million tokens: {cost['run']['milliseconds'] / 1e3:.0f} s and "
        f"{cost['run']['peak'] / 1e6:,.0f} MB"
        for cost in (small, large)
    ]
    met = large["run"]["peak"] <= 3 * small["run"]["peak"]
    return Row(
        f"colbert 2 bits, building without encoding, {at} and {_COPIES} times that", "bounded by a sample", ", ".join(ran), met
    )


def _built_aside(folder: Path, path: Path, bits: int, copies: int) -> dict[str, dict[str, int]]:
    command = [sys.executable, "-m", "bench.colbert", "--build", str(folder), str(path), str(bits), str(copies)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cost: dict[str, dict[str, int]] = json.loads(done.stdout.splitlines()[-1])
    return cost


def _build(folder: str, path: Path, bits: int, copies: int) -> dict[str, dict[str, int]]:
    """Build a compressed index of tokens that are there, and return what it cost this process."""
    encoder = ReadBack(folder, copies)
    count = copies * (len(encoder._offsets) - 1)

    def items() -> Iterator[SearchableItem]:
        return (SearchableItem(item_id=str(row), content=str(row)) for row in range(count))

    begin = time.perf_counter()
    with PeakMemory() as memory:
        ColbertRetriever(encoder, bits=bits).index(items(), path)  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    (index,) = path.glob("colbert-*")
    stored = sum((index / name).stat().st_size for name in ("codes.npy", "residuals.npy"))
    everything = sum(file.stat().st_size for file in index.iterdir())
    tokens = json.loads((index / "settings.json").read_text("utf-8"))["tokens"]
    return {
        "run": {"milliseconds": round(1e3 * seconds), "peak": memory.bytes},
        "index": {"tokens": tokens, "stored": stored, "all": everything},
    }


def main(arguments: list[str]) -> None:
    """Measure, or build for a measurement."""
    warnings.simplefilter("ignore")
    if arguments[0] == "--build":
        print(json.dumps(_build(arguments[1], Path(arguments[2]), int(arguments[3]), int(arguments[4]))))
        return
    data = Data(Path(arguments[0]).absolute(), Path(__file__).parent / ".work")
    data.work.mkdir(exist_ok=True)
    for row in measure(data, int(arguments[1]) if arguments[1:] else None):
        print(f"{row.what}: {row.measured} [{row.budget}] {row.met}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
