"""pgvector against the same SQL by hand, and what filters cost: ``python -m bench.policy.pgvector [ROWS] [options]``.

Random unit vectors of 384 dimensions, seeded, in which 32 directions hold nine tenths of what there is, as in those of texts
(of vectors without any such direction, no graph finds the neighbours, which are hardly nearer than others). With
``--real DATA MODEL``, passages and questions of DATA's policy/cat as MODEL encodes them (kept in ``bench/.work``); rows beyond
their number are copies, each moved at random by a third of its length, so that recall there is that of crowds of near copies.
Every hundredth row passes the filter. Recall is that of the exact answer by numpy. Times are the median of single queries, both
sides in turn; by hand means one statement over psycopg, with the list of rows that may be found where there is a filter,
and nothing checked or converted. With ``--peers`` LangChain's and LlamaIndex's stores are asked the same of the same server
(``bench/policy/peer_stores.py``), from a venv that is made in ``bench/.work``.
``--server env:NAME`` names a server; by default an embedded one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.sql import SQL

from bench.common import Data, python_with
from nlp_retrieval import BeirLoader, PgvectorRetriever, SearchableItem, SentenceTransformerEncoder
from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.servers.retriever import ServerRecord

DIMENSION, K, N_QUERIES, EVERY = 384, 10, 50, 100
_INNER = 32
_DIRECTIONS = 3 * np.random.default_rng(2).standard_normal((_INNER, DIMENSION), np.float32) / np.sqrt(_INNER)


class SeededVectors(BaseEncoder):
    """A random unit vector per text, which is a number, or ``q`` and a number.

    Args:
        dimension: of the vectors.
    """

    name = "bench-seeded-vectors"

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension

    def model_fingerprint(self) -> str:
        return "seeded"

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        rows = []
        for text in passages:
            seed = [1, int(text[1:])] if text.startswith("q") else [0, int(text)]
            draw = np.random.default_rng(seed)
            rows.append(
                draw.standard_normal(_INNER, np.float32) @ _DIRECTIONS + draw.standard_normal(self.dimension, np.float32)
            )
        vectors = np.array(rows, np.float32)
        scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled


class NearVectors(BaseEncoder):
    """Real vectors by their numbers, and copies of them moved at random.

    Args:
        folder: holds ``passages.npy`` and ``queries.npy``.
    """

    name = "bench-near-vectors"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._passages, self._queries = (np.load(Path(folder) / f"{name}.npy") for name in ("passages", "queries"))
        self.dimension = self._passages.shape[1]

    def model_fingerprint(self) -> str:
        return "near"

    def encode_queries(self, queries: list[str]) -> Vectors:
        found: Vectors = self._queries[[int(text[1:]) for text in queries]]
        return found

    def encode_passages(self, passages: list[str]) -> Vectors:
        rows = np.array(list(map(int, passages)))
        vectors = self._passages[rows % len(self._passages)]
        for place in np.flatnonzero(rows >= len(self._passages)).tolist():
            moved = np.random.default_rng([3, int(rows[place])]).standard_normal(self.dimension, np.float32)
            vectors[place] += moved / np.linalg.norm(moved) / 3
        scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled


def real_vectors(data: Data, model: str) -> NearVectors:
    """The passages and every twentieth question of policy/cat, encoded once."""
    folder = data.work / "policy-vectors"
    if not (folder / "queries.npy").exists():
        folder.mkdir(exist_ok=True)
        encoder, loader = SentenceTransformerEncoder(model), BeirLoader(str(data.root / "policy" / "cat"))
        np.save(folder / "passages.npy", encoder.encode_passages([item.text for item in loader.stream()]))
        texts = [query.text for query in loader.queries()]
        chosen = [texts[number] for number in np.linspace(0, len(texts) - 1, N_QUERIES).astype(int).tolist()]
        np.save(folder / "queries.npy", encoder.encode_queries(chosen))
    return NearVectors(str(folder))


def main(n_rows: int, url: str | None, encoder: BaseEncoder, *, peers: bool) -> dict[str, Any]:
    """Measure an exact table and one with a graph, and other libraries over the same server."""
    queries = encoder.encode_queries([f"q{number}" for number in range(N_QUERIES)])
    measured: dict[str, Any] = {"rows": n_rows, "dimension": queries.shape[1], "k": K}
    items = [SearchableItem(item_id=f"row {row}", content=str(row), metadata={"part": row % EVERY}) for row in range(n_rows)]
    blocks = [list(map(str, range(first, min(first + 10_000, n_rows)))) for first in range(0, n_rows, 10_000)]
    everything = np.concatenate([encoder.encode_passages(block) for block in blocks])
    memory = max(2000, 3 * n_rows // 1000)  # a graph that no longer fits is finished row by row on disk
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("exact", "hnsw"):
            retriever = PgvectorRetriever(encoder, url=url, index_type=kind, build_memory=memory, statement_timeout=3600.0)
            path = Path(folder) / kind
            begin = time.perf_counter()
            retriever.index(items, path)
            measured[f"{kind}: build"] = f"{time.perf_counter() - begin:.1f} s"
            generation = open_generation(path)
            opened = retriever.open(generation)
            record = ServerRecord.read(next(path.glob("pgvector-*")))
            for name, (_, where) in FILTERS.items():
                allowed = generation.items.mask(where)
                measured[kind + name] = _compared(opened, retriever, path, record, everything, queries, allowed)
            if kind == "hnsw" and peers:
                measured |= _peers(_url_of(retriever, path), Path(folder), everything, queries)
            opened = retriever = None  # type: ignore[assignment]  # its server stops
    return measured


FILTERS: dict[str, tuple[Any, Any]] = {
    "": (None, None),
    ", 1% filter": ({"$eq": 7}, {"part": 7}),
    ", 50% filter": ({"$lt": EVERY // 2}, {"part": {"lt": EVERY // 2}}),
}
"""By name, what passes, as other libraries say it and as we do."""


def _peers(url: str, folder: Path, everything: Vectors, queries: Vectors) -> dict[str, Any]:
    """The same of other libraries."""
    packages = ["langchain-postgres", "llama-index-vector-stores-postgres", "psycopg2-binary"]
    python = python_with(Data.of(".").work / "peers", "installed", packages)
    parts = np.arange(len(everything)) % EVERY
    for name, array in (("passages", everything), ("queries", queries), ("parts", parts)):
        np.save(folder / f"{name}.npy", array)
    filters = {name: theirs for name, (theirs, _) in FILTERS.items()}
    (folder / "filters.json").write_text(json.dumps(filters), "utf-8")
    script = Path(__file__).with_name("peer_stores.py")
    command = [python, "-I", script, url, folder]  # this folder has modules named like theirs
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    measured: dict[str, Any] = {}
    for library, found in told.items():
        if "failed" in found:
            measured[library] = found["failed"]
            continue
        measured[f"{library}: build"] = f"{found['build']:.1f} s"
        for name, (_, where) in FILTERS.items():
            part = parts == 7 if where == {"part": 7} else parts < EVERY // 2 if where else np.ones(len(parts), bool)
            lists = [{*rows} for rows in found["asked"][name]["rows"]]
            measured[library + name] = {
                "median": f"{1000 * statistics.median(found['asked'][name]['seconds']):.2f} ms",
                "recall@10": f"{_recall(lists, everything, queries, part):.3f}",
                "fewest found": str(min(map(len, lists))),
            }
    return measured


def _recall(lists: list[set[int]], everything: Vectors, queries: Vectors, allowed: Mask | None) -> float:
    """The mean share of the exact answers that is among what was found."""
    shown = everything if allowed is None else everything[allowed]
    numbers = np.arange(len(everything)) if allowed is None else np.flatnonzero(allowed)
    best = [numbers[np.argsort(-(shown @ vector), kind="stable")[:K]].tolist() for vector in queries]
    return statistics.mean(len(found & {*wanted}) / K for found, wanted in zip(lists, best, strict=True))


def _compared(
    opened: PgvectorRetriever,
    retriever: PgvectorRetriever,
    path: Path,
    record: ServerRecord,
    everything: Vectors,
    queries: Vectors,
    allowed: Mask | None,
) -> dict[str, str]:
    by_hand = _by_hand(retriever, path, record, allowed)
    ours: list[float] = []
    hands: list[float] = []
    found, lists = [], []
    for number in [0, *range(len(queries))]:
        vector = queries[number][None]
        if len(ours) % 2:  # who comes second finds the pages read
            rows, seconds_by_hand = _timed(lambda: by_hand(vector[0]))  # noqa: B023
        hits, seconds = _timed(lambda: opened.search_prepared(vector, K, allowed))  # noqa: B023
        if not len(ours) % 2:
            rows, seconds_by_hand = _timed(lambda: by_hand(vector[0]))  # noqa: B023
        ours.append(seconds)
        hands.append(seconds_by_hand)
        found.append(len(hits.rows))
        lists.append({*hits.rows.tolist()})
        assert rows
    batch = _timed(lambda: opened.search_prepared(queries, K, allowed))[1]
    median, hand = statistics.median(ours[1:]), statistics.median(hands[1:])
    return {
        "ours": f"{1000 * median:.2f} ms",
        "by hand": f"{1000 * hand:.2f} ms",
        "ratio": f"{median / hand:.2f}",
        "in one batch": f"{1000 * batch / N_QUERIES:.2f} ms a query",
        "recall@10": f"{_recall(lists[1:], everything, queries, allowed):.3f}",
        "fewest found": str(min(found)),
    }


def _by_hand(
    retriever: PgvectorRetriever, path: Path, record: ServerRecord, allowed: Mask | None
) -> Callable[[Any], list[Any]]:
    """One statement on a connection of its own, as somebody writes it who knows pgvector."""
    connection = psycopg.connect(_url_of(retriever, path), autocommit=True)
    connection.execute("SELECT '[1]'::vector")
    connection.execute("SET hnsw.ef_search = 100")
    connection.execute("SET hnsw.iterative_scan = strict_order")
    condition, values = SQL("true"), {}
    if allowed is not None:
        condition, values = SQL("row = ANY(%(rows)s)"), {"rows": np.flatnonzero(allowed).tolist()}
    statement = SQL(
        "SELECT row, -(embedding <#> %(query)s::vector) FROM {} WHERE {} ORDER BY embedding <#> %(query)s::vector LIMIT 10"
    ).format(retriever.named(record.table), condition)

    def ask(vector: Vectors) -> list[Any]:
        text = "[" + ",".join(map(str, vector.tolist())) + "]"
        return connection.execute(statement, {"query": text} | values).fetchall()

    return ask


def _url_of(retriever: PgvectorRetriever, path: Path) -> str:
    return retriever.server_of(path)._url


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.policy.pgvector")
    parser.add_argument("rows", nargs="?", type=int, default=100_000)
    parser.add_argument("--server", metavar="env:NAME")
    parser.add_argument("--real", nargs=2, metavar=("DATA", "MODEL"))
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    chosen = real_vectors(Data.of(given.real[0]), given.real[1]) if given.real else SeededVectors()
    print(json.dumps(main(given.rows, given.server, chosen, peers=given.peers), indent=1))
