"""Fingerprints of models, which identify the indexes and stages that are made with them.

Every file in a model's folder counts, whatever its suffix, also behind links, except those that only describe the model to
people. Loaders take names of files, folders and other models from the settings of a model, which may lead only to its own
files. Code of another repository, if the user trusts it, is looked up and counts too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from nlp_retrieval.core.files.checksums import is_settled, sha256_of, state_of
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.errors import ModelError

__all__ = ["ModelFiles"]

NOT_LOADED = frozenset({"readme.md", "license", "data_config.json", ".gitattributes", ".gitignore", ".ds_store"})
"""Names, in lower case, of files that no loader reads."""

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
_MOST_FILES = 10_000

PASSED_OVER = frozenset({".git", ".cache", "__pycache__"})
"""Folders that are not part of a model."""

_SETTINGS = re.compile(r"(config(\..+)?|(tokenizer|sentence_.+|router|adapter)_config|modules|.+\.index)\.json")
_NAME_FILES = frozenset({"weight_map", "fast_tokenizer_files", "configuration_files", "transformers_weights"})
_NAME_FOLDERS = frozenset({"path", "types", "structure"})
_ARGUMENTS = frozenset({"model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs"})


def require_inside(folder: Path, files: Mapping[str, Path]) -> None:
    """Raise an error if a model's settings refer to files outside it; the files are given by their relative paths."""
    for name, settings in _settings(files):
        own = PurePosixPath(name).parent
        for keys, value in _strings(settings):
            if _NAME_FILES & set(keys):
                inside = not _is_other_file(folder, own, value, files)
            elif keys and keys[0] in _NAME_FOLDERS:
                inside = not PASSED_OVER & {part for text in (*keys, value) for part in re.split(r"[/\\]", text)}
            elif PurePosixPath(name).name.startswith("sentence_"):
                inside = _is_argument_inside(folder, own, keys, value, files)
            elif name.endswith("adapter_config.json") and keys == ("base_model_name_or_path",) and _is_loaded(name, files):
                raise ModelError(
                    f"{folder / name} is an adapter of another model, {value}, whose weights are not in this folder; merge "
                    "them (merge_and_unload() of peft), save the whole model, and pass its folder"
                )
            else:
                inside = True
            if not inside:
                raise _outside_model(folder / name, ".".join(keys), value)


