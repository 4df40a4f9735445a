"""A finished benchmark on disk, and back: what is read is equal to what was written.

``report.json`` holds the whole report, and the Parquet files beside it the lists and every query's measures, so that a page can
be written again, and runs compared, without searching.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from nlp_retrieval.benchmarks.evaluator import Evaluation
from nlp_retrieval.benchmarks.list_files import read_lists, read_retrievers
from nlp_retrieval.benchmarks.lists import RunLists
from nlp_retrieval.benchmarks.pool import Ranks
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.errors import SourceError

REPORT = "report.json"
PER_QUERY = "per_query.parquet"

FORMAT = 1

_ADAPTER = TypeAdapter(BenchmarkReport)
_ABOUT = ("configuration", "query_id", "family", "group")


@dataclass(frozen=True)
class SavedRun:
    """A finished run, read from its folder.

    Args:
        folder: where it is.
        report: as it was written.
        lists: what each configuration found.
        evaluations: every measure of every query, by configuration.
        retrievers: the ranks of gold documents in the candidates of each retriever alone.
    """

    folder: Path
    report: BenchmarkReport
    lists: RunLists
    evaluations: dict[str, Evaluation]
    retrievers: dict[str, Ranks]


def report_bytes(report: BenchmarkReport) -> bytes:
    """Return a report as the content of ``report.json``."""
    content = {"format": FORMAT, "report": _ADAPTER.dump_python(report, mode="json")}
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def read_run_folder(folder: str | Path) -> SavedRun:
    """Read a finished run.

    Args:
        folder: the output folder of a benchmark.

    Raises:
        SourceError: it is no such folder, or its files are damaged or of another version.
    """
    folder = Path(folder)
    report, lists = _read_report(folder / REPORT), read_lists(folder)
    evaluations = _evaluations(folder / PER_QUERY, report, lists.query_ids)
    return SavedRun(folder, report, lists, evaluations, read_retrievers(folder))


def is_run_folder(folder: Path) -> bool:
    """Whether a benchmark finished in this folder."""
    return (folder / REPORT).is_file()


def _read_report(path: Path) -> BenchmarkReport:
    try:
        content = json.loads(path.read_bytes())
        number = content["format"] if isinstance(content, dict) else None
        if number == FORMAT:
            return _ADAPTER.validate_python(content["report"])
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read ({error.strerror or error}); give the output folder of a finished benchmark"
        ) from error
    except (ValueError, KeyError, ValidationError) as error:
        raise SourceError(f"{path} is not what a benchmark writes ({error}); run the benchmark again") from error
    raise SourceError(f"{path} is of format {number!r}, and this version reads {FORMAT}; run the benchmark again")


def _evaluations(path: Path, report: BenchmarkReport, query_ids: list[str]) -> dict[str, Evaluation]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} cannot be read ({error}); run the benchmark again") from error
    found = {}
    for result in report.configurations:
        rows = table.filter(pc.equal(table.column("configuration"), result.name))
        if rows.column("query_id").to_pylist() != query_ids:
            raise SourceError(f"{path} does not hold the queries of {result.name!r}; run the benchmark again")
        measures = {name: np.asarray(rows.column(name)) for name in table.column_names if name not in _ABOUT}
        found[result.name] = Evaluation(list(query_ids), measures, result.empty_queries)
    return found
