"""Loggers of a benchmark: for the trackers named in its file, or those requested by name."""

from __future__ import annotations

from collections.abc import Sequence

from nlp_retrieval.benchmarks.settings import BenchmarkConfig
from nlp_retrieval.reports.tracking.mlflow import MlflowLogger
from nlp_retrieval.reports.tracking.run_logger import RunLogger
from nlp_retrieval.reports.tracking.tensorboard import TensorboardLogger
from nlp_retrieval.reports.wandb import WandbLogger


def loggers_of(config: BenchmarkConfig, names: Sequence[str] = ()) -> list[RunLogger]:
    """Return the loggers of a benchmark.

    Args:
        config: the configuration, with the settings of each tracker.
        names: names of the trackers; empty for those in the configuration.
    """
    named = {"wandb": config.wandb is not None, "mlflow": config.mlflow is not None, "tensorboard": config.tensorboard}
    loggers: dict[str, RunLogger] = {
        "wandb": WandbLogger(config.wandb),
        "mlflow": MlflowLogger(config.mlflow),
        "tensorboard": TensorboardLogger(),
    }
    return [logger for name, logger in loggers.items() if (name in names if names else named[name])]
