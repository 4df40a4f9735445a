"""Builders of all retrievers of an index: given ones, and equal ones built from the manifest for the rest.

The manifest comes from whoever built the index: :mod:`nlp_retrieval.core.components.trust` decides what it may ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nlp_retrieval.core.components.registry import PlannedComponent, plan
from nlp_retrieval.core.components.trust import asked_for, build_from_manifest, require_trust
from nlp_retrieval.core.index.generation import fingerprint_of, open_generation
from nlp_retrieval.core.index.manifest import MANIFEST_FILE, Manifest, RetrieverRecord
from nlp_retrieval.core.index.segments import Builder
from nlp_retrieval.core.index.update import Resolve
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError

_NAME_THEM = "; or name the retrievers yourself: with --retriever, or in a Searcher of your own"
_UPDATE_IT = "; or update it in Python by a searcher that holds it, or index again without it"


def resolver(retrievers: Iterable[BaseRetriever] = (), *, trust: bool = False) -> Resolve:
    """Return a function that returns builders for all retrievers of an index.

    Args:
        retrievers: those available. The index may hold more, used by other searchers; they are updated too.
        trust: let the index use settings that :mod:`nlp_retrieval.core.components.trust` does not allow in a manifest.
    """
    at_hand = with_parts(retrievers)

    def resolve(directory: Path, manifest: Manifest) -> list[Builder]:
        corpus = manifest.corpus.fingerprint
        found = {fingerprint_of(corpus, retriever.identity, manifest.retrievers): retriever for retriever in at_hand}
        others = [record for record in manifest.retrievers if record.fingerprint not in found]
        plans = []
        for record in others:
            with _cannot_be_kept_up(record):
                plans.append(_plan_of(record, trust=trust))
        _require_trust(plans, directory, _UPDATE_IT, trust=trust)
        for record, described in zip(others, plans, strict=True):
            with _cannot_be_kept_up(record):
                retriever = build_from_manifest(BaseRetriever, described, trust=trust)
                if fingerprint_of(corpus, retriever.identity, [record]) != record.fingerprint:
                    raise ConfigurationError(
                        f"made from {record.config}, it is not the one that was indexed (another model, or a setting that is "
                        "a secret)"
                    )
            found[record.fingerprint] = retriever
        return [found[record.fingerprint].builder() for record in manifest.retrievers]

    return resolve


def retrievers_of(index: str | Path, *, trust: bool = False) -> list[BaseRetriever]:
    """Build the retrievers of an index from its manifest, without those that are only parts of others.

    Args:
        index: the index directory.
        trust: let the index use settings that :mod:`nlp_retrieval.core.components.trust` does not allow in a manifest.

    Raises:
        UntrustedError: it asks for such settings, and is not trusted.
        ConfigurationError: one cannot be built; settings that look like secrets are not in a manifest.
    """
    plans = [_plan_of(record, trust=trust) for record in open_generation(index).manifest.retrievers]
    _require_trust(plans, Path(index), _NAME_THEM, trust=trust)
    retrievers = [build_from_manifest(BaseRetriever, described, trust=trust) for described in plans]
    needed = [part.identity for one in retrievers for part in with_parts(one.parts())]
    return [one for one in retrievers if one.identity not in needed]


def _plan_of(record: RetrieverRecord, *, trust: bool) -> PlannedComponent:
    return plan("retrievers", record.config, str(record.config.get("name")), BaseRetriever, only_own=not trust)


def _require_trust(plans: Iterable[PlannedComponent], directory: Path, cure: str, *, trust: bool) -> None:
    asked = [phrase for described in plans for phrase in asked_for(described)]  # of all, so that nothing is trusted unseen
    require_trust(asked, str(directory / MANIFEST_FILE), cure, trust=trust)


@contextmanager
def _cannot_be_kept_up(record: RetrieverRecord) -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        name = record.identity.get("name")
        raise IndexMismatchError(
            f"the index also holds {name!r}, which cannot be kept up to date: {error}{_UPDATE_IT}"
        ) from error