def code_elsewhere(folder: Path, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the folders of the repositories whose code a model names, by the names of the repositories."""
    folders: dict[str, Path] = {}
    for name, settings in _settings(files):
        for keys, value in _strings(settings):
            repository = _repository_of(value) if keys and ("auto_map" in keys or keys[-1] == "type") else ""
            if repository and repository not in folders:
                folders[repository] = _code_folder(repository, folder / name)
    return folders


def _repository_of(code: str) -> str:
    """The repository in ``organisation/name--module.Class``; empty if the code is the model's own."""
    repository, _, reference = code.rpartition("--")
    return repository if "." in reference and "/" not in reference else ""


def _code_folder(repository: str, named_in: Path) -> Path:
    if Path(repository).is_dir():
        return Path(repository).absolute()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        raise ModelError(
            f"{named_in} names code of another repository, {repository}, which is not on this machine; read it, and where you "
            f"trust it: hf download {repository} --include '*.py'"
        ) from None


def _settings(files: Mapping[str, Path]) -> Iterator[tuple[str, Any]]:
    for name, file in files.items():
        if _SETTINGS.fullmatch(PurePosixPath(name).name):
            try:
                yield name, read_json_file(file)
            except (OSError, ValueError) as error:
                raise ModelError(f"{file} cannot be read as JSON ({error}); download the model again") from None


def _strings(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string in settings, with the keys that lead to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner, (*keys, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, keys)
    elif isinstance(value, str):
        yield keys, value


def _is_other_file(folder: Path, own: PurePosixPath, value: str, files: Mapping[str, Path]) -> bool:
    """Return whether a name, relative to a folder in the model, leads to a file that does not count."""
    return str(own / value) not in files and (folder / own / value).is_file()


def _is_argument_inside(folder: Path, own: PurePosixPath, keys: tuple[str, ...], value: str, files: Mapping[str, Path]) -> bool:
    """Return whether an argument passed by sentence-transformers to other loaders refers to no file, or to one that counts."""
    if keys == ("tokenizer_name_or_path",) or keys[-1] == "code_revision":
        return False
    if not value or not _ARGUMENTS & set(keys[:1]) or str(own / value) in files:
        return True
    return not Path(value).exists() and not _is_other_file(folder, own, value, files)


def _is_loaded(name: str, files: Mapping[str, Path]) -> bool:
    """Return whether loaders apply an adapter by themselves: it is in a module's folder, not in one for model code."""
    where = PurePosixPath(name).parent
    return where.name == "" or str(where / "sentence_bert_config.json") in files


def _outside_model(file: Path, key: str, value: str) -> ModelError:
    at = f" at {key[:80]}" if key else ""
    return ModelError(
        f"{file} names {value[:80]!r}{at}, which is not part of the model: its fingerprint would not cover what is loaded; put "
        "the file into the model's folder, and name it there"
    )


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model at the time of its fingerprint.

    Args:
        folder: the folder that holds them.
        fingerprint: SHA-256 over their names and contents.
        trust_remote_code: whether code of other repositories that the model names is loaded with it and counts too.

    Raises:
        ModelError: there is no such folder, it is empty, a file cannot be read, or the model refers to files outside it.

    Examples:
        >>> Path("model").mkdir()
        >>> _ = Path("model/config.json").write_text("{}")
        >>> len(ModelFiles.of(Path("model")).fingerprint)
        64
    """

    folder: Path
    fingerprint: str
    trust_remote_code: bool = False

    @classmethod
    def of(cls, folder: Path, *, trust_remote_code: bool = False) -> ModelFiles:
        """Take the fingerprint of a model's files."""
        folder = folder.absolute()
        files = _listed(folder)
        if trust_remote_code:
            for repository, path in code_elsewhere(folder, files).items():
                files |= {f"{repository}--{name}": file for name, file in _listed(path).items() if name.endswith(".py")}
        statuses = {name: file.stat() for name, file in files.items()}
        state = tuple((name, str(files[name]), *state_of(status)) for name, status in statuses.items())
        read = _fingerprint if is_settled(*statuses.values()) else _fingerprint.__wrapped__
        return cls(folder, read(folder, state), trust_remote_code)


@lru_cache(maxsize=64)
def _fingerprint(folder: Path, state: tuple[tuple[str | int, ...], ...]) -> str:
    files = {str(name): Path(str(path)) for name, path, *_ in state}
    if not any(name.endswith(".onnx") for name in files):  # a graph may read any file beside it as data
        files = {name: file for name, file in files.items() if not _is_aside(name)}
    if all(map(_is_aside, files)):
        raise ModelError(f"there is no model in {folder}: the folder holds no files of one; pass the folder of a model")
    require_inside(folder, files)
    digest = hashlib.sha256()
    try:
        for name in sorted(files, key=lambda name: (str(PurePosixPath(name).parent).removeprefix("."), name)):
            digest.update(os.fsencode(name) + f"\0{sha256_of(files[name])}\n".encode())
    except OSError as error:
        raise _unreadable(error) from None
    return digest.hexdigest()


def _is_aside(name: str) -> bool:
    last = PurePosixPath(name).name.lower()
    return last in NOT_LOADED or last.endswith(_PICTURES)


def _listed(folder: Path) -> dict[str, Path]:
    """The regular files below a folder, also behind links, by their relative paths."""
    files: dict[str, Path] = {}
    try:
        if not folder.is_dir():
            raise ModelError(f"there is no model folder at {folder} (any more); check the path, or put the folder back")
        _list(folder, "", frozenset(), files)
    except OSError as error:
        raise _unreadable(error) from None
    return dict(sorted(files.items()))


def _list(folder: Path, prefix: str, within: frozenset[tuple[int, int]], files: dict[str, Path]) -> None:
    own = folder.stat()
    identity = (own.st_dev, own.st_ino)
    if identity in within:
        return  # a link back to a folder above it, whose files are listed already
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        name = prefix + entry.name
        if entry.is_dir():
            if entry.name not in PASSED_OVER:
                _list(Path(entry.path), f"{name}/", within | {identity}, files)
        elif entry.is_file():
            files[name] = Path(entry.path)
        elif not entry.is_symlink():
            raise ModelError(f"{entry.path} is not a regular file, and cannot be part of a model; remove it")
        if len(files) > _MOST_FILES:
            raise ModelError(f"{folder} and what it links to hold more than {_MOST_FILES:,} files; pass a model's own folder")


def _unreadable(error: OSError) -> ModelError:
    return ModelError(f"{error.filename} is a file of a model and cannot be read ({error.strerror}); check the folder")
