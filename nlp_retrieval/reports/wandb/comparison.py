"""The table of all configurations: what each is made of and what the grid set, then measures, intervals, tests and costs."""

from __future__ import annotations

from typing import Any

from nlp_retrieval.reports.tracking.logged_run import LoggedRun, cost_figures, on_fronts
from nlp_retrieval.reports.tracking.run_config import PARTS
from nlp_retrieval.reports.view import ReportView

_ALWAYS = ("retrievers", "fusion", "reranker")


def comparison_table(view: ReportView, runs: list[LoggedRun]) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows; a part that stands on an axis of the grid has the axis as its column.

    Args:
        view: a finished benchmark.
        runs: as they are logged, in the order of the configurations.
    """
    rows = view.groups[0].rows
    configs = [run.config for run in runs[: len(rows)]]
    axes = list(dict.fromkeys(key for config in configs for key in config if key.startswith("grid/")))
    parts = [part for part in PARTS if part in _ALWAYS or any(part in config for config in configs)]
    made_of = [*(part for part in parts if f"grid/{part}" not in axes), *axes]
    main, measures = view.main_measure, list(view.report.configurations[0].measures)
    costs = [cost_figures(row) | on_fronts(row, view) for row in rows]
    kinds = list(dict.fromkeys(key for cost in costs for key in cost))
    bounds = [f"{main}/low", f"{main}/high"] if any(f"{main}/low" in run.figures for run in runs) else []
    tested = [f"{main} p_holm"] if view.comparisons else []
    found = []
    for row, run, cost in zip(rows, runs, costs, strict=False):
        compared = row.cells[main].comparison
        p_holm = [compared.p_holm if compared is not None else None for _ in tested]
        figures = [run.figures.get(name) for name in (*measures, *bounds)]
        found.append([run.name, *map(run.config.get, made_of), *figures, *p_holm, *map(cost.get, kinds)])
    return ["configuration", *made_of, *measures, *bounds, *tested, *kinds], found
