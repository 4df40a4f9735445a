"""A benchmark as Weights & Biases runs: one per configuration in one group, and one that sums up.

Runs are offline unless the user is logged in or says otherwise, and nothing that looks like a key is ever logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport, FailedConfiguration
from nlp_retrieval.benchmarks.runs.comparable import RunCorpus
from nlp_retrieval.benchmarks.settings import WandbMode, WandbSettings
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import OutputError
from nlp_retrieval.evaluation.measure import Measure
from nlp_retrieval.reports.view import ReportView, Row, view_of
from nlp_retrieval.reports.wandb.artifacts import log_manifest, log_run, parameters, sweep_of
from nlp_retrieval.reports.wandb.ledger import Ledger
from nlp_retrieval.reports.wandb.ready import first_line, mode_of, quiet

_FRONTS = {"latency_ms": "pareto", "price_per_1000_queries": "pareto_price"}


def log_to_wandb(report: BenchmarkReport, settings: WandbSettings, folder: str | Path) -> list[Path]:
    """Log a finished benchmark.

    In each configuration's run, ``recall``, ``precision``, ``f1``, ``perfect_recall``, ``ndcg``, ``map`` and ``mrr`` are
    curves over ``k``, and the summary holds every measure and cost by name, whether the configuration is on the Pareto front
    of quality and latency (``pareto``) or price (``pareto_price``), and what the tests found over all queries under
    ``significance``. Its lists are an artifact. A configuration that failed is a run that failed, and says why. The last run,
    ``summary``, holds the table of all configurations, the plots and the page, and the manifest as an artifact.

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
    mode = mode_of(settings)
    import wandb

    target = Path(folder).absolute()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{target} cannot be made ({error.strerror}); choose another folder") from error
    group = settings.group or f"benchmark {report.manifest.get('finished', '')}".strip()
    where = {"project": settings.project, "entity": settings.entity, "mode": mode, "group": settings.group}
    ledger = Ledger(target, {"where": where, "results": sweep_of(report)}, group)
    logging, view = _Logging(settings, mode, ledger, target), view_of(report)
    notes = {"notes": view.cautions} if view.cautions else {}
    with quiet(), _told(wandb, target):
        for row in view.groups[0].rows:
            name = row.result.name
            with logging.run(name, "configuration", _flat_config(row, report, view.corpora[name]) | notes) as run:
                if run is not None:
                    _log_configuration(run, row, view)
                    log_run(run, name, report)
        for failed in report.failed:
            with logging.run(failed.name, "configuration", _failed_config(failed), exit_code=1) as run:
                if run is not None:
                    run.summary.update({"failed": failed.reason, "error": failed.error})
        config = {"baseline": report.baseline, "k": report.k_values, "manifest": without_secrets(report.manifest)}
        with logging.run("summary", "summary", config | notes) as run:
            if run is not None:
                _log_summary(wandb, run, view)
                log_manifest(run, report)
    return logging.folders


