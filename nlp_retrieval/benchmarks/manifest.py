"""What a run was: its settings, corpus, queries, fingerprints, versions and hardware; and the configuration that repeats it.

It contains nothing that looks like a key.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from datetime import UTC, datetime

from nlp_retrieval.benchmarks.checked import keys_of
from nlp_retrieval.benchmarks.entrants import Corpus, Entry, TrecRun
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.settings import BenchmarkSettings, GivenItems
from nlp_retrieval.benchmarks.timing import LATENCY_K
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.secrets import without_secrets

_ELSEWHERE = ("searchers", "loader", "index_path", "stage_folder", "seed", "latency_queries")
"""Settings that a manifest records under other names, or not at all."""


def manifest_of(
    settings: BenchmarkSettings,
    corpus: Corpus,
    qrels: Mapping[str, Mapping[str, int]],
    identities: Mapping[str, Config],
    failed: Mapping[str, str],
    here: Mapping[str, str],
) -> Config:
    """Return the manifest of a run as plain values."""
    asked = [[query.query_id, query.text, query.family] for query in settings.queries]
    written = sum(query.is_synthetic for query in settings.queries)
    filters = sorted([query.query_id, where] for query, where in zip(settings.queries, settings.filters, strict=True))
    right = [answer.model_dump(mode="json") for answer in settings.right_answers]
    recorded = {name: without_secrets(value) for name, value in settings.record().items() if name not in _ELSEWHERE}
    workers: Config = {"workers": settings.workers, "ray": settings.ray}
    elsewhere = {"searched_by": workers | {"here": without_secrets(dict(here))}, "timed_on": platform.node()}
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {
            "loader": without_secrets(settings.loader.config),
            "fingerprint": corpus.fingerprint,
            "items": len(corpus.rows),
        },
        "queries": len(settings.queries),
        "query_fingerprint": _hash([asked, qrels]),
        **({"synthetic": written} if written else {}),
        "index": str(settings.index_path),
        **recorded,
        "filters": _hash(filters) if any(settings.filters) else None,
        "answer_models": settings.answerer.provenance() if settings.answerer is not None else {},
        "right_answers": _hash(right) if right else None,
        "main": settings.main_measure,
        "latency": {"queries": min(settings.latency_queries, len(settings.queries)), "k": LATENCY_K},
        "searchers": {
            name: {"config": without_secrets(searcher.config)}
            | ({"failed": failed[name]} if name in failed else identities[name])
            for name, searcher in settings.searchers.items()
        },
        "configuration": None if isinstance(settings.loader, GivenItems) else _configuration(settings),
        **(elsewhere if settings.processes.elsewhere else {}),
    } | describe_environment()


def _configuration(settings: BenchmarkSettings) -> Config | None:
    """Return the settings as a configuration file has them; None if the queries were given in Python."""
    if settings.query_loader is None:
        return None
    record, keys = settings.record() | {"main": settings.main_measure}, keys_of(BenchmarkSettings)
    left_out = {"stage_folder", *(() if settings.measures is None else ("k_values",))}
    plain: Config = without_secrets(
        {keys[name]: value for name, value in record.items() if value is not None and name not in left_out}
    )
    return plain


def _hash(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode("utf-8", "surrogatepass")).hexdigest()


def run_identity(searcher: Entry, fingerprint: str) -> Config:
    """Return what a configuration depends on besides its parameters: indexes, and sources of models."""
    identity: Config = {"fingerprint": fingerprint}
    if isinstance(searcher, TrecRun):
        return identity
    retrievers = [record.identity for record in searcher.index_records()]
    return identity | {"retrievers": retrievers, "models": searcher.provenance()}
