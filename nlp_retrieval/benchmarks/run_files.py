"""The files of a run: what a benchmark leaves in its output folder.

``results.json`` holds quality alone, in a fixed order and without times, so that two runs can be compared byte by
byte; the Parquet files hold the same for data frames, with every query's values. ``costs.json`` and ``manifest.json``
hold the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.benchmarker import BenchmarkRun
from nlp_retrieval.benchmarks.output import write_output
from nlp_retrieval.benchmarks.report_page import write_page
from nlp_retrieval.benchmarks.result_tables import means_table, parquet_bytes, per_query_table
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.significance_verdict import verdict
from nlp_retrieval.benchmarks.table_files import latex_table, markdown_table
from nlp_retrieval.benchmarks.trec import write_qrels, write_run


def write_run_files(run: BenchmarkRun, folder: str | Path) -> BenchmarkReport:
    """Write the page, the results, the costs, the manifest and the TREC files of a run.

    Results are written as JSON and Parquet, and as tables in Markdown and LaTeX.

    Args:
        run: a finished run.
        folder: made where it is missing; files of an earlier run are replaced.

    Returns:
        The report, with the places of its files.

    Raises:
        OutputError: a file cannot be written.
    """
    target = Path(folder)
    report = run.report
    files = {
        "report": target / "report.html",
        "results": target / "results.json",
        "costs": target / "costs.json",
        "manifest": target / "manifest.json",
        "markdown": target / "table.md",
        "latex": target / "table.tex",
        "parquet": target / "results.parquet",
        "per_query": target / "per_query.parquet",
        "trec": target / "trec",
    }
    for (name, rankings), stem in zip(run.rankings.items(), file_names(run.rankings), strict=True):
        write_run(files["trec"] / f"{stem}.trec", run.query_ids, rankings, tag=name)
    write_qrels(files["trec"] / "qrels.txt", run.qrels)
    write_output(files["results"], _json(results_of(report)))
    write_output(files["costs"], _json({c.name: asdict(c.cost) for c in report.configurations}))
    write_output(files["manifest"], _json(report.manifest))
    write_output(files["markdown"], markdown_table(report).encode())
    write_output(files["latex"], latex_table(report).encode())
    write_output(files["parquet"], parquet_bytes(means_table(report)))
    write_output(files["per_query"], parquet_bytes(per_query_table(run)))
    written = replace(report, files={kind: str(path) for kind, path in files.items()})
    write_page(written, files["report"])
    return written


def results_of(report: BenchmarkReport) -> dict[str, Any]:
    """Quality as plain values: every measure with its interval by configuration, and the comparisons with the baseline.

    A group's name is ``""`` where all queries are meant.
    """
    return {
        "baseline": report.baseline,
        "k": report.k_values,
        "queries": report.query_counts[""],
        "query_groups": {group: count for group, count in report.query_counts.items() if group},
        "items": report.n_items,
        "configurations": {
            result.name: {
                "fingerprint": result.fingerprint,
                "empty_queries": result.empty_queries,
                "measures": result.measures,
                "groups": result.groups,
                "intervals": result.intervals,
            }
            for result in report.configurations
        },
        "comparisons": [
            {"group": group} | asdict(one) | {"verdict": verdict(one)}
            for group, comparisons in report.comparisons.items()
            for one in comparisons
        ],
    }


def file_names(names: Iterable[str]) -> list[str]:
    """The names of configurations as file names: other characters than letters, digits, ``.``, ``_`` and ``-`` become ``_``.

    Names that become one get a number, also where they differ in case alone.
    """
    taken: set[str] = set()
    made = []
    for name in names:
        stem = candidate = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
        number = 1
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{stem}-{number}"
        taken.add(candidate.casefold())
        made.append(candidate)
    return made


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
