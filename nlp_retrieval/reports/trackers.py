"""Trackers of experiments: Weights & Biases and MLflow.

A logger is checked before the run and receives the results after it; the content comes from ``logged_run``. Weights & Biases
runs are offline unless the user is logged in or requests otherwise. Nothing that looks like a key is ever logged.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import re
import shutil
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.settings import BenchmarkConfig, MlflowSettings, WandbMode, WandbSettings
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.files.atomic import (
    make_folder,
    sync_folder,
    sync_tree,
    write_output,
)
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, OutputError, first_line, install
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import family_label
from nlp_retrieval.reports.logged_run import (
    SUMMARY,
    LoggedRun,
    comparison_table,
    figure_table,
    interval_chart,
    runs_of,
    sweep_of,
)
from nlp_retrieval.reports.view import ReportView, view_of

_ID_LENGTH = 16
_PATIENCE_S = 3.0


class RunLogger(ABC):
    """Logs finished benchmarks to a tracker: a run for each configuration, and a summary, each once.

    The content comes from :func:`nlp_retrieval.reports.logged_run.runs_of`; a logger only passes it on.
    """

    @abstractmethod
    def check(self, folder: Path) -> str:
        """Check before the run whether it can be logged, and return in one line where it will be.

        Raises:
            DependencyError: the tracker is not installed.
            ConfigurationError: it does not accept a name or an address.
            OutputError: its server cannot be reached.
        """

    @abstractmethod
    def log(self, report: BenchmarkReport, folder: Path) -> list[str]:
        """Log a benchmark; return lines that say where the runs are, and how to view them.

        Args:
            report: with its files.
            folder: folder of these files.

        Raises:
            OutputError: the runs cannot be written, or are not accepted; the benchmark's files are complete anyway.
        """


def sweep_id(sweep: Config) -> str:
    """Return the id of a sweep."""
    return hashlib.sha256(canonical_json(sweep).encode()).hexdigest()


def run_id(sweep: str, key: str) -> str:
    """Return the id of a run, the same whenever it is logged."""
    return hashlib.sha256(f"{sweep} {key}".encode()).hexdigest()[:_ID_LENGTH]


def is_reachable(url: str) -> bool:
    """Return whether a server accepts connections; assumed to be so behind a proxy."""
    parts = urlsplit(url)
    if parts.scheme in getproxies():
        return True
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=_PATIENCE_S).close()
    except (OSError, ValueError):
        return False
    return True


ID_TAG = "nlp_retrieval.run"
"""Tag that identifies a run that was logged before."""

WHOLE_TAG = "nlp_retrieval.whole"
"""Tag that is set last."""

_MOST_AT_ONCE = 100
_LONGEST_VALUE = 6000
_LONGEST_KEY = 250


class MlflowLogger(RunLogger):
    """Logs to MLflow.

    Args:
        settings: settings for MLflow.

    Examples:
        >>> MlflowLogger(MlflowSettings(experiment="scifact")).settings.experiment
        'scifact'
    """

    def __init__(self, settings: MlflowSettings | None = None) -> None:
        self.settings = settings or MlflowSettings()

    def check(self, folder: Path) -> str:
        """Report where the runs go; see :meth:`RunLogger.check`."""
        _mlflow()
        uri = self._uri(folder)
        shown = str(without_secrets(uri))
        if urlsplit(uri).scheme in ("http", "https") and not is_reachable(uri):
            raise OutputError(f"the MLflow server {shown} cannot be reached; start it, or name another (mlflow: {{uri: ...}})")
        return f"MLflow: runs go to experiment {self.settings.experiment!r} of {shown}"

    def log(self, report: BenchmarkReport, folder: Path) -> list[str]:
        """Log a benchmark; see :meth:`RunLogger.log`. Unfinished runs are deleted and logged again."""
        mlflow = _mlflow()
        uri = self._uri(folder)
        sweep, runs = sweep_id(sweep_of(report)), runs_of(report)
        make_folder(folder)
        with _mlflow_quiet(), _as_mlflow_error(mlflow, folder):
            client = mlflow.MlflowClient(tracking_uri=uri)
            experiment = self._experiment(client, folder)
            names = _names(key for run in runs for key in (*run.config, *run.figures, *run.curves, *run.words))
            *children, parent = [_Logged(run, run_id(sweep, run.key), names) for run in runs]
            page = report.files.get("report")
            above = parent.begin(client, experiment, None)
            for child in children:
                child.finish(client, child.begin(client, experiment, above))
            parent.finish(client, above, [Path(page)] if page and Path(page).is_file() else [])
        return [
            f"MLflow runs: experiment {self.settings.experiment!r} of {without_secrets(uri)}",
            f"  look at them in a browser: mlflow ui --backend-store-uri {without_secrets(uri)}",
        ]

    def _uri(self, folder: Path) -> str:
        return self.settings.uri or os.environ.get("MLFLOW_TRACKING_URI") or _own_uri(folder)

    def _experiment(self, client: Any, folder: Path) -> str:
        name = self.settings.experiment
        experiment = client.get_experiment_by_name(name)
        if experiment is not None:
            if experiment.lifecycle_stage != "active":
                raise ConfigurationError(f"mlflow: the experiment {name!r} was deleted; restore it, or choose another name")
            return str(experiment.experiment_id)
        location = (folder.absolute() / "mlflow-artifacts").as_uri() if self._uri(folder) == _own_uri(folder) else None
        return str(client.create_experiment(name, artifact_location=location))


def _own_uri(folder: Path) -> str:
    """URI of the default store, a file."""
    return f"sqlite:///{folder.absolute() / 'mlflow.db'}"


class _Logged:
    """One run: started, filled, and ended; unchanged if it was ended before."""

    def __init__(self, run: LoggedRun, identity: str, names: Mapping[str, str]) -> None:
        self.run = run
        self._names = names
        self.identity = identity
        self.is_finished = False

    def begin(self, client: Any, experiment: str, parent: str | None) -> str:
        for before in client.search_runs([experiment], f"tags.`{ID_TAG}` = '{self.identity}'"):
            if before.data.tags.get(WHOLE_TAG):
                self.is_finished = True
                if parent:  # its parent run may have been deleted since
                    client.set_tag(before.info.run_id, "mlflow.parentRunId", parent)
                return str(before.info.run_id)
            client.delete_run(before.info.run_id)
        above = {"mlflow.parentRunId": parent} if parent else {}
        words = {self._names[key]: str(value)[:_LONGEST_VALUE] for key, value in self.run.words.items()}
        tags = {f"tag/{name}": "yes" for name in _names(self.run.tags).values()}
        own = {ID_TAG: self.identity, "job": self.run.job}
        begun = client.create_run(experiment, run_name=self.run.name, tags=tags | words | own | above)
        return str(begun.info.run_id)

    def finish(self, client: Any, identity: str, more: Iterable[Path] = ()) -> None:
        if self.is_finished:
            return
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)
        params = {self._names[key]: str(value)[:_LONGEST_VALUE] for key, value in self.run.config.items()}
        for some in _some([Param(key, value) for key, value in params.items()]):
            client.log_batch(identity, params=some)
        points = {(self._names[key], 0): float(value) for key, value in self.run.figures.items()}
        points |= {(self._names[key], k): value for key, curve in self.run.curves.items() for k, value in curve.items()}
        for some in _some([Metric(key, value, now, step) for (key, step), value in points.items()]):
            client.log_batch(identity, metrics=some)
        for file in (*self.run.files, *more):
            client.log_artifact(identity, str(file))
        client.set_tag(identity, WHOLE_TAG, "yes")
        client.set_terminated(identity, "FAILED" if self.run.failed else "FINISHED")


def _some(entities: list[Any]) -> Iterator[list[Any]]:
    """Split entities into parts of at most one request's size."""
    yield from (entities[start : start + _MOST_AT_ONCE] for start in range(0, len(entities), _MOST_AT_ONCE))


