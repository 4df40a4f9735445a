"""A run that knows which grid its configurations came from."""

from __future__ import annotations

from dataclasses import replace

from nlp_retrieval.benchmarks.grid.grid import Grid
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.core.secrets import without_secrets


def with_grid(run: BenchmarkRun, grid: Grid) -> BenchmarkRun:
    """Return a run whose manifest tells, under ``grid``, the axes and their values in each configuration.

    Args:
        run: of the grid's searchers, and maybe others.
        grid: that was run.
    """
    record = {"axes": grid.axes, "values": without_secrets(grid.values)}
    return replace(run, report=replace(run.report, manifest=run.report.manifest | {"grid": record}))
