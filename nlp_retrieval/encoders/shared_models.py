"""Models of components: identified by their files, opened at first use, and shared by components with equal settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import PurePath
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakValueDictionary

from nlp_retrieval.core.components.component import Component, Config, canonical_json
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.processes import Lock, use_one_thread_after_fork
from nlp_retrieval.encoders.model_folder import ModelFolder, find_model, require_dense_extra
from nlp_retrieval.encoders.model_turns import turn_of

ModelT = TypeVar("ModelT")

_open: WeakValueDictionary[tuple[type, str], Any] = WeakValueDictionary()
_opening = Lock()


class ModelHolder(Component, ABC, Generic[ModelT]):
    """A component whose parameter ``model`` names a model on the hub or in a local folder.

    The model's files are fingerprinted when the fingerprint is first needed; if they change between then and opening the
    model, using the component is an error.
    """

    apart_from_model: ClassVar[frozenset[str]] = frozenset({"batch_size"})
    """Parameters that do not affect how the model is opened: components that differ only in these share one."""

    model: str
    revision: str | None
    trust_remote_code: bool = False
    _folder: ModelFolder | None = None
    _files: ModelFiles | None = None
    _model: ModelT | None = None

    @property
    def folder(self) -> ModelFolder:
        """Return the folder of the model's files, and their origin."""
        if self._folder is None:
            self._folder = self.find_model()
        return self._folder

    @property
    def files(self) -> ModelFiles:
        """The model's files at the time of first use."""
        if self._files is None:
            with _opening:  # threads that ask at the same time get the same fingerprint
                self._files = self._files or ModelFiles.of(self.folder.path, trust_remote_code=self.trust_remote_code)
        return self._files

    def model_fingerprint(self) -> str:
        """A checksum of the model's files."""
        return self.files.fingerprint

    def index_identity(self) -> Config:
        # the files decide, not the path or the revision; the last part of the name is for people
        identity = {key: value for key, value in super().index_identity().items() if key != "revision"}
        return identity | {"model": PurePath(self.model).name, "model_fingerprint": self.model_fingerprint()}

    def provenance(self) -> dict[str, str]:
        return {self.model: self.folder.source}

    def find_model(self) -> ModelFolder:
        """Find the model's files; download them only if they are nowhere on this machine.

        Raises:
            DependencyError: the library that runs the model is not installed.
            ModelError: it was not found.
        """
        require_dense_extra()
        return find_model(self.model, self.revision, local_only=self.local_only)

    def open_model(self) -> ModelT:
        """Open the model, or return the one already open in a component of this class with equal settings.

        Raises:
            DependencyError: the library that runs the model is not installed.
            ModelError: it does not load, or its files have changed.
        """
        if self._model is None:
            apart = self.apart_from_model | {"model", "revision"}  # the fingerprint replaces these two
            settings = {key: value for key, value in self.opened_by().items() if key not in apart}
            key = (type(self), canonical_json([settings, self.model_fingerprint()]))
            use_one_thread_after_fork()
            with _opening:
                model = _open.get(key)
                if model is None:
                    with self.files.unchanged():
                        model = self.load_model()
                    turn_of(model)
                    _open[key] = model
                self._model = model
        return self._model

    def opened_by(self) -> Config:
        """The settings except those in ``apart_from_model``; they include all that decide how the model is opened."""
        return self.config

    @abstractmethod
    def load_model(self) -> ModelT:
        """Load the model from ``files.folder``.

        Raises:
            DependencyError: the library that runs the model is not installed.
            ModelError: it does not load.
        """
