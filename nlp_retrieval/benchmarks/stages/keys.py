"""Keys of stages: equal keys mean equal results.

A key covers the complete configuration of a component and of its parts (search parameters, batch sizes and backends too:
they may change the last bit), the files of their models, the corpus, the input, and the versions of the packages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.stages.store import FORMAT
from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.components.code import own_code
from nlp_retrieval.core.components.component import Component, Config, canonical_json, with_held
from nlp_retrieval.core.index.generation import Generation, fingerprint_of
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts

CANDIDATES = "candidates"
"""The group of the store for lists of retrievers."""

_NO_PART_IN_RESULTS = ("wandb",)


def key_of(stage: str, content: Mapping[str, Any]) -> str:
    """Return the key of a stage, in hexadecimal.

    Args:
        stage: the kind of stage.
        content: plain values, as in JSON: everything that determines the result.
    """
    whole = {"stage": stage, "format": FORMAT, "versions": versions(), "content": dict(content)}
    return hashlib.sha256(canonical_json(whole).encode("utf-8", "surrogatepass")).hexdigest()


def candidates_key(
    retriever: BaseRetriever, processed: list[list[str]], depth: int, generation: Generation, allowed: Mask | None
) -> str:
    """Return the key of an opened retriever's results; the arguments are those of ``Stages.candidates``."""
    content: Config = {"retriever": identity_of(retriever), "queries": processed, "depth": depth}
    if allowed is not None:
        content["allowed"] = hashlib.sha256(np.packbits(allowed).tobytes()).hexdigest()
    return key_of(CANDIDATES, content | {"corpus": corpus_of(generation), "index": index_of(generation, retriever)})


def scores_group(reranker: BaseReranker, generation: Generation) -> str:
    """Return the group of the store for a reranker's scores of the items of an index."""
    identity = {"reranker": identity_of(reranker, without="blend"), "corpus": corpus_of(generation)}
    return f"scores/{key_of('scores', identity)}"


def pairs_key(queries: Sequence[str], rows: Rows) -> str:
    """Return the key of the scores of pairs ``[pairs]``, within their group."""
    return key_of("scores", {"queries": list(queries), "rows": hashlib.sha256(rows.astype(np.int64).tobytes()).hexdigest()})


def identity_of(component: Component, without: str | None = None) -> Config:
    """Return everything that determines a component's results.

    Args:
        component: the component, with its parts at any depth.
        without: a parameter of the component itself to ignore.
    """
    own = {key: value for key, value in component.config.items() if key != without}
    models = [part.identity for part in with_held(component)]
    return {"config": own, "models": [{key: value for key, value in models[0].items() if key != without}, *models[1:]]}


def corpus_of(generation: Generation) -> str:
    """Return the fingerprint of the items of an index."""
    return generation.manifest.corpus.fingerprint


def index_of(generation: Generation, retriever: BaseRetriever) -> list[str]:
    """Return the checksums of the files that a retriever and its parts search.

    There may be several indexes of the same items: one with joined segments may keep the training on its first items.
    """
    manifest = generation.manifest
    prints = {
        fingerprint_of(manifest.corpus.fingerprint, part.identity, manifest.retrievers) for part in with_parts([retriever])
    }
    searched = [segment for record in manifest.retrievers if record.fingerprint in prints for segment in record.segments]
    return [file.sha256 for segment in searched for _, file in sorted(segment.files.items())]


def hardware() -> Config:
    """Return what timings depend on besides configuration and versions."""
    return _environment()["hardware"]  # type: ignore[no-any-return]


@cache
def _environment() -> Config:
    return describe_environment()


def versions() -> Config:
    """Return the versions of everything that may change a result."""
    known = {name: version for name, version in _environment()["versions"].items() if name not in _NO_PART_IN_RESULTS}
    return known | {"own code": own_code()}
