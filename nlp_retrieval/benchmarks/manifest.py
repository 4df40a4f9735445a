"""What is needed to repeat a run: configurations, corpus, queries, fingerprints, versions, seeds and hardware.

Nothing that looks like a key stands in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.evaluation.by_group import LEVEL, RESAMPLES

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.benchmarkable import Entry
    from nlp_retrieval.benchmarks.benchmarker import Benchmarker
    from nlp_retrieval.benchmarks.pinned import Corpus

MANIFEST_FORMAT = 1
QUERY_PARTS = ("texts", "gold", "families", "groups")
"""What a benchmark asks and expects; each has a fingerprint in ``query_parts``."""


def manifest_of(
    benchmark: Benchmarker,
    corpus: Corpus,
    qrels: Mapping[str, Mapping[str, int]],
    identities: Mapping[str, Config],
    failed: Mapping[str, str],
) -> Config:
    """Return the manifest of a run as plain values.

    Args:
        benchmark: that was run.
        corpus: of its index.
        qrels: grades by query and item id.
        identities: of the configurations that were run; see :func:`run_identity`.
        failed: why the others were not.
    """
    asked = [[query.query_id, query.text, query.family] for query in benchmark.queries]
    return {
        "format": MANIFEST_FORMAT,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {
            "loader": without_secrets(benchmark.loader.config),
            "fingerprint": corpus.fingerprint,
            "items": sum(map(bool, corpus.item_ids)),
        },
        "queries": len(benchmark.queries),
        "query_loader": without_secrets(benchmark.query_loader),
        "query_fingerprint": _hash([asked, qrels]),
        "query_parts": _parts(benchmark, qrels),
        "index": str(benchmark.index_path),
        "k_values": benchmark.k_values,
        "baseline": benchmark.baseline,
        "group_by": benchmark.group_by,
        "prices": benchmark.prices.config if benchmark.prices is not None else None,
        "significance": {"resamples": RESAMPLES, "level": LEVEL, "seed": benchmark.seed},
        "latency": {"queries": min(benchmark.latency_queries, len(benchmark.queries)), "seed": benchmark.seed},
        "searchers": {
            name: {"config": without_secrets(searcher.config)}
            | ({"failed": failed[name]} if name in failed else identities[name])
            for name, searcher in benchmark.searchers.items()
        },
    } | describe_environment()


def _parts(benchmark: Benchmarker, qrels: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Fingerprints of what a benchmark asks and expects, part by part, whatever the order of the queries."""
    queries = sorted(benchmark.queries, key=lambda query: query.query_id)
    groups = [query.metadata.get(benchmark.group_by) for query in queries]
    return {
        "texts": _hash([[query.query_id, query.text] for query in queries]),
        "gold": _hash(qrels),
        "families": _hash([[query.query_id, query.family] for query in queries]),
        "groups": _hash([[query.query_id, group] for query, group in zip(queries, groups, strict=True)]),
    }


def _hash(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode("utf-8", "surrogatepass")).hexdigest()


def run_identity(searcher: Entry, fingerprint: str) -> Config:
    """Return what a configuration depends on besides its parameters: indexes, and where models come from.

    Args:
        searcher: that was run.
        fingerprint: its own.
    """
    identity: Config = {"fingerprint": fingerprint}
    if isinstance(searcher, TrecRun):
        return identity
    retrievers = [record.identity for record in searcher.index_records()]
    return identity | {"retrievers": retrievers, "models": searcher.provenance()}