def _mlflow() -> Any:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    try:
        import mlflow
        import sqlalchemy  # noqa: F401 -- keeps the runs in a file
    except ImportError:
        raise DependencyError(f"logging to MLflow needs mlflow: {install('mlflow')}") from None
    return mlflow


@contextmanager
def _mlflow_quiet() -> Iterator[None]:
    """Keep MLflow from reporting the tables it creates."""
    logger = logging.getLogger("mlflow")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _as_mlflow_error(mlflow: Any, folder: Path) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (mlflow.exceptions.MlflowException, SQLAlchemyError, OSError) as error:
        raise OutputError(
            f"MLflow did not accept the runs ({_mlflow_line(error)}); the results are complete in {folder}"
        ) from error


def _mlflow_line(error: Exception) -> str:
    return str(without_secrets(first_line(error)))


def _names(texts: Iterable[str]) -> dict[str, str]:
    """Names in MLflow's form, by original name; equal ones get a number, also if only case differs."""
    made: dict[str, str] = {}
    used: set[str] = set()
    for text in dict.fromkeys(texts):
        name = candidate = _name(text)
        number = 1
        while candidate.casefold() in used:
            number += 1
            candidate = f"{name[: _LONGEST_KEY - 8]}-{number}"
        used.add(candidate.casefold())
        made[text] = candidate
    return made


