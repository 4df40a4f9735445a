"""What a benchmark was run on, in a few words: the names of its queries and of its corpus, as its manifest has them."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.components.component import Config

_SAY_LITTLE = {
    "corpus",
    "queries",
    "items",
    "documents",
    "docs",
    "passages",
    "collection",
    "data",
    "dataset",
    "test",
    "dev",
    "train",
}
_NAMING = ("path", "dataset", "url", "name")


def dataset_of(report: BenchmarkReport) -> str:
    """Return what was searched, and by which queries: ``"hover_dev_subset over wiki"``; ``""`` where it is not known.

    Args:
        report: a finished benchmark, or runs that are compared.
    """
    compared = report.manifest.get("compared")
    manifests = list(compared.values()) if isinstance(compared, dict) else [report.manifest]
    return "; ".join(dict.fromkeys(filter(None, map(_of_manifest, manifests))))


def _of_manifest(manifest: Config) -> str:
    corpus = manifest.get("corpus")
    found = [_named(manifest.get("query_loader")), _named(corpus.get("loader") if isinstance(corpus, dict) else None)]
    return " over ".join(dict.fromkeys(filter(None, found)))


def _named(loader: Any) -> str:
    """What a loader reads: the name of its file, or of the folder where the file's says little."""
    if not isinstance(loader, dict):
        return ""
    text = next((loader[key] for key in _NAMING if isinstance(loader.get(key), str) and loader[key]), "")
    parts = [part for part in PurePath(text).parts if part not in ("/", ".", "..")]
    stem = parts[-1].partition(".")[0] if parts else ""
    return parts[-2] if stem.lower() in _SAY_LITTLE and len(parts) > 1 else stem
