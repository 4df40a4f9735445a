"""Sweeps of a study: benchmark configurations with places to fill in, run as the command runs them, and read back as figures.

A value ``$name`` in a sweep is filled in when it is run. What was run stands beside its results as ``sweep.yaml``, for
``nlp-retrieval benchmark``, but for components that have no registry name: those a study puts in by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from bench.writing import shown
from nlp_retrieval import read_run_folder
from nlp_retrieval.benchmarks.settings import BenchmarkConfig, read_benchmark_config
from nlp_retrieval.cli.runs import refuse_failures, run_benchmark
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.evaluation.resampling import bootstrap_interval

Values = dict[str, NDArray[np.float64]]
"""``[queries]`` by the measure's name."""


@dataclass(frozen=True)
class Figures:
    """What configurations reached: values by configuration, families and groups (``"hops=3"``) per query."""

    values: dict[str, Values]
    families: list[str | None]
    groups: list[str | None]

    def group(self, *names: str) -> Figures:
        """Return the figures of the queries of some groups."""
        kept = np.isin(np.array(self.groups, object), names)
        values = {name: {key: each[kept] for key, each in measures.items()} for name, measures in self.values.items()}
        families, groups = ([column[place] for place in np.flatnonzero(kept)] for column in (self.families, self.groups))
        return Figures(values, families, groups)

    def then(self, other: Figures) -> Figures:
        """Return the same configurations over these queries and others."""
        values = {
            name: {key: np.concatenate([each, other.values[name][key]]) for key, each in measures.items()}
            for name, measures in self.values.items()
        }
        return Figures(values, self.families + other.families, self.groups + other.groups)

    def mean(self, name: str, measure: str) -> float:
        return float(self.values[name][measure].mean())

    def cell(self, name: str, measure: str, against: str | None = None) -> str:
        """A mean and its interval over families; in bold where it differs from another configuration by more than chance."""
        text = shown(self.values[name][measure], self.families)
        return text if against is None or self.difference(name, against, measure)[3] == 0 else f"**{text}**"

    def difference(self, name: str, other: str, measure: str) -> tuple[float, float, float, int]:
        """How much higher a configuration stands, the interval of that, and the sign that the whole interval has, or 0."""
        gains = self.values[name][measure] - self.values[other][measure]
        low, high = bootstrap_interval(gains, self.families, bounds=(-1, 1))
        return float(gains.mean()), low, high, int(low > 0) - int(high < 0)

    def gain(self, name: str, other: str, measure: str, *, bold: bool = True) -> str:
        """The same as text, in bold where the interval is without 0."""
        mean, low, high, sign = self.difference(name, other, measure)
        text = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
        return f"**{text}**" if bold and sign else text


def read_sweep(path: Path, **values: Any) -> Config:
    """Read a sweep and fill in its values; what it needs is named by it, and more may be given."""

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(value) for key, value in node.items()}
        if isinstance(node, list):
            return [filled(value) for value in node]
        return values[node[1:]] if isinstance(node, str) and node.startswith("$") else node

    read: Config = filled(read_yaml(path))
    return read


def configured(settings: Config, folder: Path) -> BenchmarkConfig:
    """Write the settings of a sweep to ``sweep.yaml`` in its folder, and build what they describe."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), "utf-8")
    return read_benchmark_config(path)


def run(config: BenchmarkConfig, folder: Path) -> Figures:
    """Run a benchmark as ``nlp-retrieval benchmark`` does, and read its files back.

    Raises:
        RetrievalError: a configuration failed.
    """
    refuse_failures(run_benchmark(config, folder, wandb=False))
    saved = read_run_folder(folder)
    values = {name: evaluation.per_query for name, evaluation in saved.evaluations.items()}
    return Figures(values, saved.lists.families, saved.lists.groups)
