"""What reading a corpus takes: each loader against its plain library by hand, over the same passages in the same order.

By hand means Python's ``csv``, pyarrow and ``json``, to one dictionary a row; a loader checks every row besides and makes an
item of it. Times are of the processor, best of three in turn: one thread does all of it, and what else the machine does counts
for nothing.
"""

from __future__ import annotations

import csv
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.common import Data, Row, noted
from nlp_retrieval import CsvLoader, JsonlLoader, ParquetLoader
from nlp_retrieval.core.files.frames import BaseLoader

_REPEATS = 3
_BATCH = 256
"""Rows of Parquet at a time, as its loader takes them."""


def measure(data: Data) -> list[Row]:
    """One row per form."""
    with data.corpus.open(encoding="utf-8") as lines:
        read = [json.loads(line) for line in lines]
    rows = [{"id": row["_id"], "title": row["title"], "content": row["text"]} for row in read]
    with tempfile.TemporaryDirectory() as folder:
        return [_measured(form, Path(folder) / f"corpus.{form}", rows) for form in _FORMS]


def _measured(form: str, path: Path, rows: list[dict[str, Any]]) -> Row:
    loader, by_hand, write = _FORMS[form]
    write(path, rows)
    times = [(_seconds(loader(path).stream()), _seconds(by_hand(path))) for _ in range(_REPEATS)]
    ours, plain = map(min, zip(*times, strict=True))
    size = path.stat().st_size / 1e6
    return noted(
        f"reading {form.upper()}, {len(rows):,} passages, {size:.1f} MB",
        f"{size / ours:.1f} MB/s, {len(rows) / ours:,.0f} rows/s; by hand {size / plain:.1f} MB/s, "
        f"{len(rows) / plain:,.0f} rows/s: {ours / plain:.1f} times the time",
    )


def _seconds(rows: Iterable[object]) -> float:
    begin = time.process_time()
    deque(rows, maxlen=0)
    return time.process_time() - begin


def _cells_by_hand(path: Path, delimiter: str) -> Iterable[object]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def _parquet_by_hand(path: Path) -> Iterable[object]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH):
            yield from batch.to_pylist()


def _lines_by_hand(path: Path) -> Iterable[object]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _write_cells(path: Path, rows: list[dict[str, Any]], delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")


_Loader = Callable[[Path], BaseLoader]
_FORMS: dict[str, tuple[_Loader, Callable[[Path], Iterable[object]], Callable[[Path, list[dict[str, Any]]], None]]] = {
    "csv": (CsvLoader, partial(_cells_by_hand, delimiter=","), partial(_write_cells, delimiter=",")),
    "tsv": (CsvLoader, partial(_cells_by_hand, delimiter="\t"), partial(_write_cells, delimiter="\t")),
    "parquet": (ParquetLoader, _parquet_by_hand, _write_parquet),
    "jsonl": (JsonlLoader, _lines_by_hand, _write_lines),
}