def _name(text: str) -> str:
    """A name in MLflow's form: a path without empty parts, of letters, digits and a few symbols."""
    plain = re.sub(r"[^\w\-. :/]", "_", text.replace("@", "_at_").replace("=", ":"))
    return "/".join(part.strip(".") or "_" for part in plain.split("/"))[:_LONGEST_KEY]


# The runs of a sweep already logged to Weights & Biases: each is logged once, however often the sweep is resumed.
#
# A run is recorded before it is started and again when it is finished, under an id derived from its sweep and its name. An
# unfinished run is discarded and logged again under the same id. A sweep is identified by its quality, not its cost: other
# configurations, other data or another baseline make another sweep, with its own runs and group.

_LEDGER_FILE = "wandb-logged.json"
_LEDGER_FORMAT = 1


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
        self._sweeps = _read_ledger(folder / _LEDGER_FILE)
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
        logged = self._own["runs"].get(name)
        folder = self._folder / str(logged) if logged else None
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
        self._write()

    def _write(self) -> None:
        content = {"format": _LEDGER_FORMAT, "sweeps": self._sweeps}
        write_output(self._folder / _LEDGER_FILE, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _read_ledger(path: Path) -> dict[str, Any]:
    """Return the recorded runs; empty if the file is missing or invalid."""
    try:
        content = read_json_file(path)
        sweeps = content["sweeps"] if content["format"] == _LEDGER_FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    whole = isinstance(sweeps, dict) and all(
        isinstance(sweep, dict) and isinstance(sweep.get("group"), str) and isinstance(sweep.get("runs"), dict)
        for sweep in sweeps.values()
    )
    return sweeps if whole else {}


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
        return "offline", "offline, as requested"
    with _wandb_quiet():
        has_key = bool(wandb.api.api_key)
    if not has_key:
        if settings.mode == "online":
            raise ConfigurationError(
                "wandb.mode is online, and no API key is configured; run wandb login, set WANDB_API_KEY, or write mode: offline"
            )
        return "offline", "no API key is configured"
    with _wandb_quiet():
        address = str(wandb.setup().settings.base_url)
    server = without_secrets(address)
    if is_reachable(address):
        return "online", f"online, at {server}"
    if settings.mode == "online":
        raise OutputError(f"wandb.mode is online, and {server} cannot be reached; check the network, or write mode: offline")
    return "offline", f"{server} cannot be reached"


@contextmanager
def _wandb_quiet() -> Iterator[None]:
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
_MOST_KEYS = 35
"""Keys of a summary, without the table of figures and the four that W&B adds."""

INTERVALS = "main measure"
"""The key of the main measure of all configurations with its intervals, in the run ``summary``."""

COMPARISON = "comparison"
"""The key of the table of all configurations, in the run ``summary``."""


class WandbLogger(RunLogger):
    """Logs to Weights & Biases.

    Args:
        settings: settings for Weights & Biases.

    Examples:
        >>> WandbLogger(WandbSettings(project="scifact", mode="offline")).settings.mode
        'offline'
    """

    def __init__(self, settings: WandbSettings | None = None) -> None:
        self.settings = settings or WandbSettings()

    def check(self, folder: Path) -> str:
        """Report whether runs go online, and why not; see :meth:`RunLogger.check`."""
        mode, reason = mode_of(self.settings)
        target = f"project {self.settings.project}" if mode == "online" else f"{folder / 'wandb'}, for wandb sync"
        return f"Weights & Biases: {reason}; runs go to {target}"

    def log(self, report: BenchmarkReport, folder: Path) -> list[str]:
        """Log a benchmark; see :func:`log_to_wandb`."""
        runs = log_to_wandb(report, self.settings, folder)
        lines = [f"Weights & Biases runs: {runs[0].parent}"]
        if runs[0].name.startswith("offline-"):
            lines.append(f"  look at them in a terminal: wandb leet {runs[0].parent}")
            lines.append(f"  upload them: wandb sync {runs[0].parent}/offline-run-*")
        return lines


def log_to_wandb(report: BenchmarkReport, settings: WandbSettings, folder: str | Path) -> list[Path]:
    """Log a finished benchmark.

    W&B makes a panel of every key of a history, so the history of a configuration has few: the main measure, latency, size of
    the index, and price if known, each drawn as bars over configurations, and the table ``figures`` of everything measured.
    The summary has at most 40 keys: the main measure with its interval, its difference from the baseline and p-value under
    ``significance``, the other main measures, costs, and whether the configuration is on the Pareto front of quality and
    latency (``pareto``) or price (``pareto_price``). The config is flat, with each setting once, and the axes
    of a grid under ``grid/``. Its lists are an artifact; the data set (fingerprints, counts and loaders of corpus, queries and
    gold, but none of their text) is an input artifact. A failed configuration is a failed run with its error. The
    last run, ``summary``, holds the main measure of all configurations with intervals, their table, plots and the page, and
    the manifest as an artifact.

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

    Examples:
        >>> report = read_run_folder("runs/first").report  # doctest: +SKIP
        >>> log_to_wandb(report, WandbSettings(project="scifact", mode="offline"), "runs/first")  # doctest: +SKIP
        [PosixPath('runs/first/wandb/...'), ...]
    """
    mode, _ = mode_of(settings)
    import wandb

    target = Path(folder).absolute()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{target} cannot be made ({error.strerror}); choose another folder") from error
    where = {"project": settings.project, "entity": settings.entity, "mode": mode, "group": settings.group}
    group = settings.group or _group_name(target, report)
    ledger = Ledger(target, {"where": where, "results": sweep_of(report)}, group)
    view, folders = view_of(report), []
    runs = runs_of(view)
    with _wandb_quiet(), _as_wandb_error(wandb, target):
        for logged in runs:
            before = ledger.finished(logged.key)
            if before is None:
                ledger.begin(logged.key)
                with _wandb_run(settings, mode, ledger, logged, target) as run:
                    _log_run(wandb, run, logged)
                    if logged.job == SUMMARY:
                        _log_comparison(wandb, run, view, runs)
                    before = Path(run.dir).parent
                ledger.finish(logged.key, before)
            folders.append(before)
    return folders


def _group_name(folder: Path, report: BenchmarkReport) -> str:
    """Name of a group: that of the output folder with the date, numbered if another sweep of this folder has it."""
    finished = str(report.manifest.get("finished") or "") or time.strftime("%Y-%m-%d")
    name = f"{folder.name or 'benchmark'} {finished[:10]}"[:_LONGEST_NAME]
    taken = {sweep["group"] for sweep in _read_ledger(folder / _LEDGER_FILE).values()}
    number = next(number for number in itertools.count(1) if _numbered(name, number) not in taken)
    return _numbered(name, number)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} ({number})"


