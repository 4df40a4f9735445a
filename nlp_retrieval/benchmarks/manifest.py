"""Everything needed to repeat a run: configurations, corpus, queries, fingerprints, versions, seeds and hardware.

It contains nothing that looks like a key.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from nlp_retrieval.benchmarks.checked import keys_of, values_of
from nlp_retrieval.benchmarks.distributed import Spread
from nlp_retrieval.benchmarks.entrants import Entry, TrecRun
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.pinned import Corpus
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import BaseQueryLoader, Component, Config, canonical_json
from nlp_retrieval.core.components.registry import ComponentT, asked_for, build_from_manifest, plan, require_trust
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.secrets import HIDDEN, without_secrets
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.evaluation.comparison import LEVEL, RESAMPLES
from nlp_retrieval.lm.answering import BaseAnswerer

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
        "query_fingerprint": _hash([asked, qrels]),
        "query_parts": _parts(settings, qrels),
        **({"synthetic": written} if (written := sum(query.is_synthetic for query in settings.queries)) else {}),
        "index": str(settings.index_path),
        **_recorded(settings),
        "filters": _hash(_filters(settings)) if any(settings.filters) else None,
        "answer_models": settings.answerer.provenance() if settings.answerer is not None else {},
        "right_answers": _hash([answer.model_dump(mode="json") for answer in right])
        if (right := settings.right_answers)
        else None,
        "main": settings.main_measure,
        "significance": {"resamples": settings.resamples or RESAMPLES, "level": LEVEL, "seed": settings.seed},
        "latency": {
            "queries": min(settings.latency_queries, len(settings.queries)),
            "k": settings.latency_k,
            "seed": settings.seed,
        },
        "searchers": {
            name: {"config": without_secrets(searcher.config)}
            | ({"failed": failed[name]} if name in failed else identities[name])
            for name, searcher in settings.searchers.items()
        },
        **_worker_record(settings, spread),
    } | describe_environment()


_ELSEWHERE = ("searchers", "loader", "index_path", "stage_folder", "seed", "latency_queries", "latency_k")
"""Settings that a manifest records under other names, or not at all."""


def _recorded(settings: BenchmarkSettings) -> Config:
    return {name: without_secrets(value) for name, value in settings.record().items() if name not in _ELSEWHERE}


def _worker_record(settings: BenchmarkSettings, spread: Spread) -> Config:
    """Processes that encoded the index and searched, and the machine that was timed; empty if all of it was one process."""
    workers = settings.processes
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


# Repeating a run from its manifest, and the differences: versions, hardware, data, models, and results.
#
# Quality is compared to the last bit: the same computation on the same data gives the same number, and if it does
# not, the listed differences are where to look.

_SHOWN = 5


class _Maker(Protocol):
    """Creates the component at a place of a manifest."""

    def __call__(self, cls: type[ComponentT], place: str) -> ComponentT: ...


class _ManifestPart(BaseModel):
    model_config = ConfigDict(strict=True)


class _Corpus(_ManifestPart):
    loader: str | dict[str, Any]


class _Latency(_ManifestPart):
    queries: int
    k: int
    seed: int


class _Configured(_ManifestPart):
    config: dict[str, Any]


class _Manifest(_ManifestPart):
    """The frame of a manifest; its other settings are checked when the run is repeated, and the rest is only compared."""

    corpus: _Corpus
    query_loader: str | dict[str, Any] | None
    query_fingerprint: str
    index: str
    k_values: Any
    baseline: Any
    group_by: Any
    prices: Any
    answerer: dict[str, Any] | None = None
    latency: _Latency
    searchers: dict[str, _Configured]
    versions: dict[str, Any] = {}
    hardware: dict[str, Any] = {}


def read_manifest(path: str | Path) -> Config:
    """Read the manifest of a run.

    Args:
        path: ``manifest.json``, or the output folder that contains it.

    Raises:
        SourceError: it is missing, damaged, or of another format.
    """
    path = Path(path) / "manifest.json" if Path(path).is_dir() else Path(path)
    try:
        manifest = read_json_file(path)
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror or error}); name the manifest.json of a run") from error
    except ValueError as error:
        raise SourceError(f"{path} is not JSON ({error}); name the manifest.json of a run") from error
    number = manifest.get("format") if isinstance(manifest, dict) else None
    if number != MANIFEST_FORMAT:
        raise SourceError(f"{path} is not a manifest of format {MANIFEST_FORMAT} (found {number!r}); run the benchmark again")
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        places = {".".join(map(str, wrong["loc"])): wrong for wrong in errors}
        if missing := [place for place, wrong in places.items() if wrong["type"] == "missing"]:
            raise SourceError(f"{path} lacks {', '.join(missing)}; it is damaged: run the benchmark again") from None
        place, first = next(iter(places.items()))
        raise SourceError(f"{path} is damaged: {place}: {first['msg']}; run the benchmark again") from None
    return cast(Config, manifest)


def benchmark_of(
    manifest: Config,
    *,
    index: str | Path | None = None,
    trust: bool = False,
    source: str = "the manifest",
) -> BenchmarkSettings:
    """Return the benchmark that a manifest describes; it stores no results of stages, so everything is computed.

    Args:
        manifest: manifest of a run.
        index: the index directory, overriding the manifest's own.
        trust: let the manifest use settings that :mod:`nlp_retrieval.core.components.registry` does not allow; data is
            read from files, so nearly every manifest needs this.
        source: location of the manifest, for messages.

    Raises:
        UntrustedError: it asks for such settings, and is not trusted.
        ConfigurationError: the queries were not read by a loader, a setting is hidden, or a component does not exist here.
        SourceError: the data is not at its original location.
    """
    loader = manifest["query_loader"]
    if loader is None:
        raise ConfigurationError(
            "the manifest does not say where the queries were read from (they were given in Python); repeat the run there"
        )
    used = {"corpus": manifest["corpus"], "query_loader": loader, "prices": manifest["prices"]}
    used["searchers"] = {name: {"config": about["config"]} for name, about in manifest["searchers"].items()}
    used["answerer"] = manifest.get("answerer")
    hidden = list(_hidden(used, "manifest"))
    if hidden:
        raise ConfigurationError(
            f"the manifest hides {hidden[0]}, because it looks like a key; take keys from the environment, and run the "
            "benchmark again by its configuration file"
        )
    make = _maker(manifest, index, source, trust=trust)
    queries = make(BaseQueryLoader, "query_loader")
    shared = (name for name in keys_of(BenchmarkSettings) if name not in _ELSEWHERE and manifest.get(name) is not None)
    values = {
        **{name: manifest[name] for name in shared},
        "searchers": {name: make(Component, f"searchers.{name}") for name in manifest["searchers"]},
        "loader": make(BaseLoader, "corpus.loader"),
        "queries": queries.queries(),
        "gold": queries.gold(),
        "index_path": index or manifest["index"],
        "latency_queries": manifest["latency"]["queries"],
        "latency_k": manifest["latency"]["k"],
        "seed": manifest["latency"]["seed"],
        "answerer": make(BaseAnswerer, "answerer") if manifest.get("answerer") is not None else None,
    }
    return values_of(BenchmarkSettings, values, "manifest")


def _maker(manifest: Config, index: str | Path | None, source: str, *, trust: bool) -> _Maker:
    """Return the function that creates a manifest's components by their places; trust is checked before any is created."""
    described: dict[str, tuple[str, Any, type[Component]]] = {
        "query_loader": ("loaders", manifest["query_loader"], BaseQueryLoader),
        "corpus.loader": ("loaders", manifest["corpus"]["loader"], BaseLoader),
    } | {f"searchers.{name}": ("searchers", about["config"], Component) for name, about in manifest["searchers"].items()}
    if manifest.get("answerer") is not None:
        described["answerer"] = ("answerers", manifest["answerer"], BaseAnswerer)
    plans = {place: plan(kind, settings, place, wanted) for place, (kind, settings, wanted) in described.items()}
    asked = [phrase for planned in plans.values() for phrase in asked_for(planned)]
    if index is None:
        asked.append(f"index: use, or write, the index at {manifest['index']!r}")
    require_trust(asked, source, "", trust=trust)

    def make(cls: type[ComponentT], place: str) -> ComponentT:
        return build_from_manifest(cls, plans[place], trust=trust)

    return make


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between the two runs of a manifest, one sentence each.

    Args:
        before: the repeated manifest.
        now: that of the repetition.
    """
    sentences = []
    old, new = (_at(manifest, ("corpus", "fingerprint")) for manifest in (before, now))
    if old != new and old is not None and new is not None:
        sentences.append(f"the corpus changed: the fingerprint was {old[:12]}, and is {new[:12]}")
    elif old != new:
        sentences.append("whether the corpus changed is not known: the manifest does not hold its fingerprint")
    sentences += _other_queries(before, now)
    if before.get("filters") != now.get("filters"):
        sentences.append("the filters of the queries changed")
    if before.get("right_answers") != now.get("right_answers"):
        sentences.append("the right answers changed")
    if before.get("answer_models", {}) != now.get("answer_models", {}):
        sentences.append(f"answers came from {before.get('answer_models')}, and come from {now.get('answer_models')}")
    for part in ("versions", "hardware"):
        olds, news = before.get(part, {}), now.get(part, {})
        sentences += [
            f"{part}: {key} was {olds.get(key, 'not there')}, and is {news.get(key, 'not there')}"
            for key in dict.fromkeys([*olds, *news])
            if olds.get(key) != news.get(key)
        ]
    for name, about in before.get("searchers", {}).items():
        repeated = now.get("searchers", {}).get(name, {})
        if about.get("models") != repeated.get("models"):
            sentences.append(f"{name}: models came from {about.get('models')}, and come from {repeated.get('models')}")
        elif about.get("fingerprint") != repeated.get("fingerprint"):
            sentences.append(f"{name}: the fingerprint of configuration and models changed")
        if ("failed" in about) != ("failed" in repeated):
            sentences.append(
                f"{name}: " + ("failed before, and not now" if "failed" in about else f"fails now: {repeated['failed']}")
            )
    return sentences


def _other_queries(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences in queries and gold: texts, gold, families, groups, or only the order of the queries."""
    old, new = (_at(manifest, ("query_fingerprint",)) for manifest in (before, now))
    olds, news = ([_at(manifest, ("query_parts", part)) for part in QUERY_PARTS] for manifest in (before, now))
    if None in (*olds, *news):
        changes = "which of them, the older manifest does not tell" if old != new else ""
    else:
        changed = [part for part, was, now_is in zip(QUERY_PARTS, olds, news, strict=True) if was != now_is]
        changes = ", ".join(changed) or ("their order" if old != new else "")
    return [f"the queries or gold changed: {changes}"] if changes else []


