"""A benchmark as TensorBoard event files: one folder per configuration, with curves over k, figures and hyperparameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.files.output import check_folder_for_output, file_names, remove_output
from nlp_retrieval.errors import DependencyError, OutputError, install
from nlp_retrieval.reports.tracking.logged_run import SUMMARY, LoggedRun, runs_of
from nlp_retrieval.reports.tracking.run_logger import RunLogger

FOLDER = "tensorboard"


class TensorboardLogger(RunLogger):
    """Writes event files for TensorBoard; those of an earlier run in the same folder are replaced."""

    def check(self, folder: Path) -> str:
        """Report where the files go; see :meth:`RunLogger.check`."""
        _require()
        return f"TensorBoard: runs go to {folder / FOLDER}"

    def log(self, report: BenchmarkReport, folder: Path) -> list[str]:
        """Log a benchmark; see :meth:`RunLogger.log`. A failed configuration has nothing to draw, and no folder."""
        _require()
        runs = [run for run in runs_of(report) if run.job != SUMMARY and not run.failed]
        metrics = list(
            dict.fromkeys(name for run in runs for name in (*run.headline, "cost/latency_ms") if name in run.figures)
        )
        for earlier in sorted((folder / FOLDER).glob("*/events.out.tfevents.*")):
            remove_output(earlier)
        for run, stem in zip(runs, file_names([run.name for run in runs]), strict=True):
            place = folder / FOLDER / stem
            check_folder_for_output(place)
            try:
                _write(run, metrics, place)
            except OSError as error:
                raise OutputError(f"{place} cannot be written ({error.strerror}); the results are whole in {folder}") from error
        return [f"TensorBoard runs: {folder / FOLDER}", f"  look at them in a browser: tensorboard --logdir {folder / FOLDER}"]


def _write(run: LoggedRun, metrics: list[str], folder: Path) -> None:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import summary_v2 as hparams
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    values = {key: value if isinstance(value, str | bool | int | float) else str(value) for key, value in run.config.items()}
    shown = [hparams.Metric(name) for name in metrics]
    _add(writer, hparams.hparams_config_pb([hparams.HParam(key) for key in values], shown), 0)
    _add(writer, hparams.hparams_pb(values, trial_id=run.name), 0)
    for name, value in run.figures.items():
        _add(writer, Summary(value=[Summary.Value(tag=name, simple_value=float(value))]), 0)
    for name, curve in run.curves.items():
        for k, value in sorted(curve.items()):
            _add(writer, Summary(value=[Summary.Value(tag=name, simple_value=value)]), k)
    writer.close()


def _add(writer: Any, summary: Any, step: int) -> None:
    import time

    from tensorboard.compat.proto.event_pb2 import Event

    writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))


def _require() -> None:
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        raise DependencyError(f"logging to TensorBoard needs tensorboard: {install('tensorboard')}") from None
