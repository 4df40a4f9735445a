"""Trackers of experiments: a finished benchmark as runs of Weights & Biases or of MLflow.

There is a run for each configuration, and one called ``summary``. A setting has the same key in every benchmark, in a grid or
not: parts are called by their registry names (``bm25/k1``, ``fusion``, ``depth``), and the rerankers of a cascade are numbered
(``reranker/1``). Nothing that looks like a key is ever logged.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import pyarrow.parquet as pq

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.settings import MlflowSettings, WandbMode, WandbSettings
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.registry import numbered_names
from nlp_retrieval.core.files.atomic import check_folder_for_output, make_folder
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, OutputError, first_line, install
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import best_first
from nlp_retrieval.reports.findings import headline
from nlp_retrieval.reports.view import ReportView, Row, view_of

SUMMARY = "summary"
_PARTS = ("retrievers", "encoder", "links", "processor", "fusion", "reranker")
_ALWAYS = ("processor", "fusion", "reranker")
_FRONTS = {"latency_ms": "pareto", "price_per_1000_queries": "pareto_price"}
_FILES = ("report", "results", "manifest", "markdown", "latex", "per_query")
_PATIENCE_S = 3.0
_LONGEST_NAME, _LONGEST_VALUE, _MOST_AT_ONCE = 100, 6000, 100

Table = tuple[list[str], list[list[Any]]]
"""Columns and rows."""


@dataclass(frozen=True)
class LoggedRun:
    """One run: its settings, figures, curves over the cutoff (``recall``, ``hops=3/recall``), table and files."""

    name: str
    config: Config
    figures: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    table: tuple[str, Table] | None = None
    files: list[Path] = field(default_factory=list)
    failed: bool = False


def runs_of(report: BenchmarkReport | ReportView) -> list[LoggedRun]:
    """Return the runs of a finished benchmark: its configurations, best first, those that failed, and the summary."""
    view = view_of(report)
    report, rows = view.report, {row.result.name: row for row in view.groups[0].rows}
    shared = {
        "dataset": view.dataset,
        "queries": report.query_counts.get(""),
        "query_set": report.manifest.get("query_fingerprint"),
        "k": list(report.k_values),
        "list_depth": report.manifest.get("depth"),
        "baseline": report.baseline,
        "counted": view.counted,
        "notes": " ".join(view.cautions),
    }
    shared = {key: value for key, value in shared.items() if value not in (None, "")}
    runs = []
    for result in best_first(report):
        corpus = view.corpora[result.name]
        about = {} if corpus is None else {"corpus": corpus.fingerprint, "items": corpus.items}
        config, figures = shared | about | flat_config(result.config), _figures(rows[result.name], view)
        words, curves = {"fingerprint": result.fingerprint}, _curves(rows[result.name], figures)
        runs.append(LoggedRun(result.name, config, figures, words, curves, _queries(view, result.name)))
    failed = [
        LoggedRun(each.name, shared | flat_config(each.config), words={"failed": each.reason, "error": each.error}, failed=True)
        for each in report.failed
    ]
    words = {"headline": sentence} if (sentence := headline(report)) else {}
    table = "comparison", _comparison(runs, tuple(f"{group.name}/" for group in view.groups[1:]))
    return [*runs, *failed, LoggedRun(SUMMARY, shared, {}, words, table=table, files=_there(report.files, _FILES))]


def flat_config(config: Config) -> Config:
    """Return the settings of a searcher by path, without null values and secrets, and the short names of its parts."""
    flat: Config = {}
    for key, value in without_secrets(config).items():
        if key != "name" or value != "searcher":
            is_retrievers = key == "retrievers" and isinstance(value, dict | list)
            _add(flat, "searcher" if key == "name" else key, _parts(value) if is_retrievers else value)
    flat = {key.removeprefix("retrievers/"): value for key, value in flat.items()}
    models = [flat.get(f"{key}/model") or value for key, value in flat.items() if key.endswith("/encoder")]
    links = [value for key, value in flat.items() if key.endswith("/links")]
    for part, part_names in (("encoder", [PurePosixPath(str(model)).name for model in models]), ("links", links)):
        if part_names:
            flat[part] = "+".join(dict.fromkeys(map(str, part_names)))
    return flat


def _parts(retrievers: Any) -> list[Any]:
    """Retrievers without their labels; a searcher of another package may hold names alone."""
    parts = retrievers.values() if isinstance(retrievers, dict) else retrievers
    return [part if isinstance(part, dict) else {"name": part} for part in parts]


def _add(flat: Config, key: str, value: Any) -> None:
    if isinstance(value, dict):
        if "name" in value and not key.rpartition("/")[2].startswith(str(value["name"])):  # a label says it already
            flat[key] = value["name"]
        for inner, setting in value.items():
            if inner != "name":
                _add(flat, f"{key}/{inner}", setting)
    elif isinstance(value, list) and value and all(isinstance(part, dict) and "name" in part for part in value):
        names = [str(part["name"]) for part in value]
        flat[key] = "+".join(names)
        for number, (label, part) in enumerate(zip(numbered_names(names), value, strict=True), start=1):
            _add(flat, f"{key}/{number if key == 'reranker' else label}", part)
    elif value is not None or key in _ALWAYS:
        flat[key] = "none" if value is None else value


def _figures(row: Row, view: ReportView) -> dict[str, float]:
    result, main = row.result, view.main_measure
    figures: dict[str, float] = dict(result.measures) | {"empty_queries": result.empty_queries}
    if main in result.intervals.get("", {}):
        figures |= dict(zip((f"{main}/low", f"{main}/high"), result.intervals[""][main], strict=True))
    if main in row.cells and (test := row.cells[main].comparison) is not None:
        figures |= {f"{main}/difference": test.difference, f"{main}/p_holm": test.p_holm}
    figures |= {f"{group}/{name}": value for group, measures in result.groups.items() for name, value in measures.items()}
    figures |= {_FRONTS[key]: result.name in front.names for key, front in view.fronts.items() if result.name in front.placed}
    if result.cost is not None:
        price = {key: cell.value for key, cell in row.cells.items() if key == "price_per_1000_queries"}
        _add(figures, "cost", asdict(result.cost) | price)
    return figures


def _curves(row: Row, figures: Mapping[str, float]) -> dict[str, dict[int, float]]:
    curves: dict[str, dict[int, float]] = {}
    for group, measures in {"": row.result.measures, **row.result.groups}.items():
        for key, value in measures.items():
            if (measure := Measure.parse(key)).cutoff is not None:
                curves.setdefault(f"{group}/{measure.family}".lstrip("/"), {})[measure.cutoff] = value
    # a figure without a cutoff has the name of its family, and MLflow would show the last point of a curve for it
    return {f"{name}@k" if name in figures else name: curve for name, curve in curves.items() if len(curve) > 1}


def _queries(view: ReportView, name: str) -> tuple[str, Table] | None:
    """The measures of every query of a configuration, with its text, from the files of the run."""
    paths = _there(view.report.files, ("per_query", "queries"))
    if len(paths) < 2:
        return None
    values = pq.read_table(paths[0], filters=[("configuration", "=", name)]).to_pylist()
    texts = {row["query_id"]: row["text"] for row in pq.read_table(paths[1], columns=["query_id", "text"]).to_pylist()}
    measures = [column.key for column in view.summary if values and column.key in values[0]]
    rows = [[row["query_id"], texts.get(row["query_id"], ""), row["group"], *map(row.get, measures)] for row in values]
    return "queries", (["query_id", "query", "group", *measures], rows)


def _comparison(runs: Sequence[LoggedRun], of_groups: tuple[str, ...]) -> Table:
    """The configurations with their parts, the settings in which they differ, and their figures over all queries."""
    keys = dict.fromkeys(key for run in runs for key in (*_PARTS, *run.config))
    differ = [key for key in keys if len({str(run.config.get(key)) for run in runs}) > 1]
    made_of = [key for key in keys if key in differ or (key in _PARTS and any(key in run.config for run in runs))]
    figures = list(dict.fromkeys(key for run in runs for key in run.figures if not key.startswith(of_groups)))
    settings = [_of_one_type([run.config.get(key) for run in runs]) for key in made_of]
    columns = [[run.name for run in runs], *settings, *([run.figures.get(key) for run in runs] for key in figures)]
    return ["configuration", *made_of, *figures], list(map(list, zip(*columns, strict=True)))


def _of_one_type(values: Sequence[Any]) -> list[Any]:
    """A column of a table, as text unless all of it are numbers: W&B refuses a column of several types, as 10 and "all"."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values if value is not None)
    return [value if numbers or value is None else str(value) for value in values]