@contextmanager
def _as_wandb_error(wandb: Any, folder: Path) -> Iterator[None]:
    """Report what remains on disk if Weights & Biases refuses runs, or cannot be reached."""
    try:
        yield
    except wandb.errors.Error as error:
        raise OutputError(
            f"Weights & Biases did not accept the runs ({first_line(error)}); the results are complete in {folder}. Run it "
            "again to log what is missing, or with mode: offline"
        ) from error


@contextmanager
def _wandb_run(settings: WandbSettings, mode: WandbMode, ledger: Ledger, logged: LoggedRun, folder: Path) -> Iterator[Any]:
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


def _log_run(wandb: Any, run: Any, logged: LoggedRun) -> None:
    """Log the figures to draw, the table of all figures, the summary and the files."""
    row: dict[str, Any] = {name: logged.figures[name] for name in logged.panels}
    if logged.figures:
        columns, rows = figure_table(logged)
        row["figures"] = wandb.Table(columns=columns, data=rows)
    if row:
        run.log(row)
    summary = dict(logged.words) | {name: logged.figures[name] for name in logged.summary}
    run.summary.update(dict(list(summary.items())[:_MOST_KEYS]))
    if logged.dataset:
        _use_dataset(wandb, run, logged.dataset)
    if logged.files:
        summarised = logged.job == SUMMARY
        name = "benchmark" if summarised else f"run-{logged.files[0].stem}"
        artifact = wandb.Artifact(f"{_artifact_name(name)}-{run.id}", type="benchmark" if summarised else "trec-run")
        for file in logged.files:
            artifact.add_file(str(file), name=file.name)
        run.log_artifact(artifact)


