"""The subjects of a text, by a spaCy pipeline instead of rules."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.errors import DependencyError, ModelError, install
from nlp_retrieval.text.mentions import Mentions, mentions_of, normalize

_reading = Lock()
"""Held while a pipeline reads queries: threads share the pipeline and its cache."""


class SpacyMentions:
    """Mentions by a spaCy pipeline with a tagger and a named entity recogniser.

    Its files are fingerprinted when the fingerprint is first needed; if they change between then and loading, using the
    pipeline is an error.

    Args:
        pipeline: name or folder of the pipeline.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._files: ModelFiles | None = None
        self._loaded: Any = None
        self._known: dict[str, Mentions] = {}

    def find(self, texts: list[str]) -> list[Mentions]:
        """Find mentions in texts; each distinct text is read once, and the last 50,000 are cached.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        with _reading:
            new = [text for text in dict.fromkeys(texts) if text not in self._known]
            for text, document in zip(new, self._load().pipe(new), strict=True):
                entities = {normalize(entity.text) for entity in document.ents}
                proper = {normalize(token.text) for token in document if token.pos_ == "PROPN"}
                inside = {normalize(token.text) for entity in document.ents for token in entity if token.text[:1].isupper()}
                self._known[text] = mentions_of(text, entities, proper | inside)
            mentions = [self._known[text] for text in texts]
            while len(self._known) > 50_000:
                self._known.pop(next(iter(self._known)))
            return mentions

    def entities(self, texts: Iterable[str]) -> Iterator[set[str]]:
        """Yield the entities of each text; nothing is cached, so that a whole corpus may be read.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        for document in self._load().pipe(texts):
            yield {normalize(entity.text) for entity in document.ents} - {""}

    @property
    def files(self) -> ModelFiles:
        """The pipeline's files at the time of first use."""
        if self._files is None:
            with _reading:  # threads that ask at the same time get the same fingerprint
                self._files = self._files or ModelFiles.of(_folder_of(self._pipeline))
        return self._files

    def identity(self, parameter: str) -> Config:
        """Return the identity that this pipeline adds to a component, without loading it.

        Args:
            parameter: name of the component's parameter for the pipeline. The identity is decided by the files, not by their
                path; its last part is included for people to read.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: there is no such pipeline.
        """
        return {parameter: PurePath(self._pipeline).name, "model_fingerprint": self.files.fingerprint}

    def _load(self) -> Any:
        with _reading:
            if self._loaded is None:
                with self.files.unchanged():
                    self._loaded = _opened(self._pipeline, self.files.folder)
            return self._loaded


def _folder_of(pipeline: str) -> Path:
    """The folder of a pipeline's files; like spaCy, this prefers an installed package to a folder of the same name."""
    if importlib.util.find_spec("spacy") is None:
        raise DependencyError(f"spacy_pipeline needs spaCy: {install('spacy')}")
    if _is_package(pipeline):
        spec = importlib.util.find_spec(pipeline)
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0])
    folder = Path(pipeline).expanduser()
    if not (folder / "config.cfg").is_file():
        raise _does_not_load(pipeline, "it is neither an installed package nor the folder of a pipeline")
    return folder


def _is_package(pipeline: str) -> bool:
    try:
        importlib.metadata.distribution(pipeline)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return pipeline.isidentifier()


def _opened(pipeline: str, folder: Path) -> Any:
    import spacy

    try:
        for config in sorted(folder.rglob("config.cfg")):
            _require_own_components(config, spacy.util.load_config(config))
        opened = spacy.load(pipeline if _is_package(pipeline) else folder)
    except (OSError, ValueError) as error:
        raise _does_not_load(pipeline, str(error).splitlines()[0]) from error
    if not {"ner", "entity_ruler"} & set(opened.pipe_names):
        names = ", ".join(opened.pipe_names) or "nothing"
        raise ModelError(f"the spaCy pipeline {pipeline!r} recognises no entities (it has: {names})")
    return opened


def _require_own_components(file: Path, config: Any) -> None:
    """Refuse components that spaCy would take from another pipeline: this one's files lack their weights."""
    for name, settings in config.get("components", {}).items():
        if isinstance(settings, Mapping) and "source" in settings:
            raise ModelError(
                f"{file} takes its component {name!r} from another pipeline, {settings['source']!r}, whose files are not part "
                "of this one; load it with spaCy, save it again (nlp.to_disk), and pass that folder"
            )


def _does_not_load(pipeline: str, reason: str) -> ModelError:
    return ModelError(
        f"{pipeline!r} does not load as a spaCy pipeline ({reason}); pass the name of an installed pipeline "
        "(python -m spacy download en_core_web_sm) or its folder"
    )
