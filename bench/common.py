"""What the measurements share: the data, one timing rule, one row of the table."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nlp_retrieval import Benchmarker, BenchmarkRun, HoverLoader, Query, Searcher
from nlp_retrieval.core import BaseLoader, BaseQueryLoader, BaseRetriever
from nlp_retrieval.core.index.generation import RetrieverRecord
from nlp_retrieval.encoders import BaseEncoder, BaseTokenEncoder


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its budget, what came out, and whether that is within the budget."""

    what: str
    budget: str
    measured: str
    met: bool | None


@dataclass(frozen=True)
class Data:
    """The collections, and a folder for what takes long to make (indexes), which is kept between runs."""

    root: Path
    work: Path

    @classmethod
    def of(cls, root: str) -> Data:
        """The collections of a folder; what takes long to make is kept in ``bench/.work``."""
        work = Path(__file__).parent / ".work"
        work.mkdir(exist_ok=True)
        return cls(Path(root).absolute(), work)

    @property
    def claims(self) -> Path:
        """The claims of HoVer, in its own form."""
        return self.root / "wiki" / "hover" / "hover_dev_subset.json"

    def hover(self) -> list[Query]:
        """The claims of HoVer as queries."""
        return HoverLoader(self.claims).queries()

    @property
    def corpus(self) -> Path:
        """The passages of the wiki collection, in BEIR's form."""
        return self.root / "wiki" / "corpus.jsonl"

    def texts(self) -> list[str]:
        """Title and text of every passage."""
        with self.corpus.open(encoding="utf-8") as lines:
            return [f"{item['title']}\n{item['text']}" for item in map(json.loads, lines)]

    def questions(self) -> list[str]:
        """The first 1,000 HotpotQA questions."""
        with (self.root / "wiki" / "hotpotqa" / "queries.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line)["text"] for line in lines][:1000]


def arguments(usage: str | None, *counts: int) -> list[str]:
    """The words of the command line; where there are not as many as that, the script ends with what it is for."""
    if len(sys.argv) - 1 not in counts:
        raise SystemExit(usage)
    return sys.argv[1:]


def compared(
    searchers: Mapping[str, Searcher], corpus: BaseLoader, queries: BaseQueryLoader, cutoffs: Sequence[int], index: Path
) -> BenchmarkRun:
    """Benchmark searchers over the queries of a loader."""
    return Benchmarker(searchers, corpus, queries.queries(), queries.gold(), cutoffs, index_path=index).run()


def aside(module: str, *arguments: object, **environment: str) -> Any:
    """What a module of this folder prints last, as JSON, when it is run in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    return json.loads(done.stdout.splitlines()[-1])


def record_of(path: Path, retriever: BaseRetriever) -> tuple[RetrieverRecord, Path]:
    """What an index says of a retriever, and the folder of its first segment."""
    name = retriever.index_identity()["name"]
    records = Searcher([retriever]).open(path).index_records()
    record = next(record for record in records if record.identity["name"] == name)
    return record, path / record.segments[0].folder


def median_ms(call: Callable[[Any], object], arguments: Iterable[object]) -> float:
    """The median time of a call, in milliseconds, with each argument once."""
    return 1000 * statistics.median(seconds_of(partial(call, argument)) for argument in arguments)


def query_ms(encoder: BaseEncoder | BaseTokenEncoder, queries: list[str]) -> float:
    """The median time of encoding one query, in milliseconds, by an encoder that is open."""
    return median_ms(lambda query: encoder.encode_queries([query]), queries)


def seconds_of(call: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def peak_bytes() -> int:
    """The most memory that this process has had, and not what started it (which ``ru_maxrss`` takes over)."""
    status = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def best_of_each(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Best seconds of each call; they take turns, so that whatever else the machine does hits all of them."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for number, call in enumerate(calls):
            best[number] = min(best[number], seconds_of(call))
    return best


def noted(what: str, measured: str) -> Row:
    """A row without a budget."""
    return Row(what, "-", measured, None)


def at_least(what: str, budget: float, ratio: float, detail: str) -> Row:
    """A row whose ratio has to be at least so much."""
    return Row(what, f"at least {budget:g} times", f"{ratio:.2f} times ({detail})", ratio >= budget)


def at_most(what: str, budget: float, ratio: float, detail: str) -> Row:
    """A row whose ratio may be at most so much."""
    return Row(what, f"at most {budget:g} times", f"{ratio:.2f} times ({detail})", ratio <= budget)