def _there(files: Mapping[str, str], kinds: Sequence[str]) -> list[Path]:
    return [path for kind in kinds if kind in files and (path := Path(files[kind])).is_file()]


Settings = WandbSettings | MlflowSettings


def check_tracker(settings: Settings, folder: Path) -> str:
    """Check before the run whether it can be logged, and return in one line where it will be."""
    if isinstance(settings, WandbSettings):
        mode, reason = mode_of(settings)
        target = f"project {settings.project}" if mode == "online" else f"{folder / 'wandb'}, for wandb sync"
        return f"Weights & Biases: {reason}; runs go to {target}"
    _mlflow()
    uri = _store(settings, folder)
    shown = str(without_secrets(uri))
    if urlsplit(uri).scheme in ("http", "https") and not is_reachable(uri):
        raise OutputError(f"the MLflow server {shown} cannot be reached; start it, or name another (mlflow: {{uri: ...}})")
    if uri != _beside(folder) or (folder / "mlflow.db").exists():
        with _experiment(uri, settings.experiment):
            pass
    return f"MLflow: runs go to experiment {settings.experiment!r} of {shown}"


def log_run(report: BenchmarkReport, settings: Settings, folder: Path) -> list[str]:
    """Log a finished benchmark, and return lines that say where the runs are and how to view them."""
    if isinstance(settings, MlflowSettings):
        uri = without_secrets(log_to_mlflow(report, settings, folder))
        return [
            f"MLflow runs: experiment {settings.experiment!r} of {uri}",
            f"  look at them in a browser: mlflow ui --backend-store-uri {uri}",
        ]
    first, *_ = log_to_wandb(report, settings, folder)
    lines = [f"Weights & Biases runs: {first.parent}"]
    if first.name.startswith("offline-"):
        lines.append(f"  look at them in a terminal: wandb leet {first.parent}")
        lines.append(f"  upload them: wandb sync {first.parent}/offline-run-*")
    return lines


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


