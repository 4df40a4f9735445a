"""Late interaction: what compression loses, and what an index costs, against exact MaxSim over the same token vectors.

Passages are encoded once, into an exact index; the compressed ones are built from its tokens, read back by row, in
processes of their own whose peak memory is theirs alone. At ten times the size every passage stands there ten times, each
copy with its tokens moved at random by an eighth of their length and scaled back, so that no two are equal: that shows how
size, time and memory grow, and says nothing about quality.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.common import Data, Row, aside, median_ms, noted, peak_bytes, record_of
from bench.stored_tokens import MODEL, StoredTokens, exact_index, tokens_folder
from nlp_retrieval import ColbertEncoder, ColbertRetriever, SearchableItem
from nlp_retrieval.core import Hits
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders import Vectors
from nlp_retrieval.text.titles import normalize_title

_CLAIMS = 200
_COPIES = 10
_QUERY_MS = 25
_LATENCY_GROWTH = 3.2
_PER_TOKEN = 1.2
"""Building ten times as many tokens may take this many times as long per token, and be called linear."""

Built = dict[str, dict[str, int]]
"""What building cost: of the run its milliseconds and peak memory, of the index its tokens and bytes."""


def measure(data: Data) -> list[Row]:
    """Quality of 2 and 4 bits, latency, size, and the cost of building at one and ten times the size."""
    exact, path, items = exact_index(data)
    claims, gold = _claims(data, [item.title for item in items])
    generation = open_generation(path)
    opened = exact.open(generation)
    queries = opened.encode(claims)
    whole = opened.search_tokens(queries, 21, None)
    n_gold, exact_recall = sum(map(bool, gold)), _recall(whole, gold)
    folder = tokens_folder(path)
    at = f"{len(items):,} passages"
    record, _ = record_of(path, exact)
    rows = [
        noted(
            f"colbert: encoding, {at}",
            f"{len(items) / record.seconds:.0f} passages/s (MiniLM token by token), peak of the process {_mb(peak_bytes())}",
        ),
        noted(f"colbert exact, {at}", f"recall@21 {exact_recall:.3f} of {n_gold} claims"),
        _latency(f"colbert exact, {at}", opened, queries)[0],
    ]
    with tempfile.TemporaryDirectory(dir=data.work) as scratch:
        for bits, most, least in ((2, 36, 0.85), (4, 68, 0.95)):
            what = f"colbert {bits} bits, {at}"
            cost = aside("bench.colbert", folder, Path(scratch) / str(bits), bits, 1)
            compressed = _opened(folder, Path(scratch) / str(bits), bits, 1)
            found = compressed.search_tokens(queries, 21, None)
            overlap, recall = _overlap(found, whole, 10), _recall(found, gold)
            measured = f"{overlap:.3f} of the exact top 10, {len(claims)} claims"
            rows.append(Row(what, f"at least {least} of the top 10", measured, overlap >= least))
            measured = f"recall@21 {recall:.3f}, exact {exact_recall:.3f}, {n_gold} claims"
            rows.append(Row(what, "recall@21 within 0.01", measured, abs(recall - exact_recall) <= 0.01))
            rows.append(_size(what, cost["index"], most))
            row, median = _latency(what, compressed, queries)
            rows.append(replace(row, budget=f"at most {_QUERY_MS} ms", met=median <= _QUERY_MS))
            rows.append(noted(f"{what}: building without encoding", _costs(cost, len(items))))
            if bits == 2:
                small, small_ms = cost, median
        n_copies = _COPIES * len(items)
        large = aside("bench.colbert", folder, Path(scratch) / "large", 2, _COPIES)
        row, large_ms = _latency(
            f"colbert 2 bits, {n_copies:,} passages", _opened(folder, Path(scratch) / "large", 2, _COPIES), queries
        )
        rows += [row, *_growth(f"colbert 2 bits, {n_copies:,} passages", small, large, n_copies, large_ms / small_ms)]
    return rows


def _claims(data: Data, titles: list[str]) -> tuple[list[str], list[set[int]]]:
    """Claims of HoVer, those with gold in this part of the corpus first, and the rows of that gold."""
    rows = {normalize_title(title): row for row, title in enumerate(titles)}
    found = json.loads(data.claims.read_text("utf-8"))
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
    retriever = ColbertRetriever(StoredTokens(ColbertEncoder(MODEL), str(folder), copies), bits=bits)  # type: ignore[arg-type]
    return retriever.open(open_generation(path))


def _latency(what: str, retriever: ColbertRetriever, queries: list[Vectors]) -> tuple[Row, float]:
    """One query a call, the query encoded already, after the loops were compiled; also the median in milliseconds."""
    retriever.search_tokens(queries[:1], 10, None)
    median = median_ms(lambda query: retriever.search_tokens([query], 10, None), queries[: 100 if retriever.bits else 20])
    tokens = statistics.mean(map(len, queries))
    measured = f"median {median:.1f} ms ({tokens:.0f} tokens a query; {os.cpu_count()} cores)"
    return noted(f"{what}: one query", measured), median


def _size(what: str, index: dict[str, int], most: int) -> Row:
    token = index["stored"] / index["tokens"]
    measured = f"{token:.1f} bytes a token, {index['all'] / index['tokens']:.1f} with centroids and inverted lists"
    return Row(f"{what}: {index['tokens']:,} tokens", f"at most {most} bytes a token", measured, token <= most)


def _growth(what: str, small: Built, large: Built, n_passages: int, slower: float) -> list[Row]:
    tokens = large["index"]["tokens"] / small["index"]["tokens"]
    longer = large["run"]["milliseconds"] / small["run"]["milliseconds"] / tokens
    return [
        Row(f"{what}: one query", f"at most {_LATENCY_GROWTH} times as long", f"{slower:.2f} times", slower <= _LATENCY_GROWTH),
        Row(
            f"{what}: building without encoding",
            f"linear: at most {_PER_TOKEN} times as long a token",
            f"{longer:.2f} times; {_costs(large, n_passages)}",
            longer <= _PER_TOKEN,
        ),
    ]


def _costs(cost: Built, n_passages: int) -> str:
    seconds = cost["run"]["milliseconds"] / 1e3
    return (
        f"{cost['index']['tokens'] / 1e6:.2f} million tokens in {seconds:.0f} s ({n_passages / seconds:,.0f} passages/s), "
        f"peak {_mb(cost['run']['peak'])}"
    )


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _build(folder: str, path: Path, bits: int, copies: int) -> Built:
    """Build a compressed index of tokens that are there, and return what it cost this process."""
    encoder = StoredTokens(ColbertEncoder(MODEL), folder, copies)

    def items() -> Iterator[SearchableItem]:
        return (SearchableItem(item_id=str(row), content=str(row)) for row in range(encoder.n_passages))

    begin = time.perf_counter()
    ColbertRetriever(encoder, bits=bits).index(items(), path)  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    (index,) = path.glob("colbert-*")
    stored = sum((index / name).stat().st_size for name in ("codes.npy", "residuals.npy"))
    everything = sum(file.stat().st_size for file in index.iterdir())
    tokens = len(np.load(index / "codes.npy", mmap_mode="r"))
    return {
        "run": {"milliseconds": round(1e3 * seconds), "peak": peak_bytes()},
        "index": {"tokens": tokens, "stored": stored, "all": everything},
    }


if __name__ == "__main__":
    print(json.dumps(_build(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
