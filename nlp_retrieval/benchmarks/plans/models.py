"""Which models a component loads, and where their files are, told without loading or downloading one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nlp_retrieval.core.components.component import Component, held_components
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.encoders.model_folder import CARRIED_BY_PACKAGES
from nlp_retrieval.lm.language_model import LanguageModel

__all__ = ["Model", "components_in", "models_in"]


class Model(NamedTuple):
    """A model that a component needs.

    Args:
        name: as its users name it.
        kind: ``encoder``, ``reranker``, ``language model`` or ``spaCy pipeline``.
        source: where it is, in words; None where nothing on this machine has it.
    """

    name: str
    kind: str
    source: str | None


def components_in(component: Component) -> Iterator[Component]:
    """Yield a component and all that it is made of; what stands in several places comes several times."""
    yield component
    for part in held_components(component):
        yield from components_in(part)
    if isinstance(component, BaseRetriever):
        for retriever in component.parts():
            yield from components_in(retriever)


def models_in(component: Component) -> list[Model]:
    """Return the models that a component and its parts load or ask, each once."""
    found: dict[Model, None] = {}
    for part in components_in(component):
        model, pipeline = getattr(part, "model", None), getattr(part, "spacy_pipeline", None)
        if isinstance(part, LanguageModel):
            endpoint = part.base_url or f"{part.provider}'s own endpoint"
            found[Model(part.model, "language model", str(without_secrets(endpoint)))] = None
        elif isinstance(model, str) and part.kind in {"encoders", "rerankers"}:
            found[Model(model, part.kind.removesuffix("s"), _source_of(model, getattr(part, "revision", None)))] = None
        if isinstance(pipeline, str):
            found[Model(pipeline, "spaCy pipeline", _source_of_pipeline(pipeline))] = None
    return list(found)


def _source_of(model: str, revision: str | None) -> str | None:
    if Path(model).expanduser().is_dir():
        return "a folder"
    if (path := _in_hub_cache(model, revision)) is not None:
        return f"the hub's cache, commit {path.name[:12]}"
    module, distribution = CARRIED_BY_PACKAGES.get(model, ("", ""))
    if module and revision is None and importlib.util.find_spec(module) is not None:
        return f"the package {distribution}"
    return None


def _in_hub_cache(model: str, revision: str | None) -> Path | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, FileNotFoundError, HFValidationError):
        return None


def _source_of_pipeline(pipeline: str) -> str | None:
    if Path(pipeline).expanduser().is_dir():
        return "a folder"
    named_as_module = pipeline.isidentifier()
    return "an installed package" if named_as_module and importlib.util.find_spec(pipeline) is not None else None
