"""Finished benchmarks on disk: reading one restores exactly what was written.

``report.json`` holds the whole report, and the Parquet files next to it the lists and every query's measures, so a page can
be rewritten, and runs compared, without searching. It is written last, with the checksums of those files and its own: a
run that was changed or truncated since is an error that names the file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.files.checksums import FileRecord, sha256_of
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.evaluator import Evaluation
from nlp_retrieval.evaluation.pool import Ranks
from nlp_retrieval.evaluation.ranking_files import GOLD, HITS, PASSAGES, QUERIES, read_lists, read_retrievers
from nlp_retrieval.evaluation.rankings import RunLists

REPORT = "report.json"
PER_QUERY = "per_query.parquet"

FORMAT = 2

_ADAPTER = TypeAdapter(BenchmarkReport)
_READ_BACK = (PER_QUERY, HITS, QUERIES, GOLD, PASSAGES)
_ABOUT = ("configuration", "query_id", "family", "group")


@dataclass(frozen=True)
class SavedRun:
    """A finished run, read from its folder.

    Args:
        folder: its path.
        report: as written.
        lists: the results of each configuration.
        evaluations: every measure of every query, by configuration.
        retrievers: the ranks of gold documents in the candidates of each retriever alone.
    """

    folder: Path
    report: BenchmarkReport
    lists: RunLists
    evaluations: dict[str, Evaluation]
    retrievers: dict[str, Ranks]


def report_bytes(report: BenchmarkReport, folder: Path) -> bytes:
    """Return a report as the content of ``report.json``.

    Args:
        report: report of the run.
        folder: the folder with the files that are read with it.
    """
    files = {name: FileRecord(bytes=(folder / name).stat().st_size, sha256=sha256_of(folder / name)) for name in _READ_BACK}
    told = {name: record.model_dump() for name, record in files.items()}
    content = {"format": FORMAT, "files": told, "report": _ADAPTER.dump_python(report, mode="json")}
    return (json.dumps(content | {"checksum": _checksum(content)}, ensure_ascii=False) + "\n").encode()


def read_run_folder(folder: str | Path) -> SavedRun:
    """Read a finished run.

    Args:
        folder: the output folder of a benchmark.

    Raises:
        SourceError: it is not such a folder, or its files are damaged or of another version.
    """
    folder = Path(folder)
    report = _in_its_folder(_read_report(folder), folder)
    lists = read_lists(folder)
    absent = [result.name for result in report.configurations if result.name not in lists.listings]
    if absent:
        raise SourceError(f"{folder / REPORT} has {absent[0]!r}, and {HITS} does not name it; run the benchmark again")
    evaluations = _evaluations(folder / PER_QUERY, report, lists.query_ids)
    return SavedRun(folder, report, lists, evaluations, read_retrievers(folder))


def is_run_folder(folder: Path) -> bool:
    """Return whether a benchmark finished in this folder."""
    return (folder / REPORT).is_file()


def _read_report(folder: Path) -> BenchmarkReport:
    """The report, after the files read with it have been compared with their checksums."""
    path = folder / REPORT
    try:
        content = read_json_file(path)
        number = content["format"] if isinstance(content, dict) else None
        if number == FORMAT:
            _check(path, content.pop("checksum") == _checksum(content))
            for name in (name for name in _READ_BACK if name != PASSAGES or name in content["files"]):  # newer
                record, file = FileRecord.model_validate(content["files"][name]), folder / name
                _check(file, file.stat().st_size == record.bytes and sha256_of(file) == record.sha256)
            return _ADAPTER.validate_python(content["report"])
    except OSError as error:
        missing, reason = error.filename or path, error.strerror or error
        raise SourceError(f"{missing} cannot be read ({reason}); give the output folder of a finished benchmark") from error
    except SourceError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is not what a benchmark writes ({error}); run the benchmark again") from error
    raise SourceError(f"{path} is of format {number!r}, and this version reads {FORMAT}; run the benchmark again")


def _in_its_folder(report: BenchmarkReport, folder: Path) -> BenchmarkReport:
    """Look for the files of a report next to it, ignoring recorded paths: it may have been moved, or come from someone else."""
    names = {kind: Path(place).name for kind, place in report.files.items()}
    return replace(report, files={kind: str(folder / name) for kind, name in names.items() if name not in ("", "..")})


def _checksum(content: dict[str, Any]) -> str:
    plain = json.loads(json.dumps(content))  # as read from a file: tuples become lists, and keys text
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _check(path: Path, whole: object) -> None:
    if not whole:
        raise SourceError(f"{path} is damaged: it is not what the benchmark wrote; restore it, or run the benchmark again")


def _evaluations(path: Path, report: BenchmarkReport, query_ids: list[str]) -> dict[str, Evaluation]:
    try:
        table = pq.read_table(path)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read ({error}); run the benchmark again") from error
    measured = [field for field in table.schema if field.name not in _ABOUT]
    if not set(_ABOUT) <= set(table.column_names) or not all(pa.types.is_floating(field.type) for field in measured):
        raise SourceError(f"{path} does not have the columns that a benchmark writes; run the benchmark again")
    found = {}
    for result in report.configurations:
        rows = table.filter(pc.equal(table.column("configuration"), result.name))
        if rows.column("query_id").to_pylist() != query_ids:
            raise SourceError(f"{path} does not hold the queries of {result.name!r}; run the benchmark again")
        measures = {field.name: np.asarray(rows.column(field.name)) for field in measured}
        if not all(np.isfinite(values).all() for values in measures.values()):
            raise SourceError(f"{path} has measures of {result.name!r} that are no numbers; run the benchmark again")
        found[result.name] = Evaluation(list(query_ids), measures, result.empty_queries)
    return found