def mode_of(settings: WandbSettings) -> tuple[WandbMode, str]:
    """Return whether runs go online, and the reason as a short phrase; the errors are those of :func:`check_tracker`."""
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
        has_key, address = bool(wandb.api.api_key), str(wandb.setup().settings.base_url)
    if has_key and is_reachable(address):
        return "online", f"online, at {without_secrets(address)}"
    reason = f"{without_secrets(address)} cannot be reached" if has_key else "no API key is configured"
    if settings.mode == "online":
        cure = "check the network" if has_key else "run wandb login, set WANDB_API_KEY"
        kind = OutputError if has_key else ConfigurationError
        raise kind(f"wandb.mode is online, and {reason}; {cure}, or write mode: offline")
    return "offline", reason


@contextmanager
def _wandb_quiet() -> Iterator[None]:
    """Keep wandb from writing to the terminal while the block runs."""
    before = os.environ.get("WANDB_SILENT")
    os.environ["WANDB_SILENT"] = "true"
    try:
        yield
    finally:
        del os.environ["WANDB_SILENT"]
        if before is not None:
            os.environ["WANDB_SILENT"] = before


def log_to_wandb(report: BenchmarkReport, settings: WandbSettings, folder: str | Path) -> list[Path]:
    """Log a finished benchmark to Weights & Biases: a run for each configuration, best first, and the run ``summary``.

    The history of a configuration has its measures over the cutoff ``k``, its summary every figure, and the table ``queries``
    the measures of every query. The run ``summary`` has the table ``comparison``, the page and the files. Each call makes new
    runs.

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
    check_folder_for_output(target)
    make_folder(target)
    finished = str(report.manifest.get("finished") or time.strftime("%Y-%m-%d %H:%M"))[:16].replace("T", " ")
    group = settings.group or f"{target.name or 'benchmark'} {finished}"[-_LONGEST_NAME:]
    folders = []
    try:
        with _wandb_quiet():
            for logged in runs_of(report):
                with wandb.init(
                    project=settings.project, entity=settings.entity, group=group, name=logged.name,
                    job_type=SUMMARY if logged.name == SUMMARY else "configuration", config=logged.config, mode=mode,
                    dir=str(target), reinit="finish_previous",
                    settings=wandb.Settings(
                        silent=True, console="off", disable_git=True, disable_code=True, save_code=False,
                        x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True,
                    ),
                ) as run:  # fmt: skip
                    _fill(wandb, run, logged)
                    folders.append(Path(run.dir).parent)
                    if logged.failed:
                        run.finish(exit_code=1)
    except wandb.errors.Error as error:
        raise OutputError(
            f"Weights & Biases did not accept the runs ({first_line(error)}); the results are complete in {target}. Log them "
            "again, or with mode: offline"
        ) from error
    return folders


def _fill(wandb: Any, run: Any, logged: LoggedRun) -> None:
    if logged.curves:
        run.define_metric("k")
        for name in logged.curves:
            run.define_metric(name, step_metric="k")
        for k in sorted({k for curve in logged.curves.values() for k in curve}):
            run.log({"k": k} | {name: curve[k] for name, curve in logged.curves.items() if k in curve})
    shown: dict[str, Any] = {}
    if logged.table is not None:
        name, (columns, rows) = logged.table
        shown[name] = wandb.Table(columns=columns, data=rows)
    shown |= {file.stem: wandb.Html(file.read_text("utf-8"), inject=False) for file in logged.files if file.suffix == ".html"}
    if shown:
        run.log(shown)
    run.summary.update(dict(logged.words) | dict(logged.figures))
    if logged.files:
        artifact = wandb.Artifact(f"{logged.name}-{run.id}", type="benchmark")
        for file in logged.files:
            artifact.add_file(str(file), name=file.name)
        run.log_artifact(artifact)


def log_to_mlflow(report: BenchmarkReport, settings: MlflowSettings, folder: str | Path) -> str:
    """Log a finished benchmark to MLflow: a run for each configuration, below the run ``summary``.

    Runs hold what :func:`log_to_wandb` logs. Each call makes new runs.

    Args:
        report: with its files.
        settings: settings for MLflow.
        folder: without a URI, the runs go into ``<folder>/mlflow.db``.

    Returns:
        The URI of the store.

    Raises:
        DependencyError: MLflow is not installed.
        ConfigurationError: the experiment was deleted.
        OutputError: MLflow does not accept the runs.

    Examples:
        >>> report = read_run_folder("runs/first").report  # doctest: +SKIP
        >>> log_to_mlflow(report, MlflowSettings(experiment="scifact"), "runs/first")  # doctest: +SKIP
        'sqlite:////home/ann/runs/first/mlflow.db'
    """
    uri, above = _store(settings, Path(folder)), None
    make_folder(Path(folder))
    with _experiment(uri, settings.experiment, f"; the results are complete in {folder}") as (client, known):
        beside = (Path(folder).absolute() / "mlflow-artifacts").as_uri() if uri == _beside(Path(folder)) else None
        experiment = known.experiment_id if known else client.create_experiment(settings.experiment, artifact_location=beside)
        for run in reversed(runs_of(report)):  # the summary is the others' parent
            own = _log_run(client, experiment, run, above)
            above = above or own
    return uri


@contextmanager
def _experiment(uri: str, name: str, results: str = "") -> Iterator[tuple[Any, Any]]:
    """Yield a client and its experiment, None if there is none yet; errors in the block end with where the results are."""
    mlflow = _mlflow()
    from sqlalchemy.exc import SQLAlchemyError

    logger = logging.getLogger("mlflow")
    level = logger.level
    logger.setLevel(logging.WARNING)  # it reports the tables it creates
    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(name)
        if known and known.lifecycle_stage != "active":
            said = f"mlflow: the experiment {name!r} was deleted; restore it, or choose another name"
            raise ConfigurationError(said + results)
        yield client, known
    except (mlflow.exceptions.MlflowException, SQLAlchemyError, OSError) as error:
        raise OutputError(f"MLflow did not accept the runs ({without_secrets(first_line(error))}){results}") from error
    finally:
        logger.setLevel(level)


def _store(settings: MlflowSettings, folder: Path) -> str:
    return settings.uri or os.environ.get("MLFLOW_TRACKING_URI") or _beside(folder)


def _beside(folder: Path) -> str:
    return f"sqlite:///{folder.absolute() / 'mlflow.db'}"


def _log_run(client: Any, experiment: str, run: LoggedRun, parent: str | None) -> str:
    from mlflow.entities import Metric, Param

    name_of = _names([*run.config, *run.figures, *run.curves, *run.words])
    tags = {name_of[key]: str(value)[:_LONGEST_VALUE] for key, value in run.words.items()}
    tags |= {"mlflow.parentRunId": parent} if parent else {}
    identity = str(client.create_run(experiment, run_name=run.name, tags=tags).info.run_id)
    params = [Param(name_of[key], str(value)[:_LONGEST_VALUE]) for key, value in run.config.items()]
    points = {(key, 0): float(value) for key, value in run.figures.items()}
    points |= {(key, k): value for key, curve in run.curves.items() for k, value in curve.items()}
    now = int(time.time() * 1000)
    metrics = [Metric(name_of[key], value, now, step) for (key, step), value in points.items()]
    for begin in range(0, max(len(params), len(metrics)), _MOST_AT_ONCE):
        part = slice(begin, begin + _MOST_AT_ONCE)
        client.log_batch(identity, metrics=metrics[part], params=params[part])
    if run.table is not None:
        name, (columns, rows) = run.table
        client.log_dict(identity, {"columns": columns, "data": rows}, f"{name}.json")
    for file in run.files:
        client.log_artifact(identity, str(file))
    client.set_terminated(identity, "FAILED" if run.failed else "FINISHED")
    return identity


def _mlflow() -> Any:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    try:
        import mlflow
        import sqlalchemy  # noqa: F401 -- keeps the runs in a file
    except ImportError:
        raise DependencyError(f"logging to MLflow needs mlflow: {install('mlflow')}") from None
    return mlflow


def _names(texts: Iterable[str]) -> dict[str, str]:
    """Names that MLflow accepts, by original name: ``recall_at_10``; equal ones stay apart, also if only case differs."""
    names: dict[str, str] = {}
    used: set[str] = set()
    for text in dict.fromkeys(texts):
        plain = re.sub(r"[^\w\-. :/]", "_", text.replace("@", "_at_").replace("=", ":"))
        name = "/".join(part.strip(".") or "_" for part in plain.split("/"))[: 2 * _LONGEST_NAME]
        while name.casefold() in used:
            name += "_"
        used.add(name.casefold())
        names[text] = name
    return names
