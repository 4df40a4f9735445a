"""Damage to what a benchmark leaves: the files of a run, which are read back to compare it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.small_benchmark import benchmarker
from soaking import Figures, mostly_soaked

from nlp_retrieval import write_run_files

from .damages import Damage, damaged, flips, structural
from .trials import Trials

READ_BACK = ["report.json", "per_query.parquet", "hits.parquet", "queries.parquet", "passages.parquet"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run_files(benchmarker(folder / "index").run(), folder / "run")
    return folder / "run"


def every_damage(path: Path, effort: int) -> list[Damage]:
    size = path.stat().st_size
    others = [other for other in path.parent.iterdir() if other.is_file()]
    ends = flips(size, 4 * effort, 1, (max(0, size - 4000), size))  # where Parquet says what is in the file
    return [*structural(path, others, effort), *flips(size, 6 * effort, 2), *ends]


@pytest.mark.parametrize("name", mostly_soaked(READ_BACK, 2))
def test_a_file_of_a_run_that_was_changed_is_named(
    name: str, run: Path, believing: Trials, effort: int, figures: Figures
) -> None:
    healthy = believing.run("read_run", folder=str(run))
    assert healthy["found"]
    tried = 0
    for damage in every_damage(run / name, effort):
        with damaged(run / name, damage):
            answer = believing.run("read_run", folder=str(run))
        if name == "report.json" and answer == healthy:
            continue  # the end of the line, or a digit beyond what a number holds: the same values, which are what is checked
        what = f"{name} {damage}: {str(answer)[:300]}"
        assert answer.get("error") == "SourceError", what
        assert name in answer["message"], what
        tried += 1
    figures.add("Damage", f"run folder: {name}", tried, tried, "named; nothing is read from it")