def moved_results(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the measures that differ between two ``results.json``, one sentence each; empty if all are equal.

    Args:
        before: results of the repeated run.
        now: results of the repetition.
    """
    sentences = []
    for name, result in before["configurations"].items():
        repeated = now["configurations"].get(name)
        if repeated is None:
            sentences.append(f"{name}: has no results now")
            continue
        moved = [
            f"{measure} {value:.4f} -> {repeated['measures'].get(measure, float('nan')):.4f}"
            for measure, value in result["measures"].items()
            if repeated["measures"].get(measure) != value
        ]
        if moved:
            more = f", and {len(moved) - _SHOWN} more" if len(moved) > _SHOWN else ""
            sentences.append(f"{name}: {', '.join(moved[:_SHOWN])}{more}")
    plain = json.loads(json.dumps(now))  # tuples become lists in a file
    rest = [key for key in before if key != "failed" and before[key] != plain.get(key)]
    if rest and not sentences:
        sentences.append(f"the means over all queries are the same, and these are not: {', '.join(rest)}")
    return sentences


def _at(value: Any, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _hidden(value: Any, place: str) -> Iterator[str]:
    """The places of values hidden as keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _hidden(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _hidden(inner, f"{place}[{number}]")
    elif isinstance(value, str) and HIDDEN in value:
        yield place
