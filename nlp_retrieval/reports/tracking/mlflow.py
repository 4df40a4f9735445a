"""A benchmark as MLflow runs: the summary, with a nested run for each configuration.

Names are as for other trackers, except for characters that MLflow does not accept: ``recall@10`` is ``recall_at_10``, and
``hops=3/recall`` is ``hops:3/recall``. MLflow's own telemetry stays off.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.settings import MlflowSettings
from nlp_retrieval.core.files.atomic import make_folder
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, OutputError, first_line, install
from nlp_retrieval.reports.tracking.logged_run import LoggedRun, runs_of, sweep_of
from nlp_retrieval.reports.tracking.run_logger import RunLogger, is_reachable, run_id, sweep_id

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
        with _quiet(), _told(mlflow, folder):
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
        found = client.get_experiment_by_name(name)
        if found is not None:
            if found.lifecycle_stage != "active":
                raise ConfigurationError(f"mlflow: the experiment {name!r} was deleted; restore it, or choose another name")
            return str(found.experiment_id)
        place = (folder.absolute() / "mlflow-artifacts").as_uri() if self._uri(folder) == _own_uri(folder) else None
        return str(client.create_experiment(name, artifact_location=place))


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
def _quiet() -> Iterator[None]:
    """Keep MLflow from reporting the tables it creates."""
    logger = logging.getLogger("mlflow")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _told(mlflow: Any, folder: Path) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (mlflow.exceptions.MlflowException, SQLAlchemyError, OSError) as error:
        raise OutputError(f"MLflow did not take the runs ({_first_line(error)}); the results are whole in {folder}") from error


def _first_line(error: Exception) -> str:
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
