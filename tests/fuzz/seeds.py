"""Valid small inputs of every target: where a fuzzer begins."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .inputs import scratch
from .targets import TARGETS

_ROW = {"id": "d1", "content": "A fox. It runs.", "title": "Fox (1995 film)", "metadata": {"year": 1995, "tags": ["a"]}}
_LINES = json.dumps(_ROW) + '\n\n{"id": 7, "content": "\\u00e9\\n", "x": [1.5e3, null, true]}\r\n'
_CSV = 'id,content,title,year\n1,"a ""fox"", red\n",Fox,1995\n2,\u00e9,,\n'
_SWEEP = """corpus: {loader: beir, path: data}
queries: &q {loader: hover, path: h.json, hops: [3]}
k: [5, 10]
baseline: bm25
index: indexes/wiki
prices: {openai/gpt: {input: 0.15, output: 0.6}, currency: USD}
wandb: {project: p, mode: offline}
mlflow: {experiment: p, uri: "sqlite:///runs.db"}
seed: 3
searchers:
  bm25: {retrievers: [{name: bm25}]}
grid:
  searcher: {retrievers: [{name: bm25, k1: 0.9}]}
  vary: {"retrievers.0.k1": [0.5, 1.2], "retrievers.0.b": {low: 0.1, high: 0.4}}
  skip: [{"retrievers.0.k1": 1.2}]
"""
_ANSWERS = [
    "Here are three phrases:\n1. fox hunt\n2) \"tree\"; 'river'\n- phrase 3: castle",
    '```json\n["fox", "tree house", ["x"]]\n```',
    'Sure! {"queries": ["fox", "tree"]} Done.',
    "\U0001f600 null",
]


def _corpora() -> list[bytes]:
    path = scratch() / "corpus.parquet"
    rows = [
        {"id": number, "content": "a fox", "doc": {"body": "b", "tags": [["x"], []]}, "price": decimal.Decimal("1.50"),
         "when": datetime.datetime(2020, 1, number, tzinfo=datetime.UTC), "title": None if number == 2 else "T"}
        for number in (1, 2, 3)
    ]  # fmt: skip
    made = []
    for settings in ({}, {"compression": "zstd", "data_page_version": "2.0"}, {"use_dictionary": False, "compression": "none"}):
        pq.write_table(pa.Table.from_pylist(rows), path, **settings)
        made.append(path.read_bytes())
    return made


SEEDS: dict[str, Callable[[], list[Any]]] = {
    "jsonl": lambda: [_LINES, gzip.compress(_LINES.encode(), mtime=0)],
    "trec_run": lambda: ["q1 Q0 d1 1 2.5 tag\nq1 Q0 %:d%202 2 2.5 tag\nq2\tQ0\td1\t1\t-1e-3\ttag\n"],
    "trec_qrels": lambda: ["q1 0 d1 1\nq1 0 %:d%202 -1\nq2\t0\td1\t3\n"],
    "csv": lambda: [
        _CSV,
        f"\ufeff{_CSV}",
        gzip.compress(_CSV.encode(), mtime=0),
        _CSV.replace(",", ";"),
    ],
    "parquet": _corpora,
    "answers": lambda: _ANSWERS,
    "sweep": lambda: [_SWEEP],
    "urls": lambda: ["postgresql://me:se%20cret@host/db?sslmode=require&password=x", "mysql+pymysql://a:b@h"],
}
assert set(SEEDS) == set(TARGETS)


def seeds_of(target: str, made: Mapping[str, Callable[[], list[Any]]] = SEEDS) -> list[bytes]:
    """Return the inputs that a target begins with."""
    return [one if isinstance(one, bytes) else one.encode() for one in made[target]()]
