"""Which retrievers keep an index up to date: those at hand, and for the others equal ones made from what the index says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nlp_retrieval.core.generation import fingerprint_of, open_generation
from nlp_retrieval.core.index_update import Resolve
from nlp_retrieval.core.manifest import Manifest, RetrieverRecord
from nlp_retrieval.core.registry import build_as
from nlp_retrieval.core.retriever import BaseRetriever, with_parts
from nlp_retrieval.core.segments import Builder
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError


def resolver(retrievers: Iterable[BaseRetriever] = ()) -> Resolve:
    """Return what gives a builder for every retriever of an index.

    Args:
        retrievers: those at hand, and their parts. An index may hold more, which others search; they are kept up to date too.
    """
    at_hand = with_parts(retrievers)

    def resolve(manifest: Manifest) -> list[Builder]:
        corpus = manifest.corpus.fingerprint
        found = {fingerprint_of(corpus, retriever.index_identity()): retriever for retriever in at_hand}
        return [(found.get(record.fingerprint) or _remade(record, corpus)).builder() for record in manifest.retrievers]

    return resolve


def retrievers_of(index: str | Path) -> list[BaseRetriever]:
    """Make the retrievers of an index from its manifest, without those that are but parts of others.

    Raises:
        ConfigurationError: one cannot be made; settings that looked like secrets are not in a manifest.
    """
    records = open_generation(index).manifest.retrievers
    retrievers = [build_as(BaseRetriever, "retrievers", record.config, str(index)) for record in records]
    needed = [part.index_identity() for one in retrievers for part in with_parts(one.parts())]
    return [one for one in retrievers if one.index_identity() not in needed]


def _remade(record: RetrieverRecord, corpus: str) -> BaseRetriever:
    name = record.identity.get("name")
    cure = "update it in Python by a searcher that holds it, or index again without it"
    try:
        retriever = build_as(BaseRetriever, "retrievers", record.config)
    except ConfigurationError as error:
        raise IndexMismatchError(f"the index also holds {name!r}, which cannot be kept up to date: {error}; {cure}") from error
    if fingerprint_of(corpus, retriever.index_identity()) != record.fingerprint:
        raise IndexMismatchError(
            f"the index also holds {name!r}, which cannot be kept up to date: made from {record.config}, it is not the one "
            f"that was indexed (another model, or a setting that is a secret); {cure}"
        )
    return retriever
