"""The output files of a benchmark.

``results.json`` holds quality alone, in a fixed order and without times, so that two runs can be compared byte by
byte; the Parquet files hold every query's values and lists for data frames. ``costs.json`` and ``manifest.json`` hold the
rest.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from nlp_retrieval.benchmarks.results import BenchmarkReport, BenchmarkRun
from nlp_retrieval.benchmarks.runs import PER_QUERY, REPORT, report_bytes
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import file_names, remove_output, write_output
from nlp_retrieval.core.files.opening import read_json_file
from nlp_retrieval.evaluation.answers import ragas_lines
from nlp_retrieval.evaluation.comparison import verdict
from nlp_retrieval.evaluation.ranking_files import HITS, PASSAGES, QUERIES, hits_table, passages_table, queries_table
from nlp_retrieval.evaluation.trec import NO_DOCUMENT, write_qrels, write_run
from nlp_retrieval.reports.page.page import write_page
from nlp_retrieval.reports.tables import latex_table, markdown_table
from nlp_retrieval.reports.view import ReportView, view_of


def per_query_table(run: BenchmarkRun) -> pa.Table:
    """Return one row for each configuration and query, with a column for each measure."""
    tables = []
    for name, measures in run.per_query.items():
        about = {
            "configuration": pa.array([name] * len(run.query_ids), pa.string()),
            "query_id": pa.array(run.query_ids, pa.string()),
            "family": pa.array(run.families, pa.string()),
            "group": pa.array(run.lists.groups, pa.string()),
        }
        tables.append(pa.table(about | {measure: pa.array(values) for measure, values in measures.items()}))
    return pa.concat_tables(tables)


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as the content of a Parquet file, the same for equal tables."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)  # not packed more closely: a reader may take that for a bomb (open_parquet)
    written: bytes = sink.getvalue().to_pybytes()
    return written


ANSWERS, RAGAS = "answers.jsonl", "ragas"
_FILES = {
    "report": "report.html",
    "results": "results.json",
    "costs": "costs.json",
    "manifest": "manifest.json",
    "configuration": "config.yaml",
    "markdown": "table.md",
    "latex": "table.tex",
    "per_query": PER_QUERY,
    "report_data": REPORT,
    "hits": HITS,
    "queries": QUERIES,
    "passages": PASSAGES,
    "trec": "trec",
}


def write_run_files(run: BenchmarkRun, folder: str | Path) -> BenchmarkReport:
    """Write the page, the results, the costs, the manifest and the TREC files of a run.

    Results are written as JSON and as tables in Markdown and LaTeX, those of every query as Parquet.

    Args:
        run: a finished run.
        folder: created if it is missing; files of an earlier run are replaced.

    Returns:
        The report, with the paths of its files.

    Raises:
        OutputError: a file cannot be written.

    Examples:
        >>> corpus = JsonlLoader("animals.jsonl")
        >>> run = Benchmarker({"bm25": Searcher(["bm25"])}, corpus, queries, gold, index_path="index").run()
        >>> report = write_run_files(run, "runs/first")
        >>> Path("runs/first/report.html").exists(), read_run_folder("runs/first").report.baseline
        (True, 'bm25')
    """
    target = Path(folder)
    files = {kind: target / name for kind, name in _FILES.items()}
    if run.answers:
        files |= {"answers": target / ANSWERS, "ragas": target / RAGAS}
    report = replace(run.report, files={kind: str(path) for kind, path in files.items()})
    view = view_of(report)
    names = list(run.lists.listings)
    before = _trec_files(files["results"])
    remove_output(target / REPORT)  # until everything is written, the folder is not a finished run
    for name, stem in zip(names, file_names(names), strict=True):
        write_run(files["trec"] / f"{stem}.trec", run.query_ids, run.lists.rankings(name), tag=name)
    # a query without judgements has a line all the same: trec_eval counts the queries in the file
    qrels = {query_id: grades or {NO_DOCUMENT: 0} for query_id, grades in run.lists.qrels().items()}
    write_qrels(files["trec"] / "qrels.txt", qrels)
    for stem in before - set(file_names(names)):
        remove_output(files["trec"] / f"{stem}.trec")
    _write_answers(run, target, before)
    write_output(files["results"], _json(results_of(view)))
    write_output(files["costs"], _json(_costs(view)))
    write_output(files["manifest"], _json(report.manifest))
    _write_configuration(report.manifest.get("configuration"), target, files["configuration"])
    write_output(files["markdown"], markdown_table(view).encode())
    write_output(files["latex"], latex_table(view).encode())
    write_output(files["per_query"], parquet_bytes(per_query_table(run)))
    write_output(files["hits"], parquet_bytes(hits_table(run.lists)))
    write_output(files["passages"], parquet_bytes(passages_table(run.lists)))
    write_output(files["queries"], parquet_bytes(queries_table(run.lists)))
    write_page(view, files["report"], run.lists, run.per_query)
    write_output(files["report_data"], report_bytes(report, target))
    return report


def _write_configuration(configuration: Config | None, target: Path, path: Path) -> None:
    """Write the configuration that repeats a run, into the same folder; none if its data was given in Python."""
    if configuration is None:
        remove_output(path)
        return
    text = yaml.safe_dump(configuration | {"output": str(target)}, sort_keys=False, allow_unicode=True)
    write_output(path, f"# Repeats this run: nlp-retrieval benchmark {path}\n{text}".encode())


def _write_answers(run: BenchmarkRun, target: Path, before: set[str]) -> None:
    """Write all answers as JSON lines, and those of each configuration for RAGAS; remove those of an earlier run."""
    stems = dict(zip(run.lists.listings, file_names(list(run.lists.listings)), strict=True))
    kept = {stems[name] for name in run.answers}
    for stem in (before | set(stems.values())) - kept:
        remove_output(target / RAGAS / f"{stem}.jsonl")
    if not run.answers:
        remove_output(target / ANSWERS)
        return
    lines = [
        {"configuration": name, "query_id": query_id, "question": answered_query.question}
        | answered_query.answer.model_dump(mode="json")
        | {"read": [result.item.item_id for result in answered_query.results]}
        for name, answered in run.answers.items()
        for query_id, answered_query in zip(run.query_ids, answered, strict=True)
    ]
    write_output(target / ANSWERS, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode())
    for name, answered in run.answers.items():
        asked, read, answers = zip(
            *((answered_query.question, answered_query.results, answered_query.answer) for answered_query in answered),
            strict=True,
        )
        write_output(target / RAGAS / f"{stems[name]}.jsonl", ragas_lines(asked, read, answers, run.right_answers))


def _costs(view: ReportView) -> dict[str, Any]:
    other = _other_corpora(view)
    return {
        result.name: asdict(result.cost) | other[result.name]
        for result in view.report.configurations
        if result.cost is not None
    }


def _other_corpora(view: ReportView) -> dict[str, dict[str, Any]]:
    """The corpus of each configuration, if they do not all have the same."""
    several = len(set(view.corpora.values())) > 1
    return {
        name: {"corpus": None if corpus is None else asdict(corpus)} if several else {} for name, corpus in view.corpora.items()
    }


def results_of(report: BenchmarkReport | ReportView) -> dict[str, Any]:
    """Return quality as plain values: measures and intervals by configuration, and comparisons, by group of queries."""
    view = view_of(report)
    report, notes, other = view.report, view.cautions, _other_corpora(view)
    return {
        "baseline": report.baseline,
        "k": report.k_values,
        "queries": report.query_counts[""],
        "counted": asdict(report.counted) | {"note": view.counted} if report.counted is not None else None,
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
            | other[result.name]
            for result in report.configurations
        },
        "comparisons": [
            {"group": group} | asdict(one) | {"verdict": verdict(one)}
            for group, comparisons in report.comparisons.items()
            for one in comparisons
        ],
        "failed": {one.name: one.reason for one in report.failed},
    } | ({"notes": notes} if notes else {})


def _trec_files(results: Path) -> set[str]:
    """The names of the TREC files left by an earlier run, from its results."""
    try:
        return set(file_names(read_json_file(results)["configurations"]))
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
