"""Results as Weights & Biases runs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.settings import WandbMode, WandbSettings
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import sync_folder, sync_tree
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.output import write_output
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, OutputError, first_line, install
from nlp_retrieval.reports.tracking.logged_run import SUMMARY, LoggedRun, cost_figures, on_fronts, runs_of, sweep_of
from nlp_retrieval.reports.tracking.run_config import PARTS
from nlp_retrieval.reports.tracking.run_logger import RunLogger, is_reachable, run_id, sweep_id
from nlp_retrieval.reports.view import ReportView, view_of

# The runs of a sweep already logged to Weights & Biases: each is logged once, however often the sweep is resumed.
#
# A run is recorded before it is started and again when it is finished, under an id derived from its sweep and its name. An
# unfinished run is discarded and logged again under the same id. A sweep is identified by its quality, not its cost: other
# configurations, other data or another baseline make another sweep, with its own runs and group.

_FILE = "wandb-logged.json"
_FORMAT = 1


class Ledger:
    """The runs of one sweep that were logged.

    Args:
        folder: folder of the benchmark's files.
        sweep: plain values that identify it.
        group: the name of its group, if it was not logged before.
    """

    def __init__(self, folder: Path, sweep: Config, group: str) -> None:
        self._folder = folder
        self._sweep = sweep_id(sweep)
        self._sweeps = _read(folder / _FILE)
        self._own = self._sweeps.setdefault(self._sweep, {"group": group, "runs": {}})

    @property
    def group(self) -> str:
        """Return the group of the sweep's runs."""
        return str(self._own["group"])

    def id_of(self, name: str) -> str:
        """Return the id of a run, the same whenever it is logged."""
        return run_id(self._sweep, name)

    def finished(self, name: str) -> Path | None:
        """Return where a run was logged; None if it was not, or no longer exists."""
        found = self._own["runs"].get(name)
        folder = self._folder / str(found) if found else None
        return folder if folder is not None and folder.is_dir() else None

    def begin(self, name: str) -> None:
        """Record that a run is about to be logged; remains of an interrupted one are removed."""
        if name in self._own["runs"]:
            for left in (self._folder / "wandb").glob(f"offline-run-*-{self.id_of(name)}"):
                shutil.rmtree(left, ignore_errors=True)
        self._note(name, "")

    def finish(self, name: str, folder: Path) -> None:
        """Record where a run was logged, after all of it is on disk: the W&B client leaves syncing to the system."""
        with suppress(OSError):  # an unreadable run is recorded unsynced
            sync_tree(folder)
            for above in folder.parents[: len(folder.relative_to(self._folder).parts)]:
                sync_folder(above)
        self._note(name, str(folder.relative_to(self._folder)))

    def _note(self, name: str, where: str) -> None:
        self._own["runs"][name] = where
        content = {"format": _FORMAT, "sweeps": self._sweeps}
        write_output(self._folder / _FILE, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    """Return the recorded runs; empty if the file is missing or invalid."""
    try:
        content = read_json_file(path)
        sweeps = content["sweeps"] if content["format"] == _FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    whole = isinstance(sweeps, dict) and all(
        isinstance(one, dict) and isinstance(one.get("group"), str) and isinstance(one.get("runs"), dict)
        for one in sweeps.values()
    )
    return sweeps if whole else {}


# The table of all configurations: components and grid settings, then measures, intervals, tests and costs.

_ALWAYS = ("retrievers", "fusion", "reranker")


def comparison_table(view: ReportView, runs: list[LoggedRun]) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows; a part set by an axis of the grid has the axis as its column.

    Args:
        view: a finished benchmark.
        runs: as logged, in the order of the configurations.
    """
    rows = view.groups[0].rows
    configs = [run.config for run in runs[: len(rows)]]
    axes = list(dict.fromkeys(key for config in configs for key in config if key.startswith("grid/")))
    parts = [part for part in PARTS if part in _ALWAYS or any(part in config for config in configs)]
    made_of = [*(part for part in parts if f"grid/{part}" not in axes), *axes]
    main, measures = view.main_measure, list(view.report.configurations[0].measures)
    costs = [cost_figures(row) | on_fronts(row, view) for row in rows]
    kinds = list(dict.fromkeys(key for cost in costs for key in cost))
    bounds = [f"{main}/low", f"{main}/high"] if any(f"{main}/low" in run.figures for run in runs) else []
    tested = [f"{main} p_holm"] if view.comparisons else []
    found = []
    for row, run, cost in zip(rows, runs, costs, strict=False):
        compared = row.cells[main].comparison
        p_holm = [compared.p_holm if compared is not None else None for _ in tested]
        figures = [run.figures.get(name) for name in (*measures, *bounds)]
        found.append([run.name, *map(run.config.get, made_of), *figures, *p_holm, *map(cost.get, kinds)])
    return ["configuration", *made_of, *measures, *bounds, *tested, *kinds], found


# Checks, before the run, that Weights & Biases can be logged to as requested.


def mode_of(settings: WandbSettings) -> tuple[WandbMode, str]:
    """Return the mode of logging, and the reason as a short phrase.

    Raises:
        DependencyError: wandb is not installed.
        ConfigurationError: online and without an API key, or a name that Weights & Biases does not accept.
        OutputError: online, and the server cannot be reached.
    """
    try:
        import wandb
    except ImportError:
        raise DependencyError(f"logging to Weights & Biases needs wandb: {install('wandb')}") from None
    try:
        wandb.Settings(project=settings.project, entity=settings.entity, run_group=settings.group)
    except (wandb.errors.UsageError, ValueError) as error:
        raise ConfigurationError(f"wandb: {first_line(error)}; choose another name") from None
    if settings.mode == "offline":
        return "offline", "offline, as asked for"
    with quiet():
        has_key = bool(wandb.api.api_key)
    if not has_key:
        if settings.mode == "online":
            raise ConfigurationError(
                "wandb.mode is online, and no API key is configured; run wandb login, set WANDB_API_KEY, or write mode: offline"
            )
        return "offline", "no API key is configured"
    with quiet():
        address = str(wandb.setup().settings.base_url)
    server = without_secrets(address)
    if is_reachable(address):
        return "online", f"online, at {server}"
    if settings.mode == "online":
        raise OutputError(f"wandb.mode is online, and {server} cannot be reached; check the network, or write mode: offline")
    return "offline", f"{server} cannot be reached"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep wandb from writing to the terminal while the block runs."""
    before = os.environ.get("WANDB_SILENT")
    os.environ["WANDB_SILENT"] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ["WANDB_SILENT"]
        else:
            os.environ["WANDB_SILENT"] = before


# A benchmark as Weights & Biases runs: one per configuration in one group, and a summary run.
#
# Runs are offline unless the user is logged in or requests otherwise, and nothing that looks like a key is ever logged.

_LONGEST_NAME = 100
_LONGEST_TAG = 64


class WandbLogger(RunLogger):
    """Logs to Weights & Biases.

    Args:
        settings: settings for Weights & Biases.
    """

    def __init__(self, settings: WandbSettings | None = None) -> None:
        self.settings = settings or WandbSettings()

    def check(self, folder: Path) -> str:
        """Report whether runs go online, and why not; see :meth:`RunLogger.check`."""
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
    and the test results over all queries under ``significance``. The config is flat, with each setting once, and the axes
    of a grid under ``grid/``. Its lists are an artifact. A failed configuration is a failed run with its error. The
    last run, ``summary``, holds the table of all configurations, the plots and the page, and the manifest as an artifact.

    Each run is logged once: runs logged before for the same results, by this function into this folder, are not logged
    again.

    Args:
        report: with its files.
        settings: settings for Weights & Biases.
        folder: the runs' files go into ``<folder>/wandb``.

    Returns:
        The folders of the runs, in order.

    Raises:
        DependencyError: wandb is not installed.
        ConfigurationError: online and without an API key, or a name that Weights & Biases does not accept.
        OutputError: the folder cannot be created, or Weights & Biases does not accept the runs.
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
    """Report what remains on disk if Weights & Biases refuses runs, or cannot be reached."""
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
