"""Everything needed to repeat a run: configurations, corpus, queries, fingerprints, versions, seeds and hardware.

It contains nothing that looks like a key.
"""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Mapping
from datetime import UTC, datetime

from nlp_retrieval.benchmarks.benchmarkable import Entry
from nlp_retrieval.benchmarks.distributed import Spread
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.pinned import Corpus
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.evaluation.by_group import LEVEL, RESAMPLES

MANIFEST_FORMAT = 1
QUERY_PARTS = ("texts", "gold", "families", "groups")
"""Queries and expected results of a benchmark; each part has a fingerprint in ``query_parts``."""


def manifest_of(
    settings: BenchmarkSettings,
    corpus: Corpus,
    qrels: Mapping[str, Mapping[str, int]],
    identities: Mapping[str, Config],
    failed: Mapping[str, str],
    spread: Spread,
) -> Config:
    """Return the manifest of a run as plain values.

    Args:
        settings: settings of the benchmark that was run.
        corpus: corpus of its index.
        qrels: grades by query and item id.
        identities: identities of the configurations that were run; see :func:`run_identity`.
        failed: the errors of the others.
        spread: the work done by workers.
    """
    asked = [[query.query_id, query.text, query.family] for query in settings.queries]
    return {
        "format": MANIFEST_FORMAT,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {
            "loader": without_secrets(settings.loader.config),
            "fingerprint": corpus.fingerprint,
            "items": sum(map(bool, corpus.item_ids)),
        },
        "queries": len(settings.queries),
        "query_loader": without_secrets(settings.query_loader),
        "query_fingerprint": _hash([asked, qrels]),
        "query_parts": _parts(settings, qrels),
        "index": str(settings.index_path),
        "k_values": list(settings.k_values),
        "baseline": settings.baseline_among(settings.searchers),
        "group_by": settings.group_by,
        "where": settings.where,
        "gold_missing": settings.gold_missing,
        "ignore_identical_ids": settings.ignore_identical_ids,
        "where_from": dict(settings.where_from) if settings.where_from is not None else None,
        "filters": _hash(_filters(settings)) if any(settings.filters) else None,
        "prices": settings.prices.config if settings.prices is not None else None,
        "answerer": without_secrets(settings.answerer.config) if settings.answerer is not None else None,
        "answer_models": settings.answerer.provenance() if settings.answerer is not None else {},
        "right_answers": _hash([one.model_dump(mode="json") for one in right]) if (right := settings.right_answers) else None,
        "significance": {"resamples": RESAMPLES, "level": LEVEL, "seed": settings.seed},
        "latency": {"queries": min(settings.latency_queries, len(settings.queries)), "seed": settings.seed},
        "searchers": {
            name: {"config": without_secrets(searcher.config)}
            | ({"failed": failed[name]} if name in failed else identities[name])
            for name, searcher in settings.searchers.items()
        },
        **_who(settings, spread),
    } | describe_environment()


def _who(settings: BenchmarkSettings, spread: Spread) -> Config:
    """Processes that encoded the index and searched, and the machine that was timed; empty if all of it was one process."""
    workers = settings.workers
    if not workers.elsewhere:
        return {}
    who: Config = {"workers": workers.n, "ray": workers.ray}
    searched_by = who | {"stages": spread.n_done, "here": without_secrets(spread.here)}
    return {"encoded_by": who, "searched_by": searched_by, "timed_on": platform.node()}


def _filters(settings: BenchmarkSettings) -> list[list[object]]:
    """The filter of each query, independent of the order of the queries."""
    return sorted([query.query_id, where] for query, where in zip(settings.queries, settings.filters, strict=True))


def _parts(settings: BenchmarkSettings, qrels: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Fingerprints of a benchmark's queries and expected results, part by part, independent of the order of the queries."""
    queries = sorted(settings.queries, key=lambda query: query.query_id)
    groups = [query.metadata.get(settings.group_by) for query in queries]
    groups = [None if isinstance(group, float) and not math.isfinite(group) else group for group in groups]
    return {
        "texts": _hash([[query.query_id, query.text] for query in queries]),
        "gold": _hash(qrels),
        "families": _hash([[query.query_id, query.family] for query in queries]),
        "groups": _hash([[query.query_id, group] for query, group in zip(queries, groups, strict=True)]),
    }


def _hash(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode("utf-8", "surrogatepass")).hexdigest()


def run_identity(searcher: Entry, fingerprint: str) -> Config:
    """Return what a configuration depends on besides its parameters: indexes, and sources of models.

    Args:
        searcher: the searcher that was run.
        fingerprint: its own.
    """
    identity: Config = {"fingerprint": fingerprint}
    if isinstance(searcher, TrecRun):
        return identity
    retrievers = [record.identity for record in searcher.index_records()]
    return identity | {"retrievers": retrievers, "models": searcher.provenance()}