def _use_dataset(wandb: Any, run: Any, dataset: Config) -> None:
    """Declare the data set as an input of a run. Its record is the same file in every run, so that W&B keeps one version."""
    corpus = str(dataset["corpus"].get("fingerprint") or "unknown")[:12]
    artifact = wandb.Artifact(_artifact_name(f"dataset-{dataset['name'] or corpus}"), type="dataset", metadata=dataset)
    with artifact.new_file("dataset.json", encoding="utf-8") as file:
        file.write(json.dumps(dataset, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    if run.offline:  # use_artifact refuses; the record of what it would do is kept for wandb sync
        run._log_artifact(artifact, is_user_created=True, use_after_commit=True)
    else:
        run.use_artifact(artifact)


def _artifact_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:_LONGEST_NAME]


def _log_comparison(wandb: Any, run: Any, view: ReportView, runs: list[LoggedRun]) -> None:
    """Log the main measure of all configurations with its intervals, their table, plots, and the page."""
    report, main = view.report, view.main_measure
    columns, rows = comparison_table(view, runs)
    logged: dict[str, Any] = {
        INTERVALS: wandb.Html(interval_chart(view), inject=False),
        COMPARISON: wandb.Table(columns=columns, data=rows),
    }
    measured = [result for result in report.configurations if main in result.measures]
    family = Measure.parse(main).family
    names = sorted({key for result in measured for key in result.measures if Measure.parse(key).family == family}, key=_cutoff)
    curve = [name for name in names if _cutoff(name) and all(name in result.measures for result in measured)]
    if len(curve) > 1:
        logged[f"{family} over k"] = wandb.plot.line_series(
            xs=[_cutoff(name) for name in curve],
            ys=[[result.measures[name] for name in curve] for result in measured],
            keys=[result.name for result in measured],
            title=f"{family_label(family)} over k",
            xname="k",
            split_table=True,
        )
    timed = [result for result in measured if result.cost is not None]
    if timed:
        points = [[result.name, result.cost.latency_ms, result.measures[main]] for result in timed if result.cost is not None]
        table = wandb.Table(columns=["configuration", "latency_ms", main], data=points)
        title = "Quality against latency"
        logged[title.lower()] = wandb.plot.scatter(table, "latency_ms", main, title=title, split_table=True)
    if page := report.files.get("report"):
        logged["report"] = wandb.Html(Path(page).read_text("utf-8"), inject=False)
    run.log(logged)


def _cutoff(measure: str) -> int:
    return Measure.parse(measure).cutoff or 0


def loggers_of(config: BenchmarkConfig, names: Sequence[str] = ()) -> list[RunLogger]:
    """Return the loggers of a benchmark."""
    named = {"wandb": config.wandb is not None, "mlflow": config.mlflow is not None}
    loggers: dict[str, RunLogger] = {"wandb": WandbLogger(config.wandb), "mlflow": MlflowLogger(config.mlflow)}
    return [logger for name, logger in loggers.items() if (name in names if names else named[name])]