class _Logging:
    """Begins and ends runs, each once."""

    def __init__(self, settings: WandbSettings, mode: WandbMode, ledger: Ledger, folder: Path) -> None:
        self._settings = settings
        self._mode = mode
        self._ledger = ledger
        self._folder = folder
        self.folders: list[Path] = []

    @contextmanager
    def run(self, name: str, job: str, config: dict[str, Any], exit_code: int = 0) -> Iterator[Any]:
        """Give a run to log into; None where it was logged before."""
        key = f"{job}: {name}"
        before = self._ledger.finished(key)
        if before is not None:
            self.folders.append(before)
            yield None
            return
        self._ledger.begin(key)
        with _run(self._settings, self._mode, self._ledger, (name, key, job), config, self._folder, exit_code) as run:
            yield run
            where = Path(run.dir).parent
        self._ledger.finish(key, where)
        self.folders.append(where)


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
def _run(
    settings: WandbSettings,
    mode: WandbMode,
    ledger: Ledger,
    called: tuple[str, str, str],
    config: dict[str, Any],
    folder: Path,
    exit_code: int,
) -> Iterator[Any]:
    import wandb

    name, key, job = called
    run = wandb.init(
        project=settings.project,
        entity=settings.entity,
        group=ledger.group,
        id=ledger.id_of(key),
        resume="allow" if mode == "online" else None,
        name=name,
        job_type=job,
        config=config,
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
    run.finish(exit_code=exit_code)


def _flat_config(row: Row, report: BenchmarkReport, corpus: RunCorpus | None) -> dict[str, Any]:
    """The configuration, flat enough to filter and group by, and complete beside it."""
    result = row.result
    retrievers = result.config.get("retrievers", [])
    parts = list(retrievers.values()) if isinstance(retrievers, dict) else retrievers
    named = {kind: (result.config.get(kind) or {}).get("name", "none") for kind in ("processor", "fusion", "reranker")}
    flat = {
        "retrievers": "+".join(part["name"] for part in parts) or result.config.get("name"),
        "parameters": parameters(result.config),
        "scope": result.config.get("scope"),
        "fingerprint": result.fingerprint,
        "baseline": row.is_baseline,
        "queries": report.query_counts[""],
        "items": report.n_items if corpus is None else corpus.items,
        "corpus": None if corpus is None else corpus.fingerprint,
        "searcher": result.config,
    }
    cleaned: dict[str, Any] = without_secrets(named | flat)
    return cleaned


def _failed_config(failed: FailedConfiguration) -> dict[str, Any]:
    cleaned: dict[str, Any] = without_secrets({"failed": True, "searcher": failed.config})
    return cleaned


def _log_configuration(run: Any, row: Row, view: ReportView) -> None:
    result = row.result
    run.define_metric("k")
    parsed = map(Measure.parse, result.measures)
    families = list(dict.fromkeys(measure.family for measure in parsed if measure.cutoff is not None))
    for family in families:
        run.define_metric(family, step_metric="k")
    for k in view.report.k_values:
        run.log({"k": k} | {family: result.measures[str(Measure(family, k))] for family in families})
    run.summary.update(
        result.measures
        | {f"{group}/{name}": value for group, measures in result.groups.items() for name, value in measures.items()}
        | {f"cost/{key}": value for key, value in _figures(row).items()}
        | {f"cost/stage_ms/{stage}": value for stage, value in (result.cost.stage_ms if result.cost else {}).items()}
        | _on_fronts(row, view)
        | {"empty_queries": result.empty_queries}
        | {
            f"significance/{one.measure}/{figure}": value
            for one in view.groups[0].comparisons
            if one.system == result.name
            for figure, value in (("difference", one.difference), ("p_holm", one.p_holm))
        }
    )


def _figures(row: Row) -> dict[str, float]:
    """The single figures of a cost by name; those of language models only where one was asked, and prices where known."""
    if row.result.cost is None:
        return {}
    figures: dict[str, Any] = asdict(row.result.cost)
    del figures["stage_ms"]
    asked: dict[str, float] = figures.pop("language_model") or {}
    asked.pop("models", None)
    answering: dict[str, float] = figures.pop("answering") or {}
    of_parts = {f"language_model/{key}": value for key, value in asked.items()}
    return figures | of_parts | {f"answering/{key}": value for key, value in answering.items()} | row.prices


def _on_fronts(row: Row, view: ReportView) -> dict[str, bool]:
    """Whether a configuration is on each front that it has a place in."""
    name = row.result.name
    return {_FRONTS[key]: name in front.names for key, front in view.fronts.items() if name in front.placed}


def _log_summary(wandb: Any, run: Any, view: ReportView) -> None:
    report, rows = view.report, view.groups[0].rows
    measures = list(report.configurations[0].measures)
    costs = [_figures(row) | _on_fronts(row, view) for row in rows]
    kinds = list(dict.fromkeys(key for cost in costs for key in cost))
    main = view.main_measure
    tested = [f"{main} p_holm"] if view.comparisons else []
    table = wandb.Table(columns=["configuration", *measures, *tested, *kinds])
    for row, cost in zip(rows, costs, strict=True):
        compared = row.cells[main].comparison
        p_holm = [compared.p_holm if compared is not None else None for _ in tested]
        figures = (row.result.measures[name] for name in measures)
        table.add_data(row.result.name, *figures, *p_holm, *(cost.get(key) for key in kinds))
    depth = report.k_values[-1]
    curves = wandb.plot.line_series(
        xs=report.k_values,
        ys=[[result.measures[f"recall@{k}"] for k in report.k_values] for result in report.configurations],
        keys=[result.name for result in report.configurations],
        title="Recall over k",
        xname="k",
    )
    logged: dict[str, Any] = {"comparison": table, "recall over k": curves}
    if "latency_ms" in kinds:
        logged["quality against latency"] = wandb.plot.scatter(
            table, "latency_ms", f"recall@{depth}", title="Quality against latency"
        )
    if page := report.files.get("report"):
        logged["report"] = wandb.Html(Path(page).read_text("utf-8"), inject=False)
    run.log(logged)
