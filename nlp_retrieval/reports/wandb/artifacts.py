"""What of a benchmark goes to Weights & Biases besides figures: lists and manifest as artifacts, parameters as flat names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.output import file_names

_KINDS = ("processor", "fusion", "reranker")
_LONGEST_NAME = 100


def sweep_of(report: BenchmarkReport) -> Config:
    """Return what tells the results of a benchmark from those of another: what was found, and not what it cost.

    Args:
        report: a finished benchmark.
    """
    manifest = report.manifest
    compared = {"corpora": manifest["corpora"]} if "corpora" in manifest else {}
    return compared | {
        "baseline": report.baseline,
        "k": report.k_values,
        "significance": manifest.get("significance"),
        "corpus": (manifest.get("corpus") or {}).get("fingerprint"),
        "queries": manifest.get("query_fingerprint"),
        "found": {result.name: [result.fingerprint, result.measures, result.groups] for result in report.configurations},
        "failed": {one.name: one.error for one in report.failed},
    }


def parameters(config: Config) -> Config:
    """Return the parameters of a searcher's parts by part, so that a dashboard can filter by each: ``bm25s.k1``.

    Retrievers go by their labels, or by registry name and, where several share one, a number.

    Args:
        config: of a searcher, as plain values.
    """
    retrievers = config.get("retrievers") or []
    if not isinstance(retrievers, dict):
        names = [str(part.get("name")) for part in retrievers]
        numbered = [
            f"{name}-{names[:place].count(name) + 1}" if names.count(name) > 1 else name for place, name in enumerate(names)
        ]
        retrievers = dict(zip(numbered, retrievers, strict=True))
    parts = retrievers | {kind: config[kind] for kind in _KINDS if isinstance(config.get(kind), dict)}
    flat = {label: {key: value for key, value in part.items() if key != "name"} for label, part in parts.items()}
    own = {key: value for key, value in config.items() if isinstance(value, str | int | float) and key != "name"}
    return {label: values for label, values in flat.items() if values} | own


def log_run(run: Any, configuration: str, report: BenchmarkReport) -> None:
    """Log the TREC run of a configuration as an artifact, where it was written.

    Args:
        run: of Weights & Biases.
        configuration: its name.
        report: with its files.
    """
    folder = report.files.get("trec")
    if folder is None:
        return
    names = [result.name for result in report.configurations]
    stem = dict(zip(names, file_names(names), strict=True))[configuration]
    _log(run, f"run-{stem}", "trec-run", [Path(folder) / f"{stem}.trec"])


def log_manifest(run: Any, report: BenchmarkReport) -> None:
    """Log what is needed to repeat and to check a benchmark as an artifact: manifest, results and judgements.

    Args:
        run: of Weights & Biases.
        report: with its files.
    """
    kept = [Path(report.files[kind]) for kind in ("manifest", "results") if kind in report.files]
    if "trec" in report.files:
        kept.append(Path(report.files["trec"]) / "qrels.txt")
    _log(run, "benchmark", "benchmark", kept)


def _log(run: Any, name: str, kind: str, files: list[Path]) -> None:
    import wandb

    there = [file for file in files if file.is_file()]
    if not there:
        return
    artifact = wandb.Artifact(f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:_LONGEST_NAME]}-{run.id}", type=kind)
    for file in there:
        artifact.add_file(str(file), name=file.name)
    run.log_artifact(artifact)
