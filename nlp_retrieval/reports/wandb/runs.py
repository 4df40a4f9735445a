"""A benchmark as Weights & Biases runs: one per configuration in one group, and one that sums up.

Runs are offline unless the user is logged in or says otherwise, and nothing that looks like a key is ever logged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.settings import WandbMode, WandbSettings
from nlp_retrieval.errors import OutputError, first_line
from nlp_retrieval.reports.tracking.logged_run import SUMMARY, LoggedRun, runs_of, sweep_of
from nlp_retrieval.reports.tracking.run_logger import RunLogger
from nlp_retrieval.reports.view import ReportView, view_of
from nlp_retrieval.reports.wandb.comparison import comparison_table
from nlp_retrieval.reports.wandb.ledger import Ledger
from nlp_retrieval.reports.wandb.ready import mode_of, quiet

_LONGEST_NAME = 100
_LONGEST_TAG = 64


class WandbLogger(RunLogger):
    """Logs to Weights & Biases.

    Args:
        settings: where to.
    """

    def __init__(self, settings: WandbSettings | None = None) -> None:
        self.settings = settings or WandbSettings()

    def check(self, folder: Path) -> str:
        """Say whether runs go online, and why not; see :meth:`RunLogger.check`."""
        mode, reason = mode_of(self.settings)
        place = f"project {self.settings.project}" if mode == "online" else f"{folder / 'wandb'}, for wandb sync"
        return f"Weights & Biases: {reason}; runs go to {place}"

    def log(self, report: BenchmarkReport, folder: Path) -> list[str]:
        """Log a benchmark; see :func:`log_to_wandb`."""
        runs = log_to_wandb(report, self.settings, folder)
        said = [f"Weights & Biases runs: {runs[0].parent}"]
        if runs[0].name.startswith("offline-"):
            said.append(f"  look at them in a terminal: wandb leet {runs[0].parent}")
            said.append(f"  put them online: wandb sync {runs[0].parent}/offline-run-*")
        return said


def log_to_wandb(report: BenchmarkReport, settings: WandbSettings, folder: str | Path) -> list[Path]:
    """Log a finished benchmark.

    In each configuration's run, ``recall``, ``precision``, ``f1``, ``perfect_recall``, ``ndcg``, ``map`` and ``mrr`` are
    curves over ``k``, for all queries and for each group, and the summary holds every measure with its interval and every cost
    by name, whether the configuration is on the Pareto front of quality and latency (``pareto``) or price (``pareto_price``),
    and what the tests found over all queries under ``significance``. The config is flat, with each setting once, and the axes
    of a grid under ``grid/``. Its lists are an artifact. A configuration that failed is a run that failed, and says why. The
    last run, ``summary``, holds the table of all configurations, the plots and the page, and the manifest as an artifact.

    Each run is logged once: what was logged of the same results before, by this function into this folder, is not logged
    again.

    Args:
        report: with its files.
        settings: where to.
        folder: the runs' files go into ``<folder>/wandb``.

    Returns:
        The folders of the runs, in order.

    Raises:
        DependencyError: wandb is not installed.
        ConfigurationError: online and without an API key, or a name that Weights & Biases does not take.
        OutputError: the folder cannot be made, or Weights & Biases does not take the runs.
    """
    mode, _ = mode_of(settings)
    import wandb

    target = Path(folder).absolute()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{target} cannot be made ({error.strerror}); choose another folder") from error
    group = settings.group or f"benchmark {report.manifest.get('finished', '')}".strip()
    where = {"project": settings.project, "entity": settings.entity, "mode": mode, "group": settings.group}
    ledger = Ledger(target, {"where": where, "results": sweep_of(report)}, group)
    view, folders = view_of(report), []
    runs = runs_of(view)
    with quiet(), _told(wandb, target):
        for logged in runs:
            before = ledger.finished(logged.key)
            if before is None:
                ledger.begin(logged.key)
                with _run(settings, mode, ledger, logged, target) as run:
                    _log(run, logged)
                    if logged.job == SUMMARY:
                        _log_comparison(wandb, run, view, runs)
                    before = Path(run.dir).parent
                ledger.finish(logged.key, before)
            folders.append(before)
    return folders


@contextmanager
def _told(wandb: Any, folder: Path) -> Iterator[None]:
    """Say what is left where Weights & Biases refuses runs, or cannot be reached."""
    try:
        yield
    except wandb.errors.Error as error:
        raise OutputError(
            f"Weights & Biases did not take the runs ({first_line(error)}); the results are whole in {folder}. Run it again to "
            "log what is missing, or with mode: offline"
        ) from error


@contextmanager
def _run(settings: WandbSettings, mode: WandbMode, ledger: Ledger, logged: LoggedRun, folder: Path) -> Iterator[Any]:
    import wandb

    run = wandb.init(
        project=settings.project,
        entity=settings.entity,
        group=ledger.group,
        id=ledger.id_of(logged.key),
        resume="allow" if mode == "online" else None,
        name=logged.name,
        job_type=logged.job,
        tags=[tag[:_LONGEST_TAG] for tag in logged.tags],
        config=logged.config,
        mode=mode,
        dir=str(folder),
        reinit="finish_previous",
        settings=wandb.Settings(
            silent=True, console="off", disable_git=True, disable_code=True, save_code=False,
            x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True,
        ),
    )  # fmt: skip
    try:
        yield run
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish(exit_code=1 if logged.failed else 0)


def _log(run: Any, logged: LoggedRun) -> None:
    """Log curves, with the headline measures in their last row, then the summary and the files."""
    run.define_metric("k")
    for name in logged.curves:
        run.define_metric(name, step_metric="k", summary="none")
    for name in logged.headline:
        run.define_metric(name, step_metric="k", summary="last")
    cutoffs = sorted({k for curve in logged.curves.values() for k in curve})
    for k in cutoffs:
        last = {name: logged.figures[name] for name in logged.headline} if k == cutoffs[-1] else {}
        run.log({"k": k} | {name: curve[k] for name, curve in logged.curves.items() if k in curve} | last)
    run.summary.update(dict(logged.figures) | dict(logged.words))
    if logged.files:
        import wandb

        summary = logged.job == SUMMARY
        name = "benchmark" if summary else f"run-{logged.files[0].stem}"
        short = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:_LONGEST_NAME]
        artifact = wandb.Artifact(f"{short}-{run.id}", type="benchmark" if summary else "trec-run")
        for file in logged.files:
            artifact.add_file(str(file), name=file.name)
        run.log_artifact(artifact)


def _log_comparison(wandb: Any, run: Any, view: ReportView, runs: list[LoggedRun]) -> None:
    """Log the table of all configurations, plots of it, and the page."""
    report = view.report
    columns, rows = comparison_table(view, runs)
    table = wandb.Table(columns=columns, data=rows)
    curves = wandb.plot.line_series(
        xs=report.k_values,
        ys=[[result.measures[f"recall@{k}"] for k in report.k_values] for result in report.configurations],
        keys=[result.name for result in report.configurations],
        title="Recall over k",
        xname="k",
    )
    logged: dict[str, Any] = {"comparison": table, "recall over k": curves}
    if "latency_ms" in columns:
        logged["quality against latency"] = wandb.plot.scatter(
            table, "latency_ms", f"recall@{report.k_values[-1]}", title="Quality against latency"
        )
    if page := report.files.get("report"):
        logged["report"] = wandb.Html(Path(page).read_text("utf-8"), inject=False)
    run.log(logged)
