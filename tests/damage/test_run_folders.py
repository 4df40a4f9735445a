"""Damage to what a benchmark leaves: the files of a run, which are read back to compare it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.small_benchmark import benchmarker
from soaking import Figures, mostly_soaked

from nlp_retrieval import read_run_folder, write_run_files
from nlp_retrieval.errors import SourceError

from .damages import damaged, flips, structural

READ_BACK = ["report.json", "per_query.parquet", "hits.parquet", "queries.parquet", "passages.parquet"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run_files(benchmarker(folder / "index").run(), folder / "run")
    return folder / "run"


def read(run: Path) -> str:
    try:
        return repr(read_run_folder(run).report)
    except SourceError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("name", mostly_soaked(READ_BACK, 2))
def test_a_file_of_a_run_that_was_changed_is_named(name: str, run: Path, effort: int, figures: Figures) -> None:
    path, healthy = run / name, read(run)
    size = path.stat().st_size
    ends = flips(size, 4 * effort, 1, (max(0, size - 4000), size))  # where Parquet says what is in the file
    others = [other for other in run.iterdir() if other.is_file()]
    tried = [*structural(path, others, effort), *flips(size, 6 * effort, 2), *ends]
    for damage in tried:
        with damaged(path, damage):
            said = read(run)
        # of the report, the line's end or a digit beyond what a number holds changes nothing
        named = said.startswith("refused: ") and name in said
        assert named or (name == "report.json" and said == healthy), damage
    figures.add("Damage", f"run folder: {name}", len(tried), len(tried), "named; nothing is read from it")
